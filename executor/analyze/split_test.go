package analyze

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestRowWise(t *testing.T) {
	dir := testData(t)
	for sql, reason := range map[string]string{
		"SELECT * FROM flights":                                                  "",
		"SELECT i + 1, upper(carrier) FROM flights WHERE i > 1":                  "",
		"FROM read_parquet('flights.parquet')":                                   "",
		"SELECT i, filename FROM read_parquet('flights.parquet', filename=true)": "",
		"SELECT i, file_row_number FROM read_parquet('flights.parquet', file_row_number=true) WHERE file_row_number > 1": "",
		"SELECT unnest([i, i]) FROM flights":                                                              "",
		"SELECT i FROM flights UNION ALL SELECT i * 2 FROM flights":                                       "",
		"SELECT i, random() FROM flights":                                                                 "",
		"SELECT i, now() FROM flights WHERE current_date > DATE '2020-01-01'":                             "",
		"SELECT (flights).x, CASE WHEN i > 1 THEN 1 END FROM flights":                                     "",
		"WITH c AS (SELECT * FROM flights) SELECT i FROM c WHERE i > 0":                                   "",
		"SELECT i FROM (SELECT * FROM flights) WHERE i IN (1, 2, 3)":                                      "",
		"SELECT count(*) FROM flights":                                                                    "constant", // from the footers
		"SELECT avg(i) FROM flights":                                                                      "aggregate",
		"SELECT carrier, sum(i) FROM flights GROUP BY 1":                                                  "GROUP BY",
		"SELECT DISTINCT carrier FROM flights":                                                            "GROUP BY or DISTINCT",
		"SELECT i FROM flights UNION SELECT i FROM flights":                                               "GROUP BY or DISTINCT",
		"SELECT i FROM flights LIMIT 2":                                                                   "LIMIT",
		"SELECT i FROM flights LIMIT 50%":                                                                 "LIMIT",
		"SELECT i FROM flights ORDER BY i":                                                                "ORDER BY",
		"SELECT i FROM flights ORDER BY i LIMIT 1":                                                        "ORDER BY",
		"SELECT row_number() OVER () FROM flights":                                                        "window",
		"SELECT rank() OVER (ORDER BY i) FROM flights":                                                    "window",
		"SELECT i FROM flights TABLESAMPLE 50%":                                                           "sample",
		"SELECT i FROM flights USING SAMPLE 1":                                                            "sample",
		"SELECT a.i FROM flights a JOIN flights b USING (i)":                                              "join",
		"SELECT i FROM flights WHERE i > (SELECT avg(i) FROM flights)":                                    "it has",
		"SELECT i FROM flights WHERE i IN (SELECT i FROM names)":                                          "2 sources",
		"SELECT i FROM flights UNION ALL SELECT 1":                                                        "constant",
		"SELECT i FROM flights, range(2)":                                                                 "join",
		"SELECT i FROM flights WHERE i IN (SELECT range FROM range(2))":                                   "join",
		"SELECT setseed(0.5), random(), i FROM flights":                                                   "setseed",
		"SELECT i FROM flights WHERE false":                                                               "no rows",
		"SELECT a FROM 'text.csv'":                                                                        "CSV",
		"SELECT j FROM 'j.json'":                                                                          "JSON",
		"SELECT 1":                                                                                        "no table",
		"WITH RECURSIVE r(n) AS (SELECT i FROM flights UNION ALL SELECT n + 1 FROM r WHERE n < 5) FROM r": "recursive",
	} {
		out, _ := twoRounds(t, dir, sql)
		require.Nil(t, out.Error, "%s: %v", sql, out.Error)
		if reason == "" {
			require.True(t, out.RowWise, "%s: %s\n%s", sql, out.NotRowWise, out.PlanText)
			continue
		}
		require.False(t, out.RowWise, sql)
		require.Contains(t, out.NotRowWise, reason, sql)
	}
}

func TestAnalyze_BindOnly(t *testing.T) {
	dir := testData(t)
	first, sources := twoRounds(t, dir, "SELECT i FROM flights")
	r := req("SELECT CAST(i AS VARCHAR) AS s FROM (" + first.Sql + ") q")
	r.BindOnly, r.Sources = true, sources
	out := Analyze(t.Context(), testPool, r)
	require.Nil(t, out.Error)
	require.Equal(t, "s", out.Columns[0].Name)
	require.True(t, out.RowWise)
	r.Sql = "SELECT 1; SELECT 2"
	require.NotNil(t, Analyze(t.Context(), testPool, r).Error)
	r.Sql = "COPY (SELECT 1) TO '/tmp/x'"
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, Analyze(t.Context(), testPool, r).Error.Class)
}

func TestAnalyze_ErrorsInTheUsersNames(t *testing.T) {
	dir := testData(t)
	require.NoError(t, os.WriteFile(dir+"/zero.parquet", nil, 0o644))
	require.NoError(t, os.WriteFile(dir+"/html.parquet", []byte("<html>404</html>"), 0o644))
	write(t, dir, "COPY (SELECT 1.5 AS i, 'x' AS carrier) TO '$DIR/other.parquet'")
	for sql, parts := range map[string][]string{
		"SELECT nope FROM lake.demo.flights":                               {"nope", "Candidate bindings"},
		"SELECT q.i FROM lake.demo.flights":                                {"q", "flights"},
		"SELECT i + carrier FROM flights":                                  {"+(BIGINT, VARCHAR)", "cast"},
		"SELECT sum(carrier) FROM flights":                                 {"sum(VARCHAR)"},
		"SELECT i FROM flights, names":                                     {"Ambiguous", "i"},
		"SELECT * FROM 'zero.parquet'":                                     {"zero.parquet"},
		"SELECT * FROM 'html.parquet'":                                     {"html.parquet"},
		"SELECT i FROM read_parquet(['flights.parquet', 'other.parquet'])": {"other.parquet", `"i"`, "union_by_name"},
		"SELECT * FROM read_csv('text.csv', nonsense=1)":                   {"nonsense"},
	} {
		out, _ := twoRounds(t, dir, sql)
		require.NotNil(t, out.Error, sql)
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.Error.Class, "%s: %v", sql, out.Error)
		for _, p := range parts {
			require.Contains(t, out.Error.Message+" "+out.Error.Hint, p, sql)
		}
		require.NotContains(t, out.Error.Message+out.Error.Hint, "signet_source", sql)
		require.NotContains(t, out.Error.Message, "LINE 1", sql)
	}
}

func TestAnalyze_ChangedSourceIsNamed(t *testing.T) { // S73
	dir := testData(t)
	first := ok(t, "SELECT i FROM flights")
	src := resolve(t, first.Unresolved[0], dir+"/flights.parquet")
	src.GetFile().Files[0].SizeBytes++
	out := run(t, "SELECT i FROM flights", src)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.Error.Class)
	require.Contains(t, out.Error.Message, "flights.parquet has changed")
}

func TestAnalyze_CaseClash(t *testing.T) { // X3
	scan := &planv1.Source{View: "signet_source_1", Kind: &planv1.Source_Table{Table: &planv1.TableScan{Table: "lake.demo.t", Schema: &planv1.Schema{Fields: []*planv1.Field{
		{Id: 1, Name: "a", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}}, {Id: 2, Name: "A", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}},
	}}}}}
	out := run(t, `SELECT "A" FROM t`, scan)
	require.Contains(t, out.Error.Message, `lake.demo.t: columns "a" and "A" differ only in case`)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.Error.Class)
}

func TestAnalyze_Types(t *testing.T) {
	out := ok(t, `SELECT true, 1::TINYINT, 1::SMALLINT, 1, 1::BIGINT, 1::UTINYINT, 1::USMALLINT, 1::UINTEGER, 1::UBIGINT, 1::HUGEINT, 1::FLOAT, 1e0, 1.25,
		DATE '2020-01-01', TIME '10:00', TIMESTAMP '2020-01-01', TIMESTAMPTZ '2020-01-01', TIMESTAMP_S '2020-01-01', TIMESTAMP_MS '2020-01-01', TIMESTAMP_NS '2020-01-01',
		'x' || 'y', 'x'::BLOB, uuid(), 'a'::ENUM('a', 'b'), '{}'::JSON, [1], {'a': 1, 'b c': 'x'}, MAP {'k': 1}, [1, 2]::INT[2],
		INTERVAL 1 DAY, '1'::BIT, union_value(a := 1), '10:00+01'::TIMETZ, [INTERVAL 1 DAY]`)
	var kinds, engines []string
	for _, c := range out.Columns {
		kinds = append(kinds, strings.TrimPrefix(c.Type.Kind.String(), "TYPE_KIND_"))
		engines = append(engines, c.EngineType)
	}
	require.Equal(t, strings.Fields(`BOOLEAN INT8 INT16 INT32 INT64 INT32 INT32 INT64 DECIMAL DECIMAL FLOAT32 FLOAT64 DECIMAL DATE TIME_MICROS TIMESTAMP_MICROS
		TIMESTAMPTZ_MICROS TIMESTAMP_MICROS TIMESTAMP_MICROS TIMESTAMP_NANOS STRING BINARY UUID STRING STRING LIST STRUCT MAP LIST
		UNSPECIFIED UNSPECIFIED UNSPECIFIED UNSPECIFIED UNSPECIFIED`), kinds)
	require.Equal(t, []string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(3,2)",
		"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "VARCHAR", "BLOB", "UUID", "ENUM('a', 'b')", "JSON", "INTEGER[]",
		`STRUCT("a" INTEGER, "b c" VARCHAR)`, "MAP(VARCHAR, INTEGER)", "INTEGER[2]", "INTERVAL", "BIT", `UNION("a" INTEGER)`, "TIME WITH TIME ZONE", "INTERVAL[]",
	}, engines)
	require.EqualValues(t, 20, out.Columns[8].Type.Precision)
	require.EqualValues(t, 38, out.Columns[9].Type.Precision)
	for i, e := range engines { // every name is one that a cast understands
		cast := ok(t, "SELECT CAST(NULL AS "+e+") AS c")
		require.Equal(t, e, cast.Columns[0].EngineType, i)
	}
}

func TestAnalyze_StringLiterals(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 'a', 1, NULL, 'x' || 'y', upper('x')":              "s.n..",
		"SELECT 'a' AS x FROM range(2)":                            "s",
		"SELECT * FROM (VALUES ('a', 1), (NULL, 2)) v(x, y)":       "s.",
		"SELECT * FROM (SELECT 'a' AS x)":                          "s",
		"SELECT x FROM (SELECT 'a' AS x)":                          ".",
		"SELECT 'a' UNION ALL SELECT NULL UNION ALL SELECT 'b'":    "s",
		"SELECT 'a' UNION ALL SELECT range::VARCHAR FROM range(2)": ".",
		"SELECT *, 'a' FROM range(2)":                              "..",
		"SELECT 'a', * FROM range(2)":                              "s.",
		"SELECT DATE '2020-01-01', CAST('1' AS INT), E'x', $$y$$":  "..ss",
	} {
		out := ok(t, sql)
		got := ""
		for _, c := range out.Columns {
			switch {
			case c.StringLiteral && c.EngineType == `"NULL"`:
				got += "n"
			case c.StringLiteral:
				got += "s"
			default:
				got += "."
			}
		}
		require.Equal(t, want, got, sql)
	}
}

func TestAnalyze_LargeText(t *testing.T) { // X18: a 6 MiB statement
	row := ", (12345, '" + strings.Repeat("a value of some length", 100) + "')"
	out := ok(t, "VALUES (0, 'x')"+strings.Repeat(row, 6<<20/len(row)))
	require.True(t, out.Columns[1].StringLiteral)
	require.Contains(t, out.PlanText, "rows: 28")
	require.Nil(t, out.Staged, "the text is not repeated")
	out = ok(t, "SELECT '"+strings.Repeat("x", 6<<20)+"' AS s FROM (SELECT now())")
	require.Len(t, out.Columns, 1)
}

func TestAnalyze_DeepNesting(t *testing.T) {
	sql := "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000)
	require.NotPanics(t, func() { run(t, sql) })
	out := run(t, "SELECT "+strings.Repeat("1+", 5000)+"1")
	if out.Error != nil {
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, out.Error.Class, out.Error.Message)
	}
}
