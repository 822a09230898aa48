package analyze

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// filterSchema has a column of every kind, with ids from 1.
func filterSchema() *planv1.Schema {
	s := &planv1.Schema{}
	for i, c := range []struct {
		name string
		typ  *planv1.Type
	}{
		{"i", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}},
		{"l", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}},
		{"f", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT32}},
		{"d", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}},
		{"n", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}},
		{"dt", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DATE}},
		{"ts", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS}},
		{"tz", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS}},
		{"s", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}},
		{"b", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_BOOLEAN}},
		{"u", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_UUID}},
		{"bin", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_BINARY}},
		{"st", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{{Id: 100, Name: "x", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}}}}},
		{"li", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Id: 101, Name: "element", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}}}}},
		{"fx", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 2}},
		{"tm", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIME_MICROS}},
		{"ns", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS}},
	} {
		s.Fields = append(s.Fields, &planv1.Field{Id: int32(i + 1), Name: c.name, Type: c.typ})
	}
	return s
}

// shown writes a predicate for people.
func shown(p *planv1.Predicate, names map[int32]string) string {
	join := func(terms []*planv1.Predicate, by string) string {
		out := make([]string, len(terms))
		for i, t := range terms {
			out[i] = shown(t, names)
		}
		return "(" + strings.Join(out, by) + ")"
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		return fmt.Sprint(k.Constant)
	case *planv1.Predicate_All:
		return join(k.All.GetTerms(), " AND ")
	case *planv1.Predicate_Any:
		return join(k.Any.GetTerms(), " OR ")
	case *planv1.Predicate_Not:
		return "NOT " + shown(k.Not, names)
	case *planv1.Predicate_IsNull:
		return names[k.IsNull.GetFieldId()] + " IS NULL"
	case *planv1.Predicate_Comparison:
		var vs []string
		for _, v := range k.Comparison.GetValues() {
			switch x := v.GetKind().(type) {
			case *planv1.Value_Integer:
				vs = append(vs, fmt.Sprint(x.Integer))
			case *planv1.Value_Decimal:
				vs = append(vs, fmt.Sprintf("%x/%d", x.Decimal.GetUnscaled(), x.Decimal.GetScale()))
			case *planv1.Value_Binary:
				vs = append(vs, fmt.Sprintf("%x", x.Binary))
			case *planv1.Value_String_:
				vs = append(vs, x.String_)
			case *planv1.Value_Boolean:
				vs = append(vs, fmt.Sprint(x.Boolean))
			case *planv1.Value_Float32:
				vs = append(vs, fmt.Sprint(x.Float32))
			case *planv1.Value_Float64:
				vs = append(vs, fmt.Sprint(x.Float64))
			}
		}
		return names[k.Comparison.GetFieldId()] + " " + strings.TrimPrefix(k.Comparison.GetOp().String(), "COMPARE_OP_") + " " + strings.Join(vs, ",")
	}
	return "?"
}

// filtersOf asks for the filters of a statement over t and, with the same schema, u.
func filtersOf(t testing.TB, sql string) map[string]string {
	t.Helper()
	first := ok(t, sql)
	req := &executorv1.Analyze{RequestId: "r", Sql: sql, NowMicros: nowMicros, Filters: true}
	names := map[int32]string{100: "st.x"}
	for _, f := range filterSchema().GetFields() {
		names[f.GetId()] = f.GetName()
	}
	aliases := map[string]string{}
	for _, u := range first.GetUnresolved() {
		src := &planv1.Source{View: u.GetView(), Alias: u.GetAlias()}
		if len(u.GetTable()) > 0 {
			src.Kind = &planv1.Source_Table{Table: &planv1.TableScan{Schema: filterSchema(), Table: u.GetAlias()}}
		} else {
			src.Kind = &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet"}}
		}
		aliases[u.GetView()] = u.GetAlias()
		req.Sources = append(req.Sources, src)
	}
	res := Analyze(t.Context(), testPool, req)
	require.Nil(t, res.GetError(), "%s: %v", sql, res.GetError())
	require.Empty(t, res.GetUnresolved())
	out := map[string]string{}
	for view, f := range res.GetFilters() {
		text := shown(f.GetPredicate(), names)
		if f.GetExact() {
			text += " exact"
		}
		out[aliases[view]] = text
	}
	return out
}

func TestFilters_OfOneTable(t *testing.T) {
	for where, want := range map[string]string{
		"i = 5":                                "i EQ 5 exact",
		"5 < I":                                "i GT 5 exact",
		"t.i >= -5 AND l <> 7":                 "(i GE -5 AND l NE 7) exact",
		"i IN (1, 2, '3')":                     "i IN 1,2,3 exact",
		"i NOT IN (1, 2)":                      "NOT i IN 1,2 exact",
		"i BETWEEN 1 AND 1 + 1":                "(i GE 1 AND i LE 2) exact",
		"l BETWEEN 1 AND 2":                    "(l GE 1 AND l LE 2) exact",
		"NOT (i = 1 OR l = 2)":                 "NOT (i EQ 1 OR l EQ 2) exact",
		"i IS NULL":                            "i IS NULL exact",
		"st IS NOT NULL AND li IS NULL":        "(NOT st IS NULL AND li IS NULL) exact",
		"st.x = 3 AND t.st.x < 9":              "(st.x EQ 3 AND st.x LT 9) exact",
		"b":                                    "b EQ true exact",
		"NOT b AND true":                       "NOT b EQ true exact",
		"b = false":                            "b EQ false exact",
		"false":                                "false exact",
		"s = 'x''y'":                           "s EQ x'y exact",
		"s LIKE 'ab%'":                         "s STARTS_WITH ab exact",
		"s LIKE 'ab%c'":                        "s STARTS_WITH ab",
		"s LIKE '%ab'":                         "",
		"s NOT LIKE 'ab%'":                     "NOT s STARTS_WITH ab exact",
		"s NOT LIKE 'a_c'":                     "",
		"s LIKE 'abc'":                         "s EQ abc exact",
		"starts_with(s, 'q')":                  "s STARTS_WITH q exact",
		"dt = '2020-01-02'":                    "dt EQ 18263 exact",
		"dt >= DATE '1969-12-31'":              "dt GE -1 exact",
		"dt < TIMESTAMP '2020-01-02 00:00:00'": "dt LT 18263 exact",
		"dt < TIMESTAMP '2020-01-02 12:00:00'": "", // lies between two dates
		"ts > DATE '1970-01-02'":               "ts GT 86400000000 exact",
		"tz = TIMESTAMPTZ '1970-01-01 01:00:00+01'": "tz EQ 0 exact",
		"ns = '1970-01-01 00:00:00.000000001'":      "ns EQ 1 exact",
		"tm = '00:00:01'":                           "tm EQ 1000000 exact",
		"dt < 'infinity'":                           "",
		"dt < now()::DATE":                          "dt LT 20574 exact",
		"n = 1.5":                                   "n EQ 0096/2 exact",
		"n = 1.555":                                 "", // between two values
		"n > -1":                                    "n GT 9c/2 exact",
		"n = 1.5e0":                                 "", // DuckDB compares as DOUBLE
		"i = 5.0":                                   "i EQ 5 exact",
		"i < 5.5":                                   "",
		"i = 3000000000":                            "", // no value of the column
		"l = 1e18":                                  "",
		"l < 1e3":                                   "l LT 1000 exact",
		"d = 0.1":                                   "d EQ 0.1 exact",
		"d < 'NaN'":                                 "d LT NaN exact",
		"u = '00000000-0000-0000-0000-0000000000ff'": "u EQ 000000000000000000000000000000ff exact",
		`bin = '\xAA\x00'::BLOB`:                     "bin EQ aa00 exact",
		`fx = '\xAA\x00'::BLOB`:                      "fx EQ aa00 exact",
		`fx = '\xAA'::BLOB`:                          "",
		"i = NULL":                                   "",
		"i = l":                                      "",
		"i + 1 = 2":                                  "",
		"i = 1 AND l + 1 = 2":                        "i EQ 1",
		"i = 1 OR l + 1 = 2":                         "",
		"NOT (i = 1 AND l + 1 = 2)":                  "",
		"i = 1 AND NOT (l = 5.5)":                    "i EQ 1",
		"s = 5":                                      "",
		"i = CAST('5' AS VARCHAR)":                   "",
		"nosuch = 1":                                 "",
		"i IS NOT DISTINCT FROM 3":                   "",
		"s COLLATE nocase = 'x'":                     "",
		"i = ANY (SELECT 1)":                         "",
		"i = (SELECT 1)":                             "",
		"li = [1]":                                   "",
	} {
		got := filtersOf(t, "SELECT * FROM t WHERE "+where)
		assert.Equal(t, want, got["t"], where)
	}
	require.Equal(t, "true exact", filtersOf(t, "SELECT l FROM t")["t"])
	require.Equal(t, "i EQ 1", filtersOf(t, "SELECT l FROM t WHERE i = 1 ORDER BY l LIMIT 1")["t"], "not all rows are needed")
	long := make([]string, maxListed+1)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	require.Empty(t, filtersOf(t, "SELECT * FROM t WHERE i IN ("+strings.Join(long, ",")+")"))
}

func TestFilters_OfSeveralTables(t *testing.T) {
	for sql, want := range map[string]map[string]string{
		"SELECT * FROM t JOIN u ON t.i = u.i WHERE t.l = 1 AND u.l = 2":        {"t": "l EQ 1", "u": "l EQ 2"},
		"SELECT * FROM t JOIN u ON t.i = u.i WHERE l = 1":                      {}, // whose?
		"SELECT * FROM t LEFT JOIN u USING (i) WHERE t.l = 1 AND u.l = 2":      {"t": "l EQ 1"},
		"SELECT * FROM t RIGHT JOIN u USING (i) WHERE t.l = 1 AND u.l = 2":     {"u": "l EQ 2"},
		"SELECT * FROM t FULL JOIN u USING (i) WHERE t.l = 1 AND u.l = 2":      {},
		"SELECT * FROM t SEMI JOIN u USING (i) WHERE t.l = 1":                  {"t": "l EQ 1"},
		"SELECT * FROM t POSITIONAL JOIN u WHERE t.l = 1":                      {},
		"SELECT * FROM t ASOF JOIN u ON t.i >= u.i WHERE t.l = 1":              {},
		"SELECT * FROM t, u WHERE t.l = 1":                                     {"t": "l EQ 1"},
		"SELECT * FROM t AS a JOIN t AS b USING (i) WHERE a.l = 1 AND b.l = 2": {"t": "(l EQ 1 OR l EQ 2)"},
		"SELECT * FROM t AS a JOIN t AS b USING (i) WHERE a.l = 1":             {},
		"SELECT * FROM t WHERE l = 1 UNION ALL SELECT * FROM t WHERE l = 2":    {"t": "(l EQ 1 OR l EQ 2)"},
		"SELECT * FROM t WHERE l = 1 AND i IN (SELECT i FROM u WHERE s = 'x')": {"t": "l EQ 1", "u": "s EQ x exact"},
		"SELECT * FROM t WHERE l = 1 AND i IN (SELECT i FROM t)":               {},
		"WITH c AS (SELECT * FROM t WHERE l = 1) SELECT * FROM c WHERE i = 2":  {"t": "l EQ 1 exact"},
		"SELECT * FROM (SELECT * FROM t WHERE l = 1) x WHERE x.i = 2":          {"t": "l EQ 1 exact"},
		"SELECT * FROM t JOIN 'f.parquet' f ON true WHERE i = 1 AND t.l = 2":   {"t": "l EQ 2"}, // the file may have an i
		"SELECT * FROM t x(a) WHERE x.l = 1":                                   {},
		"SELECT * FROM t TABLESAMPLE 10% WHERE l = 1":                          {},
		// ON decides about the rows of a side that has no effect where it matches nothing.
		"SELECT * FROM t JOIN u ON t.i = u.i AND t.l = 1 AND u.l > 2":                                            {"t": "l EQ 1", "u": "l GT 2"},
		"SELECT * FROM t JOIN u ON t.l = 1 OR u.l > 2":                                                           {},
		"SELECT * FROM t LEFT JOIN u ON t.i = u.i AND t.l = 1 AND u.l > 2":                                       {"u": "l GT 2"},
		"SELECT * FROM t RIGHT JOIN u ON t.i = u.i AND t.l = 1 AND u.l > 2 WHERE t.s = 'x'":                      {"t": "l EQ 1"},
		"SELECT * FROM t FULL JOIN u ON t.l = 1 AND u.l > 2":                                                     {},
		"SELECT * FROM t SEMI JOIN u ON t.i = u.i AND t.l = 1 AND u.l > 2":                                       {"t": "l EQ 1", "u": "l GT 2"},
		"SELECT * FROM t ANTI JOIN u ON t.i = u.i AND t.l = 1 AND u.l > 2":                                       {"u": "l GT 2"},
		"SELECT * FROM t RIGHT JOIN u ON t.l = 1 JOIN 'f.parquet' f ON t.i = 2 AND u.i = 3 AND f.a = t.i":        {"t": "l EQ 1", "u": "i EQ 3"},
		"SELECT * FROM 'f.parquet' f LEFT JOIN (t JOIN u ON t.i = u.i AND t.s = 'y') ON t.l = 1 AND u.l IS NULL": {"t": "(l EQ 1 AND s EQ y)", "u": "l IS NULL"},
		"SELECT * FROM 'f.parquet' f RIGHT JOIN (t LEFT JOIN u ON u.i = 1) ON u.l IS NULL":                       {"u": "i EQ 1"}, // and u.l decides nothing
		"SELECT * FROM (t LEFT JOIN u ON u.i = 1) JOIN 'f.parquet' f ON u.l IS NULL AND t.l = 2":                 {"t": "l EQ 2", "u": "i EQ 1"},
		"SELECT * FROM t RIGHT JOIN (SELECT true AS m, * FROM u WHERE l = 7) AS s ON (t.i = s.i AND t.l = 1)":    {"t": "l EQ 1", "u": "l EQ 7 exact"},
		"SELECT (SELECT max(u.i) FROM u WHERE u.l = t.l AND u.s = 'x') FROM t WHERE t.i = 1":                     {"t": "i EQ 1 exact", "u": "s EQ x"},
	} {
		got := filtersOf(t, sql)
		for table, text := range got {
			if text == "true" {
				delete(got, table)
			}
		}
		assert.Equal(t, want, got, sql)
	}
}
