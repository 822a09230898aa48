package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/journal"
)

// The oldest finished jobs are forgotten with all that is theirs, a thousand at a time; open jobs never.
func TestTrim_ForgetsTheOldestFinishedJobs(t *testing.T) {
	b := newBench(t)
	s := b.server
	name := func(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i) }
	known := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.jobs)
	}
	var jobs []*job
	require.NoError(t, s.journal.Update(func(tx *journal.Tx) error {
		for i := range keepJobs + dropJobs + 1 {
			rec := journal.Job{ID: name(i), Principal: localPrincipal, Key: name(i), SQL: "SHOW CATALOGS", State: journal.StateSuccessful, Finished: time.Now()}
			if i == 5 {
				rec.State = journal.StateOpen
			}
			if err := tx.PutJob(&rec); err != nil {
				return err
			}
			if err := tx.TakeKey(rec.Principal, rec.Key, rec.ID); err != nil {
				return err
			}
			jobs = append(jobs, newJob(s.ctx, rec))
		}
		return nil
	}))
	s.mu.Lock()
	for _, j := range jobs {
		s.jobs[j.id] = j
	}
	s.mu.Unlock()
	s.trim()
	require.Equal(t, keepJobs+1, known())
	require.Nil(t, s.job(name(0)))
	require.NotNil(t, s.job(name(5)), "it is open")
	require.Nil(t, s.job(name(dropJobs)))
	require.NotNil(t, s.job(name(dropJobs+1)))
	require.NoError(t, s.journal.View(func(tx *journal.Tx) error {
		_, err := tx.Job(name(0))
		require.ErrorIs(t, err, journal.ErrMissing)
		holder, err := tx.KeyJob(localPrincipal, name(0))
		require.Empty(t, holder)
		return err
	}))
	s.trim()
	require.Equal(t, keepJobs+1, known(), "a thousand at a time")
}

// CACHE TABLE that is cancelled while its tasks run leaves nothing, and its name is free.
func TestCancel_CacheTable(t *testing.T) {
	b := newBench(t)
	gate := make(chan struct{})
	defer close(gate)
	began := make(chan struct{}, 64)
	b.actor(func(a *actor) {
		a.run = func(*planv1.Task) *planv1.Error {
			began <- struct{}{}
			<-gate
			return nil
		}
	})
	id := b.submit("CACHE TABLE c AS SELECT n FROM range(3) r(n)", nil)
	<-began
	_, err := b.client.Raw().CancelJob(t.Context(), &schedulerv1.CancelJobRequest{JobId: id})
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
	require.Nil(t, b.server.caches.find(localPrincipal, "c"))
	j := b.end(b.submit("UNCACHE TABLE c", nil))
	require.Equal(t, codeNotFound, j.GetError().GetCode())
}

// A job that is cancelled while its statement is analysed ends, and one that is cancelled again has ended.
func TestCancel_WhilePlanning(t *testing.T) {
	b := newBench(t) // nobody analyses
	id := b.submit("SELECT n FROM range(3) r(n)", nil)
	b.eventually("it is planned", func() bool { return b.job(id).GetJob().GetState() == schedulerv1.JobState_JOB_STATE_PLANNING })
	_, err := b.client.Raw().CancelJob(t.Context(), &schedulerv1.CancelJobRequest{JobId: id})
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
	r, err := b.client.Raw().CancelJob(t.Context(), &schedulerv1.CancelJobRequest{JobId: id})
	require.NoError(t, err)
	require.True(t, r.Cancelled)
}
