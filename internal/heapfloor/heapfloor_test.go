package heapfloor

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

var kept [][]byte

// Garbage below the floor starts no cycle.
func TestSet_CyclesBecomeRare(t *testing.T) {
	cycles := func() uint32 {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 256 { // 64 MiB in all
			kept = append(kept[:0], make([]byte, 256<<10))
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	without := cycles()
	Set(256 << 20)
	defer Set(0)
	require.Less(t, cycles(), without)
	require.Zero(t, cycles())
}
