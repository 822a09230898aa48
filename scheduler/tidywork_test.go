package scheduler

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/journal"
)

// left puts a write of many tasks into the journal that has committed, and whose work is there still: task 0 had a second attempt.
func (b *bench) left(id string) *journal.Job {
	b.t.Helper()
	rec := &journal.Job{
		ID: id, State: journal.StateSuccessful, Kind: kindInsert, Write: &journal.Write{Tasks: 100}, Progress: journal.Progress{Tasks: 100}, Finished: time.Now().UTC(), Untidy: true,
	}
	require.NoError(b.t, b.server.journal.Update(func(tx *journal.Tx) error {
		commit, err := json.Marshal(coordinator.Record{JobID: id, State: coordinator.Committed, Accepted: []coordinator.Accepted{{Task: 0, Attempt: "won"}}, Result: &coordinator.Result{Version: "1"}})
		require.NoError(b.t, err)
		for _, err := range []error{
			tx.PutJob(rec), tx.PutCommit(&journal.Commit{Job: id, Record: commit}), tx.PutTask(&planv1.Task{JobId: id}),
			tx.PutAttempt(&journal.Attempt{Job: id, ID: "won", Prefix: "file:///p/won-" + id}), tx.PutAttempt(&journal.Attempt{Job: id, ID: "lost", Prefix: "file:///p/lost-" + id}),
			tx.PutManifest(&journal.Manifest{Job: id, Attempt: "won"}),
		} {
			require.NoError(b.t, err)
		}
		return nil
	}))
	return rec
}

// requireTidy wants nothing of a job's work in the journal but the duty to sweep the attempt that lost.
func (b *bench) requireTidy(id string) {
	b.t.Helper()
	require.NoError(b.t, b.server.journal.View(func(tx *journal.Tx) error {
		rec, err := tx.Job(id)
		require.NoError(b.t, err)
		require.False(b.t, rec.Untidy)
		tasks, err := tx.Tasks(id)
		require.NoError(b.t, err)
		require.Empty(b.t, tasks)
		require.NoError(b.t, tx.Attempts(id, func(a *journal.Attempt) error { b.t.Errorf("attempt %s is left", a.ID); return nil }))
		require.NoError(b.t, tx.Manifests(id, func(*journal.Manifest) error { b.t.Error("a manifest is left"); return nil }))
		var duties []string
		require.NoError(b.t, tx.Duties(func(d *journal.Duty) error {
			if d.Job == id {
				duties = append(duties, d.Prefix)
			}
			return nil
		}))
		require.Equal(b.t, []string{"file:///p/lost-" + id}, duties)
		return nil
	}))
}

func TestTidyWork_RemovesWhatAWriteOfManyTasksLeft(t *testing.T) {
	b := newBench(t)
	rec := b.left("many")
	require.True(t, untidy(rec))
	j := newJob(b.server.ctx, *rec)
	b.server.tidyWork(j)
	b.requireTidy("many")
	require.False(t, j.rec.Untidy)
	b.server.tidyWork(j) // again: nothing to do
	b.server.tidyWork(newJob(b.server.ctx, journal.Job{ID: "forgotten"}))
	require.NoError(t, b.server.journal.View(func(tx *journal.Tx) error {
		_, err := tx.Job("forgotten")
		require.ErrorIs(t, err, journal.ErrMissing)
		return nil
	}))
	for _, other := range []journal.Job{{State: journal.StateFailed, Write: rec.Write, Progress: rec.Progress}, {State: journal.StateSuccessful, Progress: rec.Progress}, {State: journal.StateSuccessful, Write: rec.Write}} {
		require.False(t, untidy(&other))
	}
}

// A scheduler that dies in between does it at its next start.
func TestTidyWork_AtTheNextStart(t *testing.T) {
	b := newBench(t)
	b.left("before")
	b.stop()
	b.start()
	b.eventually("the work is gone", func() bool {
		gone := false
		require.NoError(t, b.server.journal.View(func(tx *journal.Tx) error {
			rec, err := tx.Job("before")
			gone = err == nil && !rec.Untidy
			return err
		}))
		return gone
	})
	b.requireTidy("before")
}
