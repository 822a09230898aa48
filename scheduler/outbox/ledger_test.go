package outbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func bodies(texts ...string) []Message {
	var out []Message
	for _, t := range texts {
		out = append(out, Message{Body: []byte(t)})
	}
	return out
}

// Whatever of a batch a crash has left in the file: afterwards each message is there once, as a whole.
//
// Numbers in docs/semantics.md: J23.
func TestLedger_HoldsEachMessageOnce(t *testing.T) {
	for name, tc := range map[string]struct{ left, sent, want string }{
		"nothing":              {"", "abc", "a1\nb1\nc1\n"},
		"older ones":           {"x1\ny1\n", "abc", "x1\ny1\na1\nb1\nc1\n"},
		"all of it":            {"x1\na1\nb1\nc1\n", "abc", "x1\na1\nb1\nc1\n"},
		"some of it":           {"x1\na1\nb1\n", "abc", "x1\na1\nb1\nc1\n"},
		"half of one":          {"x1\na1\nb", "abc", "x1\na1\nb1\nc1\n"},
		"one without its end":  {"x1\na1", "abc", "x1\na1\nb1\nc1\n"},
		"half of somebody's":   {"x1\nz", "abc", "x1\nz\na1\nb1\nc1\n"},
		"noted ones before it": {"n1\na1\nb1\n", "abcd", "n1\na1\nb1\nc1\nd1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(tc.left), 0o600))
			l, err := NewLedger(path)
			require.NoError(t, err)
			var list []Message
			for _, c := range tc.sent {
				list = append(list, bodies(string(c)+"1")...)
			}
			n, err := l.Send(t.Context(), list)
			require.NoError(t, err)
			require.Equal(t, len(list), n)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(b))
			n, err = l.Send(t.Context(), bodies("late"))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			b, err = os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, tc.want+"late\n", string(b))
		})
	}
}

func TestLedger_LooksAgainUntilItHasWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	l, err := NewLedger(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = l.Send(t.Context(), bodies("a"))
	require.ErrorContains(t, err, path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte("a\n"), 0o600))
	n, err := l.Send(t.Context(), bodies("a", "b"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "a\nb\n", string(b))
}
