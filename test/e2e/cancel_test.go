package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// Until the seal a cancel is final: nothing is visible, nothing is left, and the key is free (S18, S21, S61, S64).
func TestCancel_BeforeTheSeal(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"plugins.preparewrite.after", "scheduler.plan.before-journal", "scheduler.launch.before", "scheduler.manifest.before-journal", "scheduler.manifest.before-ack",
		"scheduler.root.start", "scheduler.stage.before-finish", "scheduler.root.before-commit", "broker.put.after", "broker.seal.before", "scheduler.seal.before-journal",
	} {
		t.Run(point, func(t *testing.T) {
			points := point + "=pause(${gate})"
			if point == "scheduler.manifest.before-ack" { // the manifest is accepted: nothing else keeps the job from its end
				points += ";scheduler.root.start=pause(${gate})"
			}
			h := newHeld(t, points)
			id := h.submit("key")
			harness.Eventually(t, "the job has begun", func() bool { return h.job(id).GetState() != schedulerv1.JobState_JOB_STATE_QUEUED })
			if point != "plugins.preparewrite.after" && point != "scheduler.plan.before-journal" {
				harness.Eventually(t, "it runs", func() bool { return h.job(id).GetState() == schedulerv1.JobState_JOB_STATE_RUNNING })
			}
			cancelled, message, err := h.Client().Cancel(harness.Context(t), id)
			require.NoError(t, err)
			require.True(t, cancelled, message)
			h.open()
			require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(id).GetState())
			h.requireNothing()
			// What is Cancelled stays so, and a new job has the key.
			cancelled, message, err = h.Client().Cancel(harness.Context(t), id)
			require.NoError(t, err)
			require.False(t, cancelled && message == "")
			next := h.submit("key")
			require.NotEqual(t, id, next)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(next).GetState())
			require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.job(id).GetState())
			h.requireOnce()
		})
	}
}

// requireNothing: the table is as it was made, and nothing of the job is left.
func (h *held) requireNothing() {
	h.t.Helper()
	tab := h.Table("h", "t")
	require.Zero(h.t, tab.Snapshots)
	require.Empty(h.t, tab.Markers)
	h.requireSwept()
}

// requireSwept waits for the clean-up.
func (h *held) requireSwept() {
	h.t.Helper()
	h.requireSweptOf("h", "t")
}

func (h *held) requireSweptOf(schema, name string) {
	h.t.Helper()
	var left []string
	swept := harness.Soon(harness.Patience, func() bool {
		scratch, err := filepath.Glob(filepath.Join(h.Dir, "scratch-*", "signet-*", "*-*-*-*-*"))
		require.NoError(h.t, err)
		// Of a table's metadata the log keeps the newest 100 versions; older ones stay, as the specification has it.
		orphans := slices.DeleteFunc(h.Table(schema, name).Orphans, func(p string) bool { return strings.HasSuffix(p, ".metadata.json") })
		left = append(orphans, scratch...)
		return len(left) == 0
	})
	require.True(h.t, swept, "left over: %s", left)
}

// Cancelled in an executor, in the middle of its work.
func TestCancel_WhileAnExecutorWorks(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	h := &held{Cluster: c, t: t, gate: filepath.Join(t.TempDir(), "gate")}
	c.StartExecutor(fault.Env + "=executor.upload.after-link=pause(" + h.gate + ")")
	c.AwaitExecutors(1)
	c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")

	id := h.submit("")
	harness.Eventually(t, "a file is at its place", func() bool { return len(c.Table("h", "t").DataOrphans()) == 1 })
	cancelled, message, err := c.Client().Cancel(harness.Context(t), id)
	require.NoError(t, err)
	require.True(t, cancelled, message)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(id).GetState())
	h.open()
	h.requireNothing()

	// A query that would take for ever ends with its job, and its slot is free.
	r, err := c.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "INSERT INTO lake.h.t SELECT count(*) AS id FROM range(100000000000) a(i), range(1000000) b(j)"})
	require.NoError(t, err)
	harness.Eventually(t, "it runs", func() bool { return h.job(r.GetJobId()).GetProgress().GetRunning() == 1 })
	began := time.Now()
	cancelled, message, err = c.Client().Cancel(harness.Context(t), r.GetJobId())
	require.NoError(t, err)
	require.True(t, cancelled, message)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(r.GetJobId()).GetState())
	require.Less(t, time.Since(began), 10*time.Second)
	harness.Eventually(t, "the executor is idle", func() bool {
		info, err := c.Client().Info(harness.Context(t))
		require.NoError(t, err)
		return len(info.GetExecutors()) == 1 && info.GetExecutors()[0].GetRunning() == 0
	})
	h.requireNothing()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(h.submit("")).GetState())
}

// From the seal on a cancel is refused with what is happening, and the job ends with its commit (S21).
func TestCancel_AfterTheSeal(t *testing.T) {
	t.Parallel()
	for point, says := range map[string]string{
		"scheduler.seal.after-journal": "", "broker.seal.after": "sealed", "catalog.commit.before-swap": "sealed", "catalog.commit.after-swap": "sealed",
		"broker.commit.after-send": "sealed", "broker.settle.before": "sealed", "scheduler.settle.before-journal": "sealed",
	} {
		if says == "" {
			continue // the pause holds the lock that the cancel needs; broker.seal.after comes right behind it
		}
		t.Run(point, func(t *testing.T) {
			h := newHeld(t, point+"=1*pause(${gate})")
			id := h.submit("")
			h.awaitPhase(id, "root")
			harness.Eventually(t, "the cancel meets the seal", func() bool {
				// Every cancel before the seal would end the job, so the seal is waited for by its trace on disk.
				lists, err := filepath.Glob(filepath.Join(h.Dir, "warehouse/h/t/metadata/snap-*.avro"))
				require.NoError(t, err)
				return len(lists) == 1
			})
			cancelled, message, err := h.Client().Cancel(harness.Context(t), id)
			require.NoError(t, err)
			h.open()
			job := h.end(id)
			if cancelled { // it came between the list and the seal
				require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, job.GetState())
				h.requireNothing()
				return
			}
			require.Contains(t, message, says)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState())
			h.requireOnce()
			cancelled, message, err = h.Client().Cancel(harness.Context(t), id)
			require.NoError(t, err)
			require.False(t, cancelled)
			require.Contains(t, message, "successful")
		})
	}
}

// Whenever the cancel comes: what it was told, how the job ended, and what the table holds agree (T2, T3).
func TestCancel_AtAnyMoment(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
	h := &held{Cluster: c, t: t}
	cl := c.Client()
	rounds := 40
	if nightly() {
		rounds = 1000
	}
	committed := 0
	for i := range rounds {
		r, err := cl.Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: fmt.Sprintf("INSERT INTO lake.h.t SELECT %d AS id", i)})
		require.NoError(t, err)
		<-time.After(time.Duration(rand.IntN(40)) * time.Millisecond) //nolint:gosec // the moment is what is tested
		cancelled, _, err := cl.Cancel(harness.Context(t), r.GetJobId())
		require.NoError(t, err)
		job, err := cl.Wait(harness.Context(t), r.GetJobId(), nil)
		require.NoError(t, err)
		require.Equal(t, cancelled, job.GetState() == schedulerv1.JobState_JOB_STATE_CANCELLED, job)
		require.Equal(t, !cancelled, job.GetState() == schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job)
		if !cancelled {
			committed++
		}
		ids := idsOf(t, c.Table("h", "t"))
		require.Len(t, ids, committed)
		require.Equal(t, !cancelled, ids[int64(i)])
	}
	t.Logf("%d of %d committed", committed, rounds)
	h.requireSwept()
}

// Work that waits for an executor that never comes can be cancelled, and says what it waits for.
func TestCancel_WhileNobodyWorks(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	cl := c.Client()
	r, err := cl.Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: "SELECT 1"})
	require.NoError(t, err)
	harness.Eventually(t, "it says what it waits for", func() bool {
		j, err := cl.Job(harness.Context(t), r.GetJobId())
		require.NoError(t, err)
		return j.GetJob().GetMessage() != ""
	})
	cancelled, message, err := cl.Cancel(harness.Context(t), r.GetJobId())
	require.NoError(t, err)
	require.True(t, cancelled, message)
	job, err := cl.Wait(harness.Context(t), r.GetJobId(), nil)
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, job.GetState())
	_, err = cl.Exec(harness.Context(t), "SHOW SCHEMAS FROM lake", client.WithIdempotencyKey("x"))
	require.NoError(t, err)
}
