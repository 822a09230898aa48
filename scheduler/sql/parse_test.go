package sql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestParse_Scenarios runs testdata/*.txt. -rewrite writes what is now the output; read the difference before keeping it.
func TestParse_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "parse":
				s, err := Parse(d.Input)
				if err != nil {
					return err.Error() + "\n"
				}
				return dump(s)
			case "type":
				var b strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					typ, err := ParseType(line)
					var e *Error
					switch {
					case errors.As(err, &e):
						fmt.Fprintf(&b, "%s => error at %d: %s (%s)\n", line, e.Column, e.Message, e.Hint)
					default:
						fmt.Fprintf(&b, "%s => %s\n", line, dumpType(typ))
					}
				}
				return b.String()
			case "split":
				pieces, err := Pieces(d.Input)
				if err != nil {
					return err.Error() + "\n"
				}
				var b strings.Builder
				for _, p := range pieces {
					fmt.Fprintf(&b, "line %d @%d %q\n", p.Line, p.Offset, p.Text)
				}
				return b.String()
			case "refused": // one statement a line
				var b strings.Builder
				for line := range strings.SplitSeq(d.Input, "\n") {
					s, err := Parse(line)
					var e *Error
					if !errors.As(err, &e) {
						fmt.Fprintf(&b, "%s => ACCEPTED %s", line, dump(s))
						continue
					}
					fmt.Fprintf(&b, "%s\n  %d:%d %s", line, e.Line, e.Column, e.Message)
					if e.Hint != "" {
						fmt.Fprintf(&b, " | %s", e.Hint)
					}
					b.WriteString("\n")
				}
				return b.String()
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

func TestParse_QueryOffsetMapsBack(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO größe /* x */ SELECT 'ü' AS a -- tail\n;",
		"  explain\ninsert into t (a) values (1)",
		"CREATE TABLE a.b.c PARTITIONED BY (x) AS (SELECT 1 AS x)",
		"\ufeffSELECT 1;;",
	} {
		s, err := Parse(text)
		require.NoError(t, err, text)
		q := queryOf(s)
		require.Equal(t, text[q.Offset:q.Offset+len(q.Text)], q.Text)
		require.NotContains(t, q.Text, ";")
	}
}

func queryOf(s Statement) *Query {
	switch s := s.(type) {
	case *Select:
		return &s.Query
	case *Insert:
		return &s.Query
	case *CreateTable:
		return s.Query
	case *Explain:
		return queryOf(s.Statement)
	}
	return nil
}

func TestParse_InvalidUTF8AndNul(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT '\xff'":   "not valid UTF-8",
		"SELECT 1 \x00":   "NUL",
		"SELECT \xf0\x9f": "not valid UTF-8",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want)
	}
}

func TestParse_DeepTypesDoNotExhaustTheStack(t *testing.T) {
	for _, text := range []string{
		"CREATE TABLE t (a " + strings.Repeat("LIST(", 100_000) + "INT" + strings.Repeat(")", 100_000) + ")",
		"CREATE TABLE t (a INT" + strings.Repeat("[]", 100_000) + ")",
		"CREATE TABLE t (a " + strings.Repeat("STRUCT(a ", 100_000) + ")",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "64 levels")
	}
	_, err := Parse("SELECT " + strings.Repeat("(", 100_000))
	require.ErrorContains(t, err, "never closed")
}

// X18: a statement of several megabytes and a table of 5,000 columns are ordinary.
func TestParse_LargeStatements(t *testing.T) {
	var b strings.Builder
	b.WriteString("CREATE TABLE t (c0 INT")
	for i := 1; i < 5000; i++ {
		fmt.Fprintf(&b, ", c%d VARCHAR NOT NULL", i)
	}
	s, err := Parse(b.String() + ")")
	require.NoError(t, err)
	require.Len(t, s.(*CreateTable).Columns, 5000)

	text := "SELECT '" + strings.Repeat("x", 6<<20) + "'"
	s, err = Parse(text)
	require.NoError(t, err)
	require.Equal(t, text, s.(*Select).Query.Text)
}

func TestFind_ExactThenUnique(t *testing.T) {
	have := []string{"a", "A", "Name", "größe"}
	for _, c := range []struct {
		name  string
		index int
		cands []int
	}{
		{"a", 0, nil},
		{"A", 1, nil},
		{"NAME", 2, nil},
		{"GRÖSSE", -1, nil},
		{"GRÖßE", 3, nil},
		{"b", -1, nil},
	} {
		i, cands := Find(c.name, have)
		require.Equal(t, c.index, i, c.name)
		require.Equal(t, c.cands, cands, c.name)
	}
	i, cands := Find("ab", []string{"aB", "Ab"})
	require.Equal(t, -1, i)
	require.Equal(t, []int{0, 1}, cands)
}

func TestSuggest(t *testing.T) {
	have := []string{"carrier", "origin", "destination", "id"}
	require.Equal(t, "carrier", Suggest("carier", have))
	require.Equal(t, "origin", Suggest("orgiin", have))
	require.Equal(t, "", Suggest("weather", have))
	require.Equal(t, "", Suggest("", have))
}

// X1: odd names survive quoting.
func TestName_StringReadsBack(t *testing.T) {
	for _, part := range []string{"order", "values", "authorization", "größe", "日本", `a"b`, "with space", "Select", "9x", "a.b", "😎", "$x", "a$1"} {
		s, err := Parse("DESCRIBE " + JoinName([]string{part, "T", part}))
		require.NoError(t, err, part)
		require.Equal(t, []string{part, "T", part}, s.(*Describe).Table.Strings())
	}
}

func TestParseTableName(t *testing.T) {
	for text, want := range map[string][]string{`t`: {"t"}, `lake.s."T 1"`: {"lake", "s", "T 1"}, ` "a.b".c `: {"a.b", "c"}, "t -- said": {"t"}} {
		n, err := ParseTableName(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n.Strings())
	}
	for _, text := range []string{"", "t x", "t;", "TABLE t", "'t'", "t; DROP TABLE u", "a.b.c.d.e", `"open`, "SELECT 1"} {
		_, err := ParseTableName(text)
		require.Error(t, err, text)
	}
}
