package journal_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/signet-io/signet/scheduler/journal"
)

// A full file system is a clear error of the write that met it; nothing is lost, and with room it goes on.
func TestUpdate_FullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("cannot mount a small file system here:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	path := filepath.Join(disk, "journal.db")
	j := open(t, path)
	put := func(i int) error {
		return j.Update(func(tx *journal.Tx) error {
			return tx.PutJob(&journal.Job{ID: fmt.Sprintf("job-%04d", i), SQL: strings.Repeat("x", 10_000)})
		})
	}
	count := func() (n int) {
		require.NoError(t, j.View(func(tx *journal.Tx) error { return tx.Jobs(func(*journal.Job) error { n++; return nil }) }))
		return n
	}
	done := 0
	var err error
	for ; err == nil && done < 1000; done++ {
		err = put(done)
	}
	done--
	require.ErrorIs(t, err, journal.ErrFull)
	require.True(t, errors.Is(err, unix.ENOSPC), "%v", err)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "make room")
	require.Equal(t, done, count())
	for range 3 {
		require.ErrorIs(t, put(done), journal.ErrFull)
	}
	require.NoError(t, j.Err())
	require.ErrorIs(t, j.Full(), journal.ErrFull)
	require.ErrorIs(t, j.Full(), journal.ErrFull)
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=8m"))
	require.Eventually(t, func() bool { return j.Full() == nil }, 30*time.Second, 50*time.Millisecond, "an idle scheduler notices the room, too")
	require.NoError(t, put(done))
	require.NoError(t, j.Full())
	require.Equal(t, done+1, count())
	require.NoError(t, j.Close())
	require.Zero(t, checked(t, path).Damage)
}
