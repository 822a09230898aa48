package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who is refused again and again does not fill the disk; how often it was is told.
func TestRefusals_Bounded(t *testing.T) {
	var r refusals
	at := time.Unix(1_800_000_000, 0)
	told := 0
	for range refusalsPerSecond + 30 {
		if yes, suppressed := r.tell(at); yes {
			require.Zero(t, suppressed)
			told++
		}
	}
	require.Equal(t, refusalsPerSecond, told)
	yes, suppressed := r.tell(at.Add(time.Second))
	require.True(t, yes)
	require.Equal(t, 30, suppressed)
	yes, suppressed = r.tell(at.Add(time.Second))
	require.True(t, yes)
	require.Zero(t, suppressed)
}
