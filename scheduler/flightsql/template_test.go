package flightsql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/sql"
)

func TestTemplate_PlaceholdersAreTokensOnly(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT ?":          "SELECT (A)",
		"SELECT ?, ?":       "SELECT (A), (B)",
		"SELECT $2, $1, $2": "SELECT (B), (A), (B)",
		"SELECT $b, $a, $B": "SELECT (A), (B), (A)",
		"SELECT '?', \"?\", $$ ? $$, $x$ ? $1 $x$":  "",
		"SELECT /* ? /* ? */ ? */ 1 -- ?\n, ?":      "SELECT /* ? /* ? */ ? */ 1 -- ?\n, (A)",
		"SELECT E'\\'?' || ?":                       "SELECT E'\\'?' || (A)",
		"SELECT 'it''s ?' || ? ;":                   "SELECT 'it''s ?' || (A) ;",
		"INSERT INTO t VALUES (?, 1)":               "INSERT INTO t VALUES ((A), 1)",
		"CREATE TABLE t AS SELECT ? AS x":           "CREATE TABLE t AS SELECT (A) AS x",
		"EXPLAIN SELECT ?":                          "EXPLAIN SELECT (A)",
		"SELECT a$1 FROM t":                         "",
		"SELECT x[?], {'a': ?}":                     "SELECT x[(A)], {'a': (B)}",
		"WITH q AS (SELECT ? AS a) SELECT * FROM q": "WITH q AS (SELECT (A) AS a) SELECT * FROM q",
		"SELECT ?::INT":                             "SELECT (A)::INT",
		"SELECT\u00a0?":                             "SELECT\u00a0(A)",
		"SELECT 'ü', ?":                             "SELECT 'ü', (A)",
	} {
		tm, err := parseTemplate(text)
		require.NoError(t, err, text)
		if want == "" {
			require.Zero(t, tm.count, text)
			want = text
		}
		require.Equal(t, want, tm.with([][]string{{"A", "B"}}), text)
	}
}

func TestTemplate_Refusals(t *testing.T) {
	for text, says := range map[string]string{
		"SELECT ?, $1": "one kind", "SELECT $a, ?": "one kind", "SELECT $2": "lacks $1", "SELECT $0": "from $1", "SELECT ?1": "write ? or $1", "SELECT $99999999": "from $1",
		"DROP TABLE ?": "", "CREATE TABLE t (a INT) WITH ('k' = ?)": "", "INSERT INTO ? SELECT 1": "", "": "no statement", "SELECT $1.5": "from $1",
		"SELECT " + strings.Repeat("?,", maxParameters) + "?": "at most",
	} {
		_, err := parseTemplate(text)
		require.Equal(t, codes.InvalidArgument, status.Code(err), text)
		require.ErrorContains(t, err, says, text)
	}
}

// X20: several rows are one statement.
func TestTemplate_ManyRows(t *testing.T) {
	rows := [][]string{{"A", "B"}, {"C", "D"}}
	for text, want := range map[string]string{
		"INSERT INTO t VALUES (?, ?)":              "INSERT INTO t VALUES ((A), (B)), ((C), (D))",
		"INSERT INTO t (a) VALUES (?), (?), (1) ;": "INSERT INTO t (a) VALUES ((A)), ((B)), (1), ((C)), ((D)), (1) ;",
		"VALUES (f(?), '), (') -- ?\n, (?, 2)":     "VALUES (f((A)), '), (') -- ?\n, ((B), 2), (f((C)), '), (') -- ?\n, ((D), 2)",
		"SELECT ? + ?":                             "(SELECT (A) + (B)\n)\nUNION ALL (SELECT (C) + (D)\n)",
		"INSERT INTO t SELECT ?, ? -- ?":           "INSERT INTO t (SELECT (A), (B)\n)\nUNION ALL (SELECT (C), (D)\n) -- ?",
		"VALUES (?), (?) ORDER BY 1":               "(VALUES ((A)), ((B)) ORDER BY 1\n)\nUNION ALL (VALUES ((C)), ((D)) ORDER BY 1\n)",
		"CREATE TABLE t AS VALUES (?, ?)":          "CREATE TABLE t AS VALUES ((A), (B)), ((C), (D))",
		"VALUES (?), (?) UNION ALL VALUES (1)":     "(VALUES ((A)), ((B)) UNION ALL VALUES (1)\n)\nUNION ALL (VALUES ((C)), ((D)) UNION ALL VALUES (1)\n)",
	} {
		tm, err := parseTemplate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, tm.with(rows), text)
	}
	tm, err := parseTemplate("SELECT ? AS a, ? AS b")
	require.NoError(t, err)
	require.Equal(t, "SELECT * FROM (SELECT (NULL) AS a, (NULL) AS b\n) AS q LIMIT 0", tm.empty())
}

func TestTemplate_WhichColumnAParameterFills(t *testing.T) {
	for text, want := range map[string][]int{
		"INSERT INTO t VALUES (?, ?)": {0, 1}, "INSERT INTO t VALUES (1, $2), ($1, 2)": {0, 1}, "INSERT INTO t VALUES (f(?), ?)": nil, "INSERT INTO t VALUES (? + 1)": nil,
		"INSERT INTO t VALUES ((?), 1)": nil, "INSERT INTO t VALUES ($1, $1)": nil, "INSERT INTO t VALUES (1, $a, 'x,('), (2, $a, $b)": {1, 2},
	} {
		tm, err := parseTemplate(text)
		require.NoError(t, err)
		require.Equal(t, want, tm.items(), text)
	}
}

// Whatever the text and the literals: what is not a placeholder stays as it is, in its order, and what is one becomes the literal in parentheses.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"SELECT ?", "INSERT INTO t VALUES (?, $1)", "VALUES (?), (?)", "SELECT $a || '?' /* ? */", "SELECT $x$ ? $x$, ?", "CREATE TABLE t AS SELECT ?", "EXPLAIN VALUES (?)", "SELECT \"?\" -- ?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tm, err := parseTemplate(text)
		if err != nil {
			return
		}
		row := make([]string, tm.count)
		for i := range row {
			row[i] = "'l'"
		}
		filled := tm.with([][]string{row})
		before, err := sql.Tokenize(text)
		require.NoError(t, err)
		after, err := sql.Tokenize(filled)
		require.NoError(t, err, filled)
		// Every placeholder of one or two tokens becomes three.
		want := len(before) + 3*len(tm.marks)
		for _, m := range tm.marks {
			if want--; m.end-m.start > 1 {
				want--
			}
		}
		require.Len(t, after, want, "%q became %q", text, filled)
		_ = tm.items
		if tm.valuesAt > 0 {
			tm.items()
		}
	})
}
