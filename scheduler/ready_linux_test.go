package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/signet-io/signet/scheduler/journal"
)

// J15: who has no room for its journal is not ready, and is again when there is room, though nothing is submitted meanwhile.
func TestReady_NotWithoutRoomForTheJournal(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("cannot mount a small file system here:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	v := startViewed(t, viewedConfig(t, disk))
	v.call("GET", "/readyz", "", "", 200)
	jobs := 0
	require.Eventually(t, func() bool { // pages that a reader held are room when it has gone
		for {
			err := v.journal.Update(func(tx *journal.Tx) error {
				jobs++
				return tx.PutJob(&journal.Job{ID: fmt.Sprintf("job-%04d", jobs), SQL: strings.Repeat("x", 10_000)})
			})
			if err != nil {
				require.ErrorIs(t, err, journal.ErrFull)
				return v.journal.Full() != nil
			}
		}
	}, 30*time.Second, time.Millisecond)
	for range 2 {
		require.Contains(t, v.call("GET", "/readyz", "", "", 503), "no room for the journal")
	}
	v.call("GET", "/healthz", "", "", 200)
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=32m"))
	require.Eventually(t, func() bool { return !errors.Is(v.journal.Full(), journal.ErrFull) }, 30*time.Second, 50*time.Millisecond)
	v.call("GET", "/readyz", "", "", 200)
}
