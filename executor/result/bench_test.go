package result

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkStream is two million rows of four columns, some 70 MB of Arrow IPC.
func BenchmarkStream(b *testing.B) {
	for b.Loop() {
		var size int64
		rows, err := Stream(context.Background(), open(b), "SELECT range AS i, range * 1.5 AS d, 'value ' || range AS s, range % 7 = 0 AS b FROM range(2000000)", 0,
			func(p []byte) error { size += int64(len(p)); return nil })
		require.NoError(b, err)
		require.EqualValues(b, 2000000, rows)
		b.SetBytes(size)
	}
}
