package plan

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
	"github.com/stretchr/testify/require"
)

//go:embed casts.md
var castsDoc string

// sample gives a type with arguments for the names of casts.md that stand for many.
var sample = map[string]string{
	"DECIMAL": "DECIMAL(38,9)", "FIXED": "FIXED(4)", "ENUM": "ENUM('a')", "UNION": "UNION(a INTEGER)",
}

func sampled(name string) string {
	if s, ok := sample[name]; ok {
		return s
	}
	return name
}

func tableType(t *testing.T, text string) *planv1.Type {
	t.Helper()
	typ, err := sql.ParseType(text)
	require.NoError(t, err, text)
	return typ
}

func engineType(t *testing.T, text string) EngineType {
	t.Helper()
	typ, err := ParseEngineType(text)
	require.NoError(t, err, text)
	return typ
}

// TestAssignable_EqualsTheDocumentedTable reads casts.md and compares every pair of its types with the code.
func TestAssignable_EqualsTheDocumentedTable(t *testing.T) {
	documented := map[string]map[string]bool{}
	targets := map[string]bool{"DECIMAL": true}
	for row := range strings.SplitSeq(castsDoc, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != 4 || strings.Contains(row, "---") || strings.Contains(row, "from (DuckDB)") {
			continue
		}
		for from := range strings.SplitSeq(cells[1], ",") {
			into := map[string]bool{}
			for to := range strings.SplitSeq(cells[2], ",") {
				if to = strings.TrimSpace(to); to != "" {
					into[to], targets[to] = true, true
				}
			}
			documented[strings.TrimSpace(from)] = into
		}
	}
	require.Len(t, targets, 17, "every kind but structs, lists, maps and TIMESTAMPTZ_NS: %v", slices.Sorted(maps.Keys(targets)))
	require.Greater(t, len(documented), 25)
	for from, into := range documented {
		for to := range targets {
			err := assignable(engineType(t, sampled(from)), tableType(t, sampled(to)), "")
			require.Equal(t, into[to], err == nil, "%s into %s: %v", from, to, err)
		}
	}
}

func TestAssignable_DecimalsAndNesting(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     string // "": allowed
	}{
		{"DECIMAL(10,2)", "DECIMAL(10,2)", ""},
		{"DECIMAL(10,2)", "DECIMAL(5,2)", ""}, // integral digits are checked on every value
		{"DECIMAL(10,2)", "DECIMAL(38,3)", ""},
		{"DECIMAL(10,2)", "DECIMAL(38,1)", "no implicit cast"},
		{"DECIMAL(18,0)", "INT", ""},
		{"DECIMAL(18,1)", "BIGINT", "no implicit cast"},
		{"DECIMAL(17,17)", "DOUBLE", ""},
		{"DECIMAL(18,2)", "DOUBLE", "no implicit cast"},
		{"DECIMAL(9,2)", "FLOAT", ""},
		{"DECIMAL(10,2)", "FLOAT", "no implicit cast"},
		{"INTEGER[]", "BIGINT[]", ""},
		{"INTEGER[3]", "BIGINT[]", ""},
		{`"NULL"[]`, "STRUCT(a INT)[]", ""},
		{"VARCHAR[]", "BIGINT[]", "element from VARCHAR to BIGINT"},
		{"INTEGER", "BIGINT[]", "no implicit cast"},
		{"MAP(VARCHAR, INTEGER)", "MAP(VARCHAR, BIGINT)", ""},
		{"MAP(INTEGER, INTEGER)", "MAP(VARCHAR, BIGINT)", "key from INTEGER to VARCHAR"},
		{"MAP(VARCHAR, DOUBLE)", "MAP(VARCHAR, BIGINT)", "value from DOUBLE to BIGINT"},
		// X2: by name at every depth.
		{"STRUCT(b INTEGER, a INTEGER)", "STRUCT(a INT, b INT)", ""},
		{"STRUCT(b INTEGER, a INTEGER)[]", "STRUCT(a INT, b INT)[]", ""},
		{"MAP(VARCHAR, STRUCT(b INTEGER, a INTEGER))", "MAP(VARCHAR, STRUCT(a INT, b INT))", ""},
		{"STRUCT(A INTEGER, B INTEGER)", "STRUCT(a INT, b INT)", ""},
		{"STRUCT(a INTEGER)", "STRUCT(a INT, b INT)", ""},
		{"STRUCT(a INTEGER)", "STRUCT(a INT, b INT NOT NULL)", "b is required and the query's struct lacks it"},
		{"STRUCT(a INTEGER, b INTEGER, c INTEGER)", "STRUCT(a INT, b INT)", "the table's struct has no field c"},
		{"STRUCT(a INTEGER, namee INTEGER)", "STRUCT(a INT, name INT)", "did you mean name?"},
		{"STRUCT(a INTEGER, A INTEGER)", "STRUCT(a INT)", "both go to a"},
		{"STRUCT(x INTEGER)[]", "STRUCT(a INT)[]", "no field element.x"},
		{`STRUCT(a "NULL")`, "STRUCT(a INT NOT NULL)", "a is required and the query gives NULL"},
		{`STRUCT(a "NULL")`, "STRUCT(a INT)", ""},
		{"STRUCT(s STRUCT(x DOUBLE))", "STRUCT(s STRUCT(x INT))", "s.x from DOUBLE to INTEGER"},
		{"STRUCT(INTEGER, VARCHAR)", "STRUCT(a INT, b STRING)", ""},
		{"STRUCT(INTEGER, VARCHAR)", "STRUCT(a INT)", "2 values without names"},
		{"STRUCT(VARCHAR)", "STRUCT(a INT)", "a from VARCHAR to INTEGER"},
	} {
		err := assignable(engineType(t, c.from), tableType(t, c.to), "")
		if c.want == "" {
			require.NoError(t, err, "%s into %s", c.from, c.to)
			continue
		}
		require.ErrorContains(t, err, c.want, "%s into %s", c.from, c.to)
	}
}

// What DuckDB 1.5 prints, read and written back.
func TestParseEngineType_RoundTrip(t *testing.T) {
	for _, text := range []string{
		"INTEGER", `"NULL"`, `"NULL"[]`, "DECIMAL(18,3)", "INTEGER[3]", "INTEGER[][2][]", "MAP(VARCHAR, STRUCT(b INTEGER, a INTEGER))",
		`STRUCT("order" INTEGER, "ü b" VARCHAR, "a""b" INTEGER[])`, "STRUCT(INTEGER, VARCHAR)", "STRUCT(TIMESTAMP WITH TIME ZONE, INTEGER[])",
		"STRUCT(a TIMESTAMP WITH TIME ZONE, uuid UUID)", "ENUM('a', 'b''c')", "UNION(num INTEGER, str VARCHAR)", "TIME WITH TIME ZONE", "HUGEINT",
		`STRUCT(a "NULL", "NULL")`, `MAP("NULL", "NULL")`, "STRUCT(STRUCT(a INTEGER), DECIMAL(3,1))", "JSON", "VARIANT", "TIME_NS",
	} {
		got := engineType(t, text)
		again := engineType(t, got.String())
		require.Equal(t, got, again, text)
	}
	require.Equal(t, "GEOMETRY", engineType(t, "GEOMETRY('OGC:CRS84')").Name)
	for _, bad := range []string{"", "STRUCT(", "DECIMAL(39,1)", "DECIMAL(3,4)", "MAP(INTEGER)", "INTEGER]", "INTEGER[", "1", "ENUM(a)", "STRUCT()", strings.Repeat("STRUCT(a ", 10000)} {
		_, err := ParseEngineType(bad)
		require.Error(t, err, bad)
	}
}

func TestCastType_WritesWhatTheEngineReads(t *testing.T) {
	for table, want := range map[string]string{
		"BIGINT": "BIGINT", "FIXED(4)": "BLOB", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "DECIMAL(9,2)": "DECIMAL(9,2)", "STRING[][]": "VARCHAR[][]",
		`STRUCT("a b" INT, "c""d" MAP<STRING, INT[]>)`: `STRUCT("a b" INTEGER, "c""d" MAP(VARCHAR, INTEGER[]))`,
	} {
		got, err := CastType(tableType(t, table))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for table, want := range map[string]string{
		"TIMESTAMPTZ_NS":              "no type for TIMESTAMPTZ_NS",
		"STRUCT(a INT, A INT)":        `cannot tell the struct's fields "a" and "A" apart`,
		"MAP(TIMESTAMPTZ_NS, INT)[]":  "no type for",
		"MAP(INT, TIMESTAMPTZ_NS)":    "no type for",
		"STRUCT(x TIMESTAMPTZ_NS)":    "no type for",
		"STRUCT(x STRUCT(a INT, A B)": "",
	} {
		typ, err := sql.ParseType(table)
		if want == "" {
			require.Error(t, err)
			continue
		}
		_, err = CastType(typ)
		require.ErrorContains(t, err, want)
	}
	for _, malformed := range []*planv1.Type{
		nil, {}, {Kind: planv1.TypeKind_TYPE_KIND_LIST}, {Kind: planv1.TypeKind_TYPE_KIND_MAP}, {Kind: planv1.TypeKind_TYPE_KIND_STRUCT},
	} {
		_, err := CastType(malformed)
		require.Error(t, err)
		require.NotEmpty(t, TypeText(malformed))
	}
}

// TypeText is what DESCRIBE shows: CREATE TABLE must read it.
func TestTypeText_ReadsBack(t *testing.T) {
	for _, text := range []string{"INTEGER", "FIXED(3)", "TIMESTAMPTZ_NS", "TIMESTAMPTZ", "LIST(INTEGER NOT NULL)", `STRUCT("a b" INTEGER NOT NULL, c VARCHAR[])`, "MAP(VARCHAR, DECIMAL(3,1) NOT NULL)"} {
		require.Equal(t, text, TypeText(tableType(t, text)))
	}
}
