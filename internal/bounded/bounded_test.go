package bounded_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/bounded"
)

func TestText_CutsAtRunesAndSaysSo(t *testing.T) {
	require.Equal(t, "short", bounded.Text("short", 5))
	for _, s := range []string{strings.Repeat("x", 40_000_000), strings.Repeat("ü", 20_000), "a" + strings.Repeat("€", 20_000), strings.Repeat("\xff", 20_000)} {
		got := bounded.Text(s, 1000)
		require.LessOrEqual(t, len(got), 1100)
		require.True(t, utf8.ValidString(got))
		require.Contains(t, got, "bytes left out")
	}
}

func TestLine(t *testing.T) {
	require.Equal(t, "a b c", bounded.Line("a\nb\x00c", 5))
	require.Equal(t, "a é…", bounded.Line("a éé", 5), "a rune is left out whole")
}

func TestError_KeepsTheRest(t *testing.T) {
	e := &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_FETCH, Message: strings.Repeat("m", 1<<20), Hint: "h", LostAttempt: "a"}
	got := bounded.Error(e)
	require.Less(t, len(got.GetMessage()), bounded.Message+100)
	require.Equal(t, []any{e.Class, "h", "a"}, []any{got.GetClass(), got.GetHint(), got.GetLostAttempt()})
	require.Len(t, e.GetMessage(), 1<<20)
	require.Nil(t, bounded.Error(nil))
}
