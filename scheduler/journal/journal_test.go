package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

func open(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Wait: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestOpen_EpochGrowsAndLockHolds(t *testing.T) { // S65
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	first := j.Epoch()
	_, err := journal.Open(path, journal.Options{Wait: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrLocked)
	require.NoError(t, j.Close())
	j = open(t, path)
	require.Equal(t, first+1, j.Epoch())

	// One that takes the place of a lost journal is ahead of it.
	require.NoError(t, j.Close())
	require.NoError(t, os.Remove(path))
	require.Greater(t, open(t, path).Epoch(), first+1)
}

func TestOpen_DamagedFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	require.NoError(t, os.WriteFile(path, []byte("not a journal, but long enough to be read as one page"), 0o600))
	_, err := journal.Open(path, journal.Options{Wait: time.Millisecond})
	require.ErrorIs(t, err, journal.ErrDamaged)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "move the file away")
}

func TestUpdate_FailedTransactionLeavesNothing(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	boom := errors.New("boom")
	err := j.Update(func(tx *journal.Tx) error {
		if err := tx.PutJob(&journal.Job{ID: "a"}); err != nil {
			return err
		}
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		_, err := tx.Job("a")
		require.ErrorIs(t, err, journal.ErrMissing)
		return nil
	}))
}

func TestKeys_AreBoundToPrincipalAndJob(t *testing.T) { // S64
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		holder := func(principal, key string) string {
			id, err := tx.KeyJob(principal, key)
			require.NoError(t, err)
			return id
		}
		require.NoError(t, tx.TakeKey("alice", "k", "job-1"))
		require.Equal(t, "job-1", holder("alice", "k"))
		require.Empty(t, holder("bob", "k"))
		require.Empty(t, holder("alicek", ""))
		require.NoError(t, tx.FreeKey("alice", "k", "job-2")) // not the holder
		require.Equal(t, "job-1", holder("alice", "k"))
		require.NoError(t, tx.FreeKey("alice", "k", "job-1"))
		require.Empty(t, holder("alice", "k"))
		return nil
	}))
}

func TestRecords_SurviveReopenAndStayWithinTheirJob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		for _, id := range []string{"job", "job2"} {
			require.NoError(t, tx.PutJob(&journal.Job{ID: id, State: journal.StateOpen}))
			require.NoError(t, tx.PutTask(&planv1.Task{JobId: id, Stage: 1, Task: 0, Sql: "SELECT 1"}))
			require.NoError(t, tx.PutAttempt(&journal.Attempt{Job: id, Stage: 1, ID: "x"}))
			require.NoError(t, tx.PutManifest(&journal.Manifest{Job: id, Stage: 1, Rows: 7, Chunks: [][]byte{{1}, {2}}}))
			require.NoError(t, tx.PutCommit(&journal.Commit{Job: id, Record: []byte(`{"a":1}`)}))
		}
		return tx.PutDuty(&journal.Duty{Prefix: "file:///t/p", Job: "job"})
	}))
	require.NoError(t, j.Close())
	j = open(t, path)
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		job, err := tx.Job("job")
		require.NoError(t, err)
		return tx.DropJob(job)
	}))
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		_, err := tx.Job("job")
		require.ErrorIs(t, err, journal.ErrMissing)
		tasks, err := tx.Tasks("job")
		require.NoError(t, err)
		require.Empty(t, tasks)
		tasks, err = tx.Tasks("job2")
		require.NoError(t, err)
		require.Len(t, tasks, 1)
		n := 0
		require.NoError(t, tx.Manifests("job2", func(m *journal.Manifest) error {
			n++
			require.EqualValues(t, 7, m.Rows)
			require.Equal(t, [][]byte{{1}, {2}}, m.Chunks)
			return nil
		}))
		require.Equal(t, 1, n)
		n = 0
		require.NoError(t, tx.Duties(func(d *journal.Duty) error { n++; return nil }))
		require.Equal(t, 1, n, "a duty outlives its job's records")
		return nil
	}))
}
