package scheduler

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
)

func runs(t *turn) bool {
	select {
	case <-t.due:
		return true
	default:
		return false
	}
}

func TestAdmission_TurnsFollowOrderAndPrincipals(t *testing.T) {
	a := newAdmission(config.Limits{MaxRunningJobs: 3, MaxUserJobs: 2, MaxQueuedJobs: 2})
	x1, x2, x3 := a.enter("x", false), a.enter("x", false), a.enter("x", false)
	require.True(t, runs(x1) && runs(x2))
	require.False(t, runs(x3), "two of one principal run")
	y1 := a.enter("y", false)
	require.True(t, runs(y1), "x's queue is not y's")
	require.NoError(t, a.room("y"))
	y2 := a.enter("y", false)
	require.False(t, runs(y2))
	require.ErrorContains(t, a.room("z"), "too many jobs: 3 run")
	late := a.enter("z", true)
	require.True(t, runs(late), "taken up after a restart")

	a.leave(x3) // cancelled while it waits
	a.leave(x3)
	require.NoError(t, a.room("z"))
	a.leave(late)
	require.False(t, runs(y2))
	a.leave(x1)
	require.True(t, runs(y2))
	a.leave(nil)
	for _, e := range []*turn{x2, y1, y2} {
		a.leave(e)
	}
	require.Empty(t, a.of)
	require.Zero(t, a.running)
	require.Empty(t, a.waiting)
}

// Above the limits jobs wait, can be cancelled while they do, and are refused when the queue is full. A key that is known is no new job.
func TestSubmit_QueueAndItsEnd(t *testing.T) {
	b := newBench(t)
	b.server.admitted = newAdmission(config.Limits{MaxRunningJobs: 1, MaxUserJobs: 1, MaxQueuedJobs: 2})
	first := b.submit("SELECT n FROM range(3) r(n)", nil) // there is no executor: it waits for one
	b.eventually("it runs", func() bool { return b.job(first).GetJob().GetState() != schedulerv1.JobState_JOB_STATE_QUEUED })
	second := b.submit("SHOW CATALOGS", nil)
	r, err := b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SHOW CATALOGS", IdempotencyKey: "k"})
	require.NoError(t, err)
	third := r.JobId
	_, err = b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SHOW CATALOGS"})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "limits.max_queued_jobs")
	_, err = b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SHOW CATALOGS", IdempotencyKey: "other"})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	known := 0
	require.NoError(t, b.server.journal.View(func(tx *journal.Tx) error {
		return tx.Jobs(func(*journal.Job) error { known++; return nil })
	}))
	require.Equal(t, 3, known, "what was refused is no job")
	r, err = b.client.Raw().Submit(t.Context(), &schedulerv1.SubmitRequest{Sql: "SHOW CATALOGS", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.True(t, r.Existing)

	b.eventually("it says what it waits for", func() bool { return strings.Contains(b.job(second).GetJob().GetMessage(), "limits.max_running_jobs") })
	require.Equal(t, schedulerv1.JobState_JOB_STATE_QUEUED, b.job(second).GetJob().GetState())
	_, err = b.client.Raw().CancelJob(t.Context(), &schedulerv1.CancelJobRequest{JobId: second})
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(second).GetState())
	_, err = b.client.Raw().CancelJob(t.Context(), &schedulerv1.CancelJobRequest{JobId: first})
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(third).GetState())
}

// What waited when the scheduler stopped goes on with the next one.
func TestSubmit_QueueSurvivesARestart(t *testing.T) {
	b := newBench(t)
	b.server.admitted = newAdmission(config.Limits{MaxRunningJobs: 1, MaxUserJobs: 1, MaxQueuedJobs: 2})
	b.submit("SELECT n FROM range(3) r(n)", nil)
	waiting := b.submit("SHOW CATALOGS", nil)
	b.stop()
	b.start()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(waiting).GetState())
}

func TestLimits_PlanAndCacheNameTheirSetting(t *testing.T) {
	b := newBench(t)
	b.actor()
	b.server.cfg.Limits.MaxPlanBytes = 10
	j := b.end(b.submit("SELECT n FROM range(3) r(n)", nil))
	require.Equal(t, codeResource, j.GetError().GetCode(), "%v", j.GetError())
	require.Contains(t, j.GetError().GetMessage(), "limits.max_plan_bytes")

	c := &caches{dir: t.TempDir(), all: map[string]*cached{}, max: 100}
	c.all["other"] = &cached{Principal: "p", Bytes: 60}
	err := c.put(&cached{Principal: "p", Name: "n", Bytes: 41}, t.TempDir())
	require.ErrorContains(t, err, "limits.max_cache_bytes")
	require.Equal(t, codeResource, asFailure(err).Code)
	require.NoError(t, c.put(&cached{Principal: "p", Name: "n", Bytes: 40}, t.TempDir()))
	require.NoError(t, c.put(&cached{Principal: "q", Name: "n", Bytes: 99}, t.TempDir()))
}

// Jobs that nobody knows, and executors and attempts of another time, get a clear answer.
func TestUnknown_JobsAttemptsAndEpochs(t *testing.T) {
	b := newBench(t)
	const id = "01990000-0000-7000-8000-000000000000"
	for name, call := range map[string]func(context.Context) error{
		"job": func(ctx context.Context) error {
			_, err := b.client.Raw().GetJob(ctx, &schedulerv1.GetJobRequest{JobId: id})
			return err
		},
		"cancel": func(ctx context.Context) error {
			_, err := b.client.Raw().CancelJob(ctx, &schedulerv1.CancelJobRequest{JobId: id})
			return err
		},
		"begin attempt": func(ctx context.Context) error {
			_, err := b.client.Raw().BeginAttempt(ctx, &schedulerv1.BeginAttemptRequest{JobId: id})
			return err
		},
		"finish": func(ctx context.Context) error {
			_, err := b.client.Raw().FinishWrite(ctx, &schedulerv1.FinishWriteRequest{JobId: id})
			return err
		},
		"abort": func(ctx context.Context) error {
			_, err := b.client.Raw().AbortWrite(ctx, &schedulerv1.AbortWriteRequest{JobId: id})
			return err
		},
		"watch": func(ctx context.Context) error {
			st, err := b.client.Raw().Watch(ctx, &schedulerv1.WatchRequest{JobId: id})
			if err == nil {
				_, err = st.Recv()
			}
			return err
		},
	} {
		err := call(t.Context())
		require.Equal(t, codes.NotFound, status.Code(err), name)
		require.ErrorContains(t, err, id, name)
	}
	won, reason, err := b.server.wonBefore(&planv1.ManifestHeader{JobId: id, AttemptId: "a"})
	require.NoError(t, err)
	require.False(t, won)
	require.NotEmpty(t, reason)
	require.False(t, b.server.Adopt(refOf(&planv1.Task{JobId: id, AttemptId: "a", Epoch: 1}), "x"), "an attempt of a job that is not known")
}
