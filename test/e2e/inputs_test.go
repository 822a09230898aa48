package e2e_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

// X5: a name that exists is that file, whatever characters it has; other names are patterns; a name that is neither says so.
func TestX5_NamesOfFiles(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	dir := t.TempDir()
	names := []string{
		"data[1].parquet", "data1.parquet", "a{b,c}d.parquet", "abd.parquet", "qu?x.parquet", "qux.parquet", "st*r.parquet", "stair.parquet", "100%.parquet", "x%20y.parquet", "x y.parquet",
		"it's.parquet", "ü.parquet", "日本.parquet", "dir [ 1 ]/in.parquet", "k=v/in.parquet", "#frag.parquet", "a+b.parquet", "back\\slash.parquet",
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for i, n := range names {
		harness.WriteParquet(t, filepath.Join(dir, n), schema, "["+strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"v":%d},`, i), i+1), ",")+"]")
	}
	c.SQL("CREATE TABLE lake.x.t (v BIGINT)")
	var script strings.Builder
	for _, n := range names {
		fmt.Fprintf(&script, "INSERT INTO lake.x.t SELECT v FROM '%s/%s';\n", dir, strings.ReplaceAll(n, "'", "''"))
	}
	c.SQL(script.String())
	tab := c.Table("x", "t")
	require.Equal(t, len(names), tab.Snapshots)
	require.EqualValues(t, len(names)*(len(names)+1)/2, tab.Records)
	seen := map[int64]int{}
	for _, f := range tab.Files {
		for _, v := range harness.Int64s(t, f, "v") {
			seen[v]++
		}
	}
	for i, n := range names {
		require.Equal(t, i+1, seen[int64(i)], n)
	}
	require.Equal(t, "2", c.Value("SELECT count(*) FROM '"+dir+"/d?ta1.parquet'"), "patterns work")
	require.Equal(t, "16", c.Value("SELECT count(*) FROM '"+dir+"/*/in.parquet' WHERE v = 15"))
	c.Fail(1, "SELECT * FROM '"+dir+"/data[2].parquet'", "data[2].parquet")
	c.Fail(1, "INSERT INTO lake.x.t SELECT v FROM '"+dir+"/nothing-*.parquet'", "nothing-*.parquet")
	require.Contains(t, c.Run("sql", "-q", "EXPLAIN INSERT INTO lake.x.t SELECT v FROM '"+dir+"/x%20y.parquet'").Out, "x%20y.parquet")
}

// rowGroups writes row groups of the given sizes; ids count through them.
func rowGroups(t *testing.T, path string, sizes ...int) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	id := int64(0)
	for _, n := range sizes {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for range n {
			id++
			b.Field(0).(*array.Int64Builder).Append(id)
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("value ", id))
		}
		rec := b.NewRecordBatch()
		require.NoError(t, w.Write(rec))
		rec.Release()
		b.Release()
	}
	require.NoError(t, w.Close())
}

// X6: valid files without rows are empty; files of no bytes are not valid.
func TestX6_EmptyFiles(t *testing.T) {
	t.Parallel()
	c := newCases(t, 2)
	dir := t.TempDir()
	rowGroups(t, dir+"/ok/full.parquet", 3)
	rowGroups(t, dir+"/ok/zero_row_group.parquet", 0)
	rowGroups(t, dir+"/ok/no_row_group.parquet")
	rowGroups(t, dir+"/ok/hole.parquet", 1, 0, 2)
	rowGroups(t, dir+"/only_empty/z.parquet", 0)
	rowGroups(t, dir+"/only_empty/n.parquet")
	require.NoError(t, os.CopyFS(dir+"/zero_bytes", os.DirFS(dir+"/ok")))
	writeFile(t, dir+"/zero_bytes/part.parquet", nil)
	writeFile(t, dir+"/csv/a.csv", []byte("id,s\n1,a\n"))
	writeFile(t, dir+"/csv/b.csv", nil)
	writeFile(t, dir+"/csv/c.csv", []byte("id,s\n"))

	c.SQL("CREATE TABLE lake.x.t (id BIGINT, s VARCHAR)")
	require.Equal(t, "6", c.SQL("INSERT INTO lake.x.t SELECT * FROM '" + dir + "/ok/*.parquet'")[0][0])
	require.EqualValues(t, 6, c.Table("x", "t").Records)
	before := c.Table("x", "t")
	require.Equal(t, "0", c.SQL("INSERT INTO lake.x.t SELECT * FROM '" + dir + "/only_empty/*.parquet'")[0][0])
	after := c.Table("x", "t")
	require.Equal(t, before.MetadataLocation, after.MetadataLocation, "no rows, no snapshot (C16)")
	require.Empty(t, after.DataOrphans())
	c.Fail(1, "INSERT INTO lake.x.t SELECT * FROM '"+dir+"/zero_bytes/*.parquet'", "part.parquet")
	require.Equal(t, before.MetadataLocation, c.Table("x", "t").MetadataLocation)
	require.Equal(t, "1", c.SQL("INSERT INTO lake.x.t SELECT * FROM read_csv('" + dir + "/csv/*.csv')")[0][0])
	c.SQL("CREATE TABLE lake.x.empty AS SELECT * FROM '" + dir + "/only_empty/*.parquet'")
	require.True(t, c.Table("x", "empty").Exists)
	require.Empty(t, c.Table("x", "empty").Files)
}

// X7: what JSON's types are found to be depends on DuckDB's sample, and a late value may be converted as DuckDB does; but it is the same
// whatever the number of executors, an error names the file, and the options that fix it are passed on.
func TestX7_TypesOfJSON(t *testing.T) {
	t.Parallel()
	const lead = 20480
	dir := t.TempDir()
	late := map[string][2]string{"double_true": {"1.5", "true"}, "bigint_true": {"7", "true"}, "bigint_frac": {"7", "1.5"}, "bool_int": {"true", "7"}, "bigint_string": {"7", `"x"`}}
	for name, v := range late {
		writeFile(t, filepath.Join(dir, name+".ndjson"), []byte(strings.Repeat(`{"c0":`+v[0]+"}\n", lead)+`{"c0":`+v[1]+"}\n"))
	}
	writeFile(t, dir+"/split/a.ndjson", []byte(strings.Repeat("{\"c0\":7}\n", 10)))
	writeFile(t, dir+"/split/b.ndjson", []byte("{\"c0\":1.5}\n"))
	writeFile(t, dir+"/split/c.ndjson", []byte("{\"c0\":9007199254740993}\n"))
	results := map[int]map[string]string{}
	for _, executors := range []int{1, 3} {
		c := newCases(t, executors)
		results[executors] = map[string]string{}
		for name, v := range late {
			r := c.Run("sql", "-q", "-o", "csv", "CREATE TABLE lake.x."+name+" AS SELECT c0 FROM '"+dir+"/"+name+".ndjson'")
			if r.Code != 0 {
				require.Contains(t, r.Err, name+".ndjson", "the file is named")
				require.False(t, c.Table("x", name).Exists)
				results[executors][name] = "error"
				continue
			}
			last := fmt.Sprint(c.SQL("SELECT c0::VARCHAR FROM lake.x." + name + " WHERE c0::VARCHAR <> '" + v[0] + "'"))
			if last != "[["+strings.Trim(v[1], `"`)+"]]" {
				t.Logf("%s: %s became %s, as in DuckDB", name, v[1], last)
			}
			results[executors][name] = last
		}
		r := c.Run("sql", "-q", "-o", "csv", "CREATE TABLE lake.x.split AS SELECT c0 FROM '"+dir+"/split/*.ndjson'")
		results[executors]["split"] = "error"
		if r.Code == 0 {
			results[executors]["split"] = fmt.Sprint(c.SQL("SELECT c0::VARCHAR, count(*) FROM lake.x.split GROUP BY 1 ORDER BY 1"))
		}
		c.SQL("CREATE TABLE lake.x.asked AS SELECT c0 FROM read_json('" + dir + "/bigint_string.ndjson', columns={'c0': 'VARCHAR'})")
		require.Equal(t, [][]string{{"7", fmt.Sprint(lead)}, {"x", "1"}}, c.SQL("SELECT c0, count(*) FROM lake.x.asked GROUP BY 1 ORDER BY 1"))
		c.SQL("CREATE TABLE lake.x.sampled AS SELECT c0 FROM read_json('" + dir + "/bigint_frac.ndjson', sample_size=-1)")
		require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.x.sampled WHERE c0 = 1.5"))
	}
	require.Equal(t, results[1], results[3], "the same with three executors")
}

// X8: one broken file of twenty fails the job by its name; nothing is committed or left; the executor lives.
func TestX8_BrokenParquet(t *testing.T) {
	t.Parallel()
	c := newCases(t, 2)
	dir := t.TempDir()
	good := filepath.Join(dir, "good.parquet")
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range 1000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("value ", i))
	}
	harness.WriteRecord(t, good, b.NewRecordBatch(), parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false))
	whole, err := os.ReadFile(good)
	require.NoError(t, err)
	n := len(whole)
	footer := int(binary.LittleEndian.Uint32(whole[n-8:]))
	withFooterLength := func(v uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(append([]byte{}, whole[:n-8]...), v), "PAR1"...)
	}
	flipped := append([]byte{}, whole...)
	flipped[n-8-footer] ^= 0xFF // its first byte; most others are text that nothing checks
	for name, bad := range map[string][]byte{
		"last_byte_lost": whole[:n-1], "half": whole[:n/2], "footer_length_huge": withFooterLength(0x7FFFFFFF), "footer_length_zero": withFooterLength(0),
		"footer_bit_flip": flipped, "html": []byte("<html><body>404</body></html>\n"), "magic_only": []byte("PAR1PAR1"),
	} {
		t.Run(name, func(t *testing.T) {
			c.Use(t)
			parts := filepath.Join(dir, name)
			for i := range 20 {
				content := whole
				if i == 13 {
					content = bad
				}
				writeFile(t, fmt.Sprintf("%s/part-%02d.parquet", parts, i), content)
			}
			c.SQL("CREATE TABLE lake.x." + name + " (id BIGINT, s VARCHAR)")
			before := c.Table("x", name).MetadataLocation
			c.Fail(1, "INSERT INTO lake.x."+name+" SELECT * FROM '"+parts+"/*.parquet'", "part-13.parquet")
			require.Equal(t, before, c.Table("x", name).MetadataLocation)
			harness.Eventually(t, "no file is orphaned", func() bool { return len(c.Table("x", name).Orphans) == 0 })
			for _, e := range c.Executors {
				require.False(t, e.Ended())
			}
			writeFile(t, parts+"/part-13.parquet", whole)
			require.Equal(t, "20000", c.SQL("INSERT INTO lake.x." + name + " SELECT * FROM '" + parts + "/*.parquet'")[0][0])
		})
	}
}
