package analyze

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLex(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a.b, 'it''s' -- x\nFROM \"q\"\"t\"": "SELECT|a|.|b|,|'it''s'|FROM|\"q\"\"t\"",
		"a/* x /* y */ 'z' */b":                     "a|b",
		"E'a\\'b' e'x' xe'y'":                       "E'a\\'b'|e'x'|xe|'y'",
		"$$ ; ' $$ $a1$ $$ $a1$ $1":                 "$$ ; ' $$|$a1$ $$ $a1$|$1",
		"größe+日本;":                                 "größe|+|日本|;",
		"'open":                                     "'open",
		"\"open":                                    "\"open",
		"/* open":                                   "",
		"$a$ open":                                  "$a$ open",
		"1.5e10":                                    "1|.|5e10",
	} {
		var got []string
		for _, tok := range lex(sql) {
			got = append(got, sql[tok.start:tok.end])
		}
		require.Equal(t, want, strings.Join(got, "|"), sql)
	}
	require.Equal(t, `q"t`, ident(`"q""t"`, token{tokenQuoted, 0, 6}))
	require.Equal(t, `it's`, ident(`'it''s'`, token{tokenString, 0, 7}))
}

func TestLex_CoversEveryText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sql := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"'", "\"", "--", "/*", "*/", "$", "$a$", "E'", "\\", "\n", " ", "a", "ü", "\xff", "(", ")", ";", "1", "."})).Draw(t, "sql"), "")
		end := 0
		for _, tok := range lex(sql) {
			require.GreaterOrEqual(t, tok.start, end)
			require.Greater(t, tok.end, tok.start)
			end = tok.end
		}
		require.LessOrEqual(t, end, len(sql))
		newSplicer(sql).trimmed(sql)
	})
}

func TestSplicer_Trimmed(t *testing.T) {
	for sql, want := range map[string]string{
		" SELECT 1 ; ; -- end": "SELECT 1", "SELECT 1 -- a": "SELECT 1", "/* x */ SELECT ';' /* y */": "SELECT ';'", "": "", ";": ";", "-- only": "-- only",
	} {
		require.Equal(t, want, newSplicer(sql).trimmed(sql))
	}
}
