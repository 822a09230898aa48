package plan

import (
	"testing"

	"github.com/signet-io/signet/scheduler/sql"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func define(t *testing.T, text string, query []*planv1.Column) (string, error) {
	t.Helper()
	s, err := sql.Parse(text)
	require.NoError(t, err, text)
	def, err := Definition(s.(*sql.CreateTable), query)
	if err != nil {
		return "", err
	}
	out := ""
	for _, f := range def.GetSchema().GetFields() {
		out += f.GetName() + " " + TypeText(f.GetType()) + notNull(f) + "; "
	}
	for _, p := range def.GetPartition() {
		out += "by " + TransformText(p.GetTransform(), p.GetParam(), p.GetColumn()) + "; "
	}
	for _, s := range def.GetSort() {
		out += "order " + TransformText(s.GetTransform(), s.GetParam(), s.GetColumn()) + "; "
	}
	return out, nil
}

func TestDefinition_CreateTable(t *testing.T) {
	got, err := define(t, "CREATE TABLE t (id BIGINT NOT NULL, Day DATE, s STRUCT(a INT)) PARTITIONED BY (bucket(4, ID), month(day), day) ORDERED BY (truncate(3, id))", nil)
	require.NoError(t, err)
	require.Equal(t, "id BIGINT NOT NULL; Day DATE; s STRUCT(a INTEGER); by bucket(4, id); by month(Day); by Day; order truncate(3, id); ", got)
}

// X15: Iceberg takes any name; whether a sink does is the sink's to say.
func TestDefinition_CreateTableAs_OddNames_X15(t *testing.T) {
	query := []*planv1.Column{{Name: "a b", EngineType: "INTEGER"}, {Name: "x=y", EngineType: "INTEGER"}, {Name: "p,q", EngineType: "HUGEINT"}, {Name: "n(1)", EngineType: "UINTEGER"}}
	got, err := define(t, `CREATE TABLE t AS SELECT 1 AS "a b"`, query)
	require.NoError(t, err)
	require.Equal(t, "a b INTEGER; x=y INTEGER; p,q DECIMAL(38,0); n(1) BIGINT; ", got)
}

func TestDefinition_CreateTableAs_Types(t *testing.T) {
	got, err := define(t, "CREATE TABLE t PARTITIONED BY (days(ts)) AS SELECT 1", columns("ts=TIMESTAMP_MS", "j=JSON", "e=ENUM('a')", "l=UTINYINT[3]", "m=MAP(VARCHAR, STRUCT(a UBIGINT))"))
	require.NoError(t, err)
	require.Equal(t, "ts TIMESTAMP; j VARCHAR; e VARCHAR; l SMALLINT[]; m MAP(VARCHAR, STRUCT(a DECIMAL(20,0))); by day(ts); ", got)

	got, err = define(t, "CREATE TABLE t (x, y) AS SELECT 1", columns("a=BLOB", "b=TIMESTAMP WITH TIME ZONE"))
	require.NoError(t, err)
	require.Equal(t, "x BLOB; y TIMESTAMPTZ; ", got)
}

func TestTypeChanges_NamesWhatIsStoredAsSomethingElse(t *testing.T) {
	query := columns("h=HUGEINT", "i=INTEGER", "d=DECIMAL(9,2)", "z=TIMESTAMP WITH TIME ZONE", "e=ENUM('a')", "a=INTEGER[2]", "m=MAP(VARCHAR, STRUCT(u UBIGINT, v VARCHAR[]))")
	s, err := sql.Parse("CREATE TABLE t AS SELECT 1")
	require.NoError(t, err)
	def, err := Definition(s.(*sql.CreateTable), query)
	require.NoError(t, err)
	require.Equal(t, []string{
		"column h: no table stores HUGEINT; it is stored as DECIMAL(38,0)",
		"column e: no table stores ENUM; it is stored as VARCHAR",
		"column a: no table stores INTEGER[2]; it is stored as INTEGER[]",
		"column m: no table stores UBIGINT (at value.u); it is stored as DECIMAL(20,0)",
	}, TypeChanges(query, def.GetSchema().GetFields()))
}

func TestDefinition_Refusals(t *testing.T) {
	two := columns("a=INTEGER", "A=INTEGER")
	for text, c := range map[string]struct {
		query []*planv1.Column
		want  string
	}{
		"CREATE TABLE t AS SELECT 1":                                      {two, `the columns "a" and "A" differ in case only`},
		"CREATE TABLE t AS SELECT 2":                                      {columns("a=INTEGER", "a=INTEGER"), "there are two columns a"},
		"CREATE TABLE t AS SELECT 3":                                      {columns("=INTEGER"), "column 1 has no name"},
		"CREATE TABLE t AS SELECT 4":                                      {columns("i=INTERVAL"), "no table stores the type INTERVAL"},
		"CREATE TABLE t AS SELECT 5":                                      {columns("s=STRUCT(a INTEGER, b TIME_NS)[]"), "TIME_NS (at element.b)"},
		"CREATE TABLE t AS SELECT 6":                                      {columns(`n="NULL"`), "has no type: write CAST(n AS VARCHAR)"},
		"CREATE TABLE t AS SELECT 7":                                      {columns("r=STRUCT(INTEGER, INTEGER)"), "write {'a': …, 'b': …}"},
		"CREATE TABLE t AS SELECT 8":                                      {columns("r=INET"), "no table stores the type INET"},
		"CREATE TABLE t AS SELECT 9":                                      {nil, "no columns"},
		"CREATE TABLE t (x) AS SELECT 1":                                  {two, "given 1 column name and the query has 2"},
		"CREATE TABLE t (a INT, s STRUCT(b INT, B INT))":                  {nil, `"b" and "B" differ in case only`},
		"CREATE TABLE t (a INT) PARTITIONED BY (b)":                       {nil, "PARTITIONED BY: column b is not in the table"},
		"CREATE TABLE t (a INT) ORDERED BY (b)":                           {nil, "ORDERED BY: column b is not in the table"},
		"CREATE TABLE t (a INT) PARTITIONED BY (hour(a))":                 {nil, "PARTITIONED BY hour(a): column a is INTEGER"},
		"CREATE TABLE t (a DATE) PARTITIONED BY (hour(a))":                {nil, "hour takes timestamps"},
		"CREATE TABLE t (a DOUBLE) PARTITIONED BY (bucket(4, a))":         {nil, "bucket takes integers"},
		"CREATE TABLE t (a DATE) PARTITIONED BY (truncate(4, a))":         {nil, "truncate takes"},
		"CREATE TABLE t (a INT[]) PARTITIONED BY (a)":                     {nil, "structs, lists and maps cannot"},
		"CREATE TABLE t (a INT[]) ORDERED BY (a)":                         {nil, "structs, lists and maps cannot"},
		"CREATE TABLE t (a INT) PARTITIONED BY (a, a)":                    {nil, "has a twice"},
		"CREATE TABLE t (a INT) WITH ('Signet.landed.x' = 'y')":           {nil, "is reserved"},
		"CREATE TABLE t (a INT) PARTITIONED BY (bucket(4,a),bucket(4,A))": {nil, "has bucket(4, a) twice"},
	} {
		_, err := define(t, text, c.query)
		require.ErrorContains(t, err, c.want, text)
	}
}
