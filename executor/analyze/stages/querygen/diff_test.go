package querygen

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiff(t *testing.T) {
	nan := math.NaN()
	a := [][]any{{"1", 0.1 + 0.2, nil}, {"2", nan, "x"}, {"1", math.Copysign(0, -1), nil}}
	require.Empty(t, Diff(a, [][]any{{"2", nan, "x"}, {"1", 0.0, nil}, {"1", 0.3, nil}}, false))
	require.NotEmpty(t, Diff(a, [][]any{{"2", nan, "x"}, {"1", 0.0, nil}, {"1", 0.3, nil}}, true), "the order counts")
	require.Empty(t, Diff(a, a, true))
	for _, other := range [][][]any{
		{{"1", 0.3, nil}, {"2", nan, "x"}},
		{{"1", 0.3, nil}, {"2", nan, "x"}, {"1", 0.1, nil}},
		{{"1", 0.3, nil}, {"2", nan, "x"}, {"1", 0.0, "nil"}},
		{{"1", 0.3, nil}, {"2", 1.0, "x"}, {"1", 0.0, nil}},
		{{"1", 0.3, nil}, {"2", nan, "x"}, {"2", 0.0, nil}},
		{{"1", 0.3, nil}, {"2", math.Inf(1), "x"}, {"1", 0.0, nil}},
	} {
		require.NotEmpty(t, Diff(a, other, false), "%v", other)
	}
}
