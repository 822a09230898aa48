package scheduler

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/journal"
)

// openWrite journals a write of two tasks, the first of them accepted.
func openWrite(t *testing.T, tx *journal.Tx, id string) {
	t.Helper()
	m := coordinator.New(id, 1)
	eff, err := m.StepApart(coordinator.Begin{Tasks: 2, TableUUID: "u"})
	require.NoError(t, err)
	require.NoError(t, putCommit(tx, eff.Record, nil))
	for i := range int32(2) {
		require.NoError(t, tx.PutTask(&planv1.Task{JobId: id, Task: i, Work: &planv1.Task_Write{}}))
	}
	eff, err = m.StepApart(coordinator.Accept{Task: 0, Attempt: id + "-a", Epoch: 1, Digest: "ab"})
	require.NoError(t, err)
	require.Empty(t, eff.Record.Accepted, "the list is not written anew")
	require.NoError(t, putCommit(tx, eff.Record, eff.Accepted))
	require.NoError(t, tx.PutManifest(&journal.Manifest{Job: id, Task: 0, Attempt: id + "-a"}))
	require.NoError(t, tx.PutJob(&journal.Job{ID: id, State: journal.StateOpen, SQL: "INSERT", Write: &journal.Write{Tasks: 2}}))
}

func TestCommitState_ListsWhatWasAcceptedOneByOne(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		openWrite(t, tx, "a")
		rec, err := commitState(tx, "a")
		require.NoError(t, err)
		require.Len(t, rec.Accepted, 1)
		m, _, err := coordinator.Restore(rec, 2)
		require.NoError(t, err)
		won, ok := m.Winner(0)
		require.True(t, ok)
		require.Equal(t, "a-a", won.Attempt)
		full := m.Record() // as a restart, and format 1, write it
		require.NoError(t, putCommit(tx, &full, nil))
		rec, err = commitState(tx, "a")
		require.NoError(t, err)
		require.Len(t, rec.Accepted, 1, "not twice")
		return nil
	}))
}

// Jobs of which something is lost begin anew; the others go on from where they were.
func TestSalvageJournal_ForgetsPlansThatAreNotWhole_S64(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	j, err := journal.Open(from, journal.Options{})
	require.NoError(t, err)
	lost := map[string][2]string{ // bucket and key
		"commit": {"commits", "commit"}, "task": {"tasks", "task/000000/00000001"}, "manifest": {"manifests", "manifest/000000/00000000"}, "accepted": {"accepted", "accepted/00000000"},
		"job": {"jobs", "job"},
	}
	require.NoError(t, j.Update(func(tx *journal.Tx) error {
		for id := range lost {
			openWrite(t, tx, id)
		}
		openWrite(t, tx, "whole")
		return nil
	}))
	require.NoError(t, j.Close())
	db, err := bolt.Open(from, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		for _, at := range lost {
			b := tx.Bucket([]byte(at[0]))
			v := append([]byte(nil), b.Get([]byte(at[1]))...)
			require.NotEmpty(t, v, at)
			v[0] ^= 1
			require.NoError(t, b.Put([]byte(at[1]), v))
		}
		return nil
	}))
	require.NoError(t, db.Close())
	s, err := SalvageJournal(from, to)
	require.NoError(t, err)
	require.Equal(t, len(lost), s.Damaged.Damage)
	require.ElementsMatch(t, []string{"commit", "task", "manifest", "accepted"}, s.Again)
	require.Positive(t, s.Strays)
	_, err = json.Marshal(s)
	require.NoError(t, err)
	j, err = journal.Open(to, journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, j.View(func(tx *journal.Tx) error {
		n := 0
		require.NoError(t, tx.Jobs(func(rec *journal.Job) error {
			n++
			require.Equal(t, rec.ID == "whole", rec.Write != nil, rec.ID)
			if rec.Write != nil {
				require.NoError(t, recoverable(tx, rec))
			}
			return nil
		}))
		require.Equal(t, len(lost), n, "the one whose own record is lost is forgotten")
		return nil
	}))
	require.Zero(t, func() int { r, err := journal.Check(from); require.NoError(t, err); return r.Damage - len(lost) }())
}
