package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// held is a cluster whose scheduler waits at some fault point until the gate opens, with an empty table lake.h.t (id BIGINT).
type held struct {
	*harness.Cluster
	t    *testing.T
	gate string
}

// newHeld starts one. {gate} in the list of points stands for the gate's file.
func newHeld(t *testing.T, points string) *held {
	h := &held{t: t, gate: filepath.Join(t.TempDir(), "gate")}
	h.Cluster = harness.New(t, harness.Options{Executors: 1, SchedulerEnv: []string{fault.Env + "=" + replaceGate(points, h.gate)}})
	t.Cleanup(func() { h.open() }) // so that the scheduler can stop
	h.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
	return h
}

func replaceGate(points, gate string) string {
	return os.Expand(points, func(string) string { return gate })
}

func (h *held) open() { require.NoError(h.t, os.WriteFile(h.gate, nil, 0o600)) }

// submit starts INSERT of ids 1 to 5 and does not wait.
func (h *held) submit(key string) string {
	h.t.Helper()
	r, err := h.Client().Raw().Submit(harness.Context(h.t), &schedulerv1.SubmitRequest{Sql: "INSERT INTO lake.h.t SELECT i AS id FROM range(1, 6) r(i)", IdempotencyKey: key})
	require.NoError(h.t, err)
	return r.GetJobId()
}

func (h *held) job(id string) *schedulerv1.Job {
	h.t.Helper()
	j, err := h.Client().Job(harness.Context(h.t), id)
	require.NoError(h.t, err)
	return j.GetJob()
}

func (h *held) awaitPhase(id, phase string) {
	h.t.Helper()
	harness.Eventually(h.t, "the job is in phase "+phase, func() bool { return h.job(id).GetPhase() == phase })
}

func (h *held) end(id string) *schedulerv1.Job {
	h.t.Helper()
	j, err := h.Client().Wait(harness.Context(h.t), id, nil)
	require.NoError(h.t, err)
	return j
}

// requireOnce checks that the table has ids 1 to 5 once, in one snapshot.
func (h *held) requireOnce() {
	h.t.Helper()
	tab := h.Table("h", "t")
	require.Len(h.t, idsOf(h.t, tab), 5)
	require.Equal(h.t, 1, tab.Snapshots)
	require.Len(h.t, tab.Markers, 1)
	require.Empty(h.t, tab.DataOrphans())
}

// The reply to a commit that landed is lost: the marker is found, and the job succeeds (S63, C1–C3).
func TestUnknown_LostReplyIsFound(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "broker.commit.lost-reply=1*error(cut)")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(h.submit("")).GetState())
	h.requireOnce()
}

// The request did not land and nobody can say so: the same request is sent again, and lands once (S67).
func TestUnknown_SentAgainUntilItLands(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "catalog.commit.before-swap=3*error(cut);catalog.commit.before-reload=2*error(blind);broker.resolve.before-send=pause(${gate})")
	id := h.submit("once")
	h.awaitPhase(id, "resolving")
	tab := h.Table("h", "t")
	require.Zero(t, tab.Snapshots)
	require.Len(t, tab.DataOrphans(), 1, "the data file is kept while nobody knows")

	// Meanwhile the job runs, cannot be cancelled, and holds its key.
	cancelled, message, err := h.Client().Cancel(harness.Context(t), id)
	require.NoError(t, err)
	require.False(t, cancelled)
	require.Contains(t, message, "may have landed")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_RUNNING, h.job(id).GetState())
	require.Equal(t, id, h.submit("once"))

	h.open()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
	h.requireOnce()
}

// A scheduler that is killed while it resolves leaves it to the next one, whether the request has landed or not.
func TestUnknown_TakenUpAfterARestart(t *testing.T) {
	t.Parallel()
	for name, points := range map[string]string{
		"landed":     "broker.commit.lost-reply=1*error(cut);broker.look.before=1*error(blind)->pause(${gate})",
		"not landed": "catalog.commit.before-swap=1*error(cut);broker.look.before=1*error(blind)->pause(${gate})",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t, points)
			id := h.submit("once")
			h.awaitPhase(id, "resolving")
			h.Scheduler.Kill()
			h.StartScheduler()
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
			h.requireOnce()
		})
	}
}

// Somebody else commits while the outcome is unknown: the request can never land, which is known by the table's sequence number. The job
// commits anew, on top (C19, C33).
func TestUnknown_DeadRequestIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "catalog.commit.before-swap=1*error(cut);broker.resolve.before-send=1*pause(${gate})")
	id := h.submit("")
	h.awaitPhase(id, "resolving")
	done := make(chan error, 1)
	go func() {
		cl, err := client.Dial(h.Address)
		if err != nil {
			done <- err
			return
		}
		defer cl.Close()
		_, err = cl.Exec(context.Background(), "INSERT INTO lake.h.t VALUES (100)")
		done <- err
	}()
	var other error
	answered := harness.Soon(harness.Patience/3, func() bool {
		select {
		case other = <-done:
			return true
		default:
			return false
		}
	})
	require.True(t, answered, "one job's unknown outcome holds up another job")
	require.NoError(t, other)
	h.open()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
	tab := h.Table("h", "t")
	require.Len(t, idsOf(t, tab), 6)
	require.Equal(t, 2, tab.Snapshots)
	require.Len(t, tab.Markers, 2)
}
