package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// newCases is a cluster with the schema lake.x.
func newCases(t *testing.T, executors int) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: executors})
	c.SQL("CREATE SCHEMA lake.x")
	return c
}

func stored(t *testing.T, c *harness.Cluster, name string) []string {
	t.Helper()
	return harness.Rows(t, c.Table("x", name))
}

// requireStored compares the rows of a table's files with objects in JSON, whatever the order of rows and keys.
func requireStored(t *testing.T, c *harness.Cluster, name string, want ...string) {
	t.Helper()
	for i, w := range want {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(w), &v), w)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		want[i] = string(b)
	}
	require.ElementsMatch(t, want, stored(t, c, name))
}

// X1: values land under the names that are listed, positionally without a list, by name where asked; every odd name works when quoted.
func TestX1_ColumnLists(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	c.SQL("CREATE TABLE lake.x.t (id BIGINT, dat TIMESTAMP, y BIGINT, m BIGINT)")
	c.SQL("INSERT INTO lake.x.t (dat, m, y, id) SELECT TIMESTAMP '2026-05-01', 5, 2026, 1")
	c.SQL("INSERT INTO lake.x.t BY NAME SELECT 5 AS m, 2026 AS y, 2 AS id, TIMESTAMP '2026-05-01' AS dat")
	c.SQL("INSERT INTO lake.x.t SELECT 3, TIMESTAMP '2026-05-01', 2026, 5")
	c.SQL("INSERT INTO lake.x.t (ID, M) VALUES (4, 5)")
	requireStored(t, c, "t", `{"id":1,"dat":"2026-05-01T00:00:00","y":2026,"m":5}`, `{"id":2,"dat":"2026-05-01T00:00:00","y":2026,"m":5}`,
		`{"id":3,"dat":"2026-05-01T00:00:00","y":2026,"m":5}`, `{"id":4,"dat":null,"y":null,"m":5}`)
	before := c.Table("x", "t").MetadataLocation
	c.Fail(1, "INSERT INTO lake.x.t (id, y, id) SELECT 1, 2, 3", "id")
	c.Fail(1, "INSERT INTO lake.x.t BY NAME SELECT 1 AS id, 2 AS nope", "nope")
	c.Fail(1, "INSERT INTO lake.x.t BY NAME SELECT 1 AS id, 2 AS ID", "id")
	require.Equal(t, before, c.Table("x", "t").MetadataLocation)

	c.SQL(`CREATE TABLE lake.x.odd ("order" BIGINT, "values" BIGINT, "authorization" BIGINT, "größe" BIGINT, "日本" BIGINT, "a""b" BIGINT, "with space" BIGINT, "x.y" BIGINT, "'" BIGINT)`)
	c.SQL(`INSERT INTO lake.x.odd ("'", "x.y", "with space", "a""b", "日本", "größe", "authorization", "values", "order") SELECT 9, 8, 7, 6, 5, 4, 3, 2, 1`)
	c.SQL(`INSERT INTO lake.x.odd SELECT * FROM lake.x.odd`)
	c.SQL(`INSERT INTO lake.x.odd BY NAME SELECT "x.y", "'", "order", "values", "authorization", "größe", "日本", "a""b", "with space" FROM lake.x.odd LIMIT 1`)
	row := `{"order":1,"values":2,"authorization":3,"größe":4,"日本":5,"a\"b":6,"with space":7,"x.y":8,"'":9}`
	requireStored(t, c, "odd", row, row, row)
	require.Equal(t, []string{"1", "6", "9"}, c.SQL(`SELECT "order", "a""b", "'" FROM lake.x.odd LIMIT 1`)[0])
}

// X2: the fields of structs are matched by name at every level, also from a file that is passed through.
func TestX2_StructsByName(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	const columns = "(s STRUCT(a INT, b INT), l STRUCT(a INT, b INT)[], m MAP(VARCHAR, STRUCT(a INT, b INT)))"
	c.SQL("CREATE TABLE lake.x.t " + columns)
	c.SQL("INSERT INTO lake.x.t SELECT {'b': 3, 'a': 4}, [{'b': 3, 'a': 4}], MAP {'k': {'b': 3, 'a': 4}}")
	ab := arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	path := t.TempDir() + "/swapped.parquet"
	harness.WriteParquet(t, path, arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: ab, Nullable: true}, {Name: "l", Type: arrow.ListOf(ab), Nullable: true}, {Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, ab), Nullable: true},
	}, nil), `[{"s":{"b":3,"a":4},"l":[{"b":3,"a":4}],"m":[{"key":"k","value":{"b":3,"a":4}}]}]`)
	c.SQL("INSERT INTO lake.x.t SELECT * FROM '" + path + "'")
	row := `{"s":{"a":4,"b":3},"l":[{"a":4,"b":3}],"m":[{"key":"k","value":{"a":4,"b":3}}]}`
	requireStored(t, c, "t", row, row)

	before := c.Table("x", "t").MetadataLocation
	c.Fail(1, "INSERT INTO lake.x.t (s) SELECT {'a': 1, 'b': 2, 'extra': 3}", "extra")
	c.Fail(1, "INSERT INTO lake.x.t (l) SELECT [{'a': 1, 'b': 2, 'extra': 3}]", "extra")
	require.Equal(t, before, c.Table("x", "t").MetadataLocation)
	// A field that is missing is NULL, or refused with its name; never another field's value.
	r := c.Run("sql", "-q", "INSERT INTO lake.x.t (s) SELECT {'b': 7}")
	if r.Code == 0 {
		requireStored(t, c, "t", row, row, `{"s":{"a":null,"b":7},"l":null,"m":null}`)
	} else {
		require.Contains(t, r.Err, "a")
		require.Equal(t, before, c.Table("x", "t").MetadataLocation)
	}
}

// X3: columns that differ only by case are never mixed up.
func TestX3_NamesThatDifferByCase(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	dir := t.TempDir()
	pair := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "A", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	harness.WriteParquet(t, dir+"/pair.parquet", pair, `[{"a":1,"A":100},{"a":2,"A":200}]`)
	r := c.Run("sql", "-q", "CREATE TABLE lake.x.pair AS SELECT * FROM '"+dir+"/pair.parquet'")
	if r.Code == 0 {
		requireStored(t, c, "pair", `{"a":1,"A":100}`, `{"a":2,"A":200}`)
	} else {
		require.Contains(t, r.Err, `"a"`)
		require.Contains(t, r.Err, `"A"`)
		require.False(t, c.Table("x", "pair").Exists)
	}
	c.SQL("CREATE TABLE lake.x.one (a BIGINT)")
	r = c.Run("sql", "-q", "INSERT INTO lake.x.one SELECT a FROM '"+dir+"/pair.parquet'")
	if r.Code == 0 {
		requireStored(t, c, "one", `{"a":1}`, `{"a":2}`)
	}
	harness.WriteParquet(t, dir+"/part/NAME=x/one.parquet",
		arrow.NewSchema([]arrow.Field{{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil), `[{"name":"inner","v":1}]`)
	c.SQL("CREATE TABLE lake.x.part (name VARCHAR, v BIGINT)")
	c.Fail(1, "INSERT INTO lake.x.part SELECT name, v FROM '"+dir+"/part/*/*.parquet'", "NAME", "name", "hive_partitioning=false")
	c.SQL("INSERT INTO lake.x.part SELECT name, v FROM read_parquet('" + dir + "/part/*/*.parquet', hive_partitioning=false)")
	requireStored(t, c, "part", `{"name":"inner","v":1}`)
}

// X4: no infinity is stored; the first and the last year have their partitions.
func TestX4_EndsOfTime(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	for _, by := range []string{"", " PARTITIONED BY (year(ts))", " PARTITIONED BY (day(d), hour(ts))"} {
		name := fmt.Sprintf("t%d", len(by))
		c.SQL("CREATE TABLE lake.x." + name + " (ts TIMESTAMP, d DATE)" + by)
		before := c.Table("x", name).MetadataLocation
		for _, bad := range []string{"SELECT 'infinity'::TIMESTAMP, NULL", "SELECT '-infinity'::TIMESTAMP, NULL"} {
			c.Fail(1, "INSERT INTO lake.x."+name+" "+bad, `"ts"`, "infinity")
		}
		for _, bad := range []string{"SELECT NULL, 'infinity'::DATE", "SELECT NULL, '-infinity'::DATE", "SELECT TIMESTAMP '2020-01-01', CASE WHEN i = 5 THEN '-infinity'::DATE END FROM range(9) r(i)"} {
			c.Fail(1, "INSERT INTO lake.x."+name+" "+bad, `"d"`, "infinity")
		}
		require.Equal(t, before, c.Table("x", name).MetadataLocation)
		c.SQL("INSERT INTO lake.x." + name + " VALUES (TIMESTAMP '0001-01-01', DATE '0001-01-01'), (TIMESTAMP '9999-12-31 23:59:59.999999', DATE '9999-12-31'), (TIMESTAMP '1969-12-31 23:59:59', DATE '1969-12-31')")
		require.Equal(t, "3", c.Value("SELECT count(*) FROM lake.x."+name))
		require.Equal(t, [][]string{{"0001-01-01"}}, c.SQL("SELECT d FROM lake.x."+name+" WHERE ts = TIMESTAMP '0001-01-01'"))
		require.Equal(t, [][]string{{"9999-12-31"}}, c.SQL("SELECT d FROM lake.x."+name+" WHERE ts > TIMESTAMP '9999-01-01'"))
		harness.Eventually(t, "no file is orphaned", func() bool { return len(c.Table("x", name).DataOrphans()) == 0 })
	}
	years := map[int]bool{}
	for _, f := range partitionsOf(t, c.Table("x", fmt.Sprintf("t%d", len(" PARTITIONED BY (year(ts))")))) {
		v, ok := f[1000].(int32)
		require.True(t, ok, f)
		years[int(v)] = true
	}
	require.Equal(t, map[int]bool{1 - 1970: true, 9999 - 1970: true, -1: true}, years)
}

// Partition values may be anything that a string can be.
func TestPartitions_AbsurdValuesWork(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	c.SQL("CREATE TABLE lake.x.t (k VARCHAR, n BIGINT) PARTITIONED BY (k)")
	c.SQL(`INSERT INTO lake.x.t SELECT k, row_number() OVER () FROM (VALUES ('a/b'), ('../../etc'), ('a=b'), ('a%2Fb'), ('%'), (''), (NULL), ('null'), ('NULL'), ('__HIVE_DEFAULT_PARTITION__'),
		(' '), ('.'), ('..'), ('a' || chr(10) || 'b'), (chr(9)), (chr(1)), ('😎'), ('ü'), ('日本'), ('''quoted'''), ('"'), ('\'), ('*?[a]{b}'), ('#frag?x=1'), (repeat('x', 5000)), (repeat('é', 3000))) v(k)`)
	tab := c.Table("x", "t")
	require.EqualValues(t, 26, tab.Records)
	require.Len(t, tab.Files, 26, "a partition each")
	require.Len(t, partitionsOf(t, tab), 26)
	values := map[any]bool{}
	for _, p := range partitionsOf(t, tab) {
		values[p[1000]] = true
	}
	require.Len(t, values, 26, "no two became one")
	require.True(t, values["a/b"] && values[""] && values[nil] && values["null"] && values["__HIVE_DEFAULT_PARTITION__"] && values["😎"])
	for _, where := range []string{"k = 'a/b'", "k = ''", "k IS NULL", "k = 'null'", "k = '..'", "k = 'a' || chr(10) || 'b'", "k = '😎'", "length(k) = 5000", `k = '\'`, "k = 'a%2Fb'"} {
		require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.t WHERE "+where), where)
	}
	require.Empty(t, tab.DataOrphans())
}

// partitionsOf reads the partition values of a table's files from its manifests, by partition field id.
func partitionsOf(t *testing.T, tab harness.Table) []map[int]any {
	t.Helper()
	require.Len(t, tab.Partitions, len(tab.Files))
	return tab.Partitions
}
