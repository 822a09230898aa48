package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// grouped is a cluster on which a commit is held at its seal while others wait for their turn, so that they have the next one together.
type grouped struct {
	*harness.Cluster
	t      *testing.T
	faults harness.Faults
	env    string
	gate   string // while it is not there, seals are held
	next   int
}

const groupUnits = 3

func newGrouped(t *testing.T, points []string, more ...string) *grouped {
	g := &grouped{t: t, faults: harness.NewFaults(t), gate: filepath.Join(t.TempDir(), "gate")}
	g.env = strings.Join(append([]string{g.faults.Env(points...), "broker.seal.before=pause(" + g.gate + ")"}, more...), ";")
	if len(points) == 0 {
		g.env = strings.Replace(g.env, "=;", "=", 1)
	}
	g.open()
	g.Cluster = harness.New(t, harness.Options{Executors: 1, SchedulerEnv: []string{g.env}})
	t.Cleanup(g.open)
	g.SQL("CREATE SCHEMA lake.g")
	return g
}

func (g *grouped) open()  { require.NoError(g.t, os.WriteFile(g.gate, nil, 0o600)) }
func (g *grouped) close() { require.NoError(g.t, os.Remove(g.gate)) }

// use makes a table for a subtest.
func (g *grouped) use(t *testing.T) string {
	g.t = t
	g.Use(t)
	g.next++
	name := fmt.Sprintf("t%d", g.next)
	g.SQL("CREATE TABLE lake.g." + name + " (id BIGINT)")
	return name
}

func (g *grouped) submit(table string, id int, key string) string {
	g.t.Helper()
	r, err := g.Client().Raw().Submit(harness.Context(g.t), &schedulerv1.SubmitRequest{Sql: fmt.Sprintf("INSERT INTO lake.g.%s VALUES (%d)", table, id), IdempotencyKey: key})
	require.NoError(g.t, err)
	return r.GetJobId()
}

// hold begins a commit that is held, and has others wait behind it. It returns the ids of their jobs, the held one first.
func (g *grouped) hold(table string, keys ...string) []string {
	g.t.Helper()
	g.close()
	jobs := []string{g.submit(table, 0, "")}
	lists := filepath.Join(g.Dir, "warehouse", "g", table, "metadata", "snap-*-"+jobs[0]+"-*.avro")
	harness.Eventually(g.t, "the first commit is about to be sealed", func() bool {
		found, err := filepath.Glob(lists)
		require.NoError(g.t, err)
		return len(found) == 1
	})
	for i := range groupUnits {
		key := ""
		if i < len(keys) {
			key = keys[i]
		}
		jobs = append(jobs, g.submit(table, i+1, key))
	}
	harness.Eventually(g.t, "the others are ready to commit", func() bool {
		return !slices.ContainsFunc(jobs[1:], func(id string) bool {
			j, err := g.Client().Job(harness.Context(g.t), id)
			require.NoError(g.t, err)
			_, staged := j.GetJob().GetTimingsMicros()["stage"]
			return !staged
		})
	})
	return jobs
}

func (g *grouped) end(id string) *schedulerv1.Job {
	g.t.Helper()
	j, err := g.Client().Wait(harness.Context(g.t), id, nil)
	require.NoError(g.t, err)
	return j
}

// check compares what the jobs were told with what the table holds: each row once, each job in one snapshot with its marker, and nothing left over.
func (g *grouped) check(table string, jobs []string, snapshots int) {
	t := g.t
	t.Helper()
	for _, id := range jobs {
		j := g.end(id)
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, j.GetState(), "%v", j.GetError())
		require.EqualValues(t, 1, j.GetProgress().GetRows(), "its own rows")
	}
	tab := g.Table("g", table)
	require.Len(t, idsOf(t, tab), len(jobs))
	require.EqualValues(t, len(jobs), tab.Records)
	require.Equal(t, snapshots, tab.Snapshots)
	for _, id := range jobs {
		requireLanded(t, tab, id, 1)
	}
	g.clean(table)
}

func (g *grouped) clean(table string) {
	g.t.Helper()
	(&held{Cluster: g.Cluster, t: g.t}).requireSweptOf("g", table)
}

// Commits that wait for their turn have it together: one snapshot with the marker of each, and each job is told its own rows (C25).
func TestGroup_ThoseThatWaitShareASnapshot(t *testing.T) {
	t.Parallel()
	g := newGrouped(t, nil)
	table := g.use(t)
	jobs := g.hold(table)
	g.open()
	g.check(table, jobs, 2)
	require.Len(t, g.Table("g", table).Markers, 1+groupUnits)
	var shared []string
	for _, id := range jobs[1:] {
		shared = append(shared, inline(t, g.end(id))["snapshot_id"])
		require.Equal(t, "1", inline(t, g.end(id))["rows"])
	}
	require.Len(t, slices.Compact(shared), 1, "all name the one snapshot")
}

// inline is the one row of a result.
func inline(t *testing.T, j *schedulerv1.Job) map[string]string {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(j.GetInlineResult()))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	out := map[string]string{}
	for i, f := range r.Schema().Fields() {
		out[f.Name] = r.RecordBatch().Column(i).ValueStr(0)
	}
	return out
}

// groupCrashes are where the scheduler dies while several jobs share a commit. passing are the hits of the commit before.
var groupCrashes = []crash{
	{point: "scheduler.group.before-commit"},
	{point: "scheduler.group.before-seal"},
	{point: "scheduler.group.after-seal"},
	{point: "broker.seal.after", passing: 1},
	{point: "catalog.commit.after-metadata", passing: 1},
	{point: "catalog.commit.after-swap", passing: 1},
	{point: "broker.commit.after-send", passing: 1},
	{point: "scheduler.group.before-settle"},
	{point: "scheduler.group.after-settle"},
	{point: "scheduler.group.after-seal", again: "broker.resolve.before-send"},
	{point: "scheduler.group.after-seal", again: "catalog.commit.after-swap"},
	{point: "scheduler.group.after-seal", again: "scheduler.group.before-settle"},
	{point: "broker.commit.after-send", passing: 1, again: "scheduler.group.after-settle"},
}

// Wherever the scheduler dies, and dies again while it recovers, each job of a group is committed once and told so.
// Numbers in docs/semantics.md: S62, S67, S68.
func TestGroup_SchedulerDies(t *testing.T) {
	t.Parallel()
	g := newGrouped(t, pointsOf(groupCrashes))
	for _, c := range groupCrashes {
		t.Run(c.name(), func(t *testing.T) {
			table := g.use(t)
			jobs := g.hold(table)
			g.faults.Arm(t, c.point, c.passing)
			defer g.faults.Disarm(t, c.point)
			g.open()
			g.Scheduler.Wait(t)
			require.True(t, g.Scheduler.Killed())
			if c.again != "" {
				g.faults.ArmAhead(t, c.again)
				g.StartSchedulerToDie(g.env)
				g.faults.Disarm(t, c.again)
			}
			g.StartScheduler(g.env)
			g.AwaitExecutors(1)
			for _, id := range jobs {
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, g.end(id).GetState(), "%v", g.end(id).GetError())
			}
			g.check(table, jobs, g.Table("g", table).Snapshots) // which of them share one is chance
		})
	}
}

// A cancel before the seal takes its job out of the group, and no other; one that comes later is refused (S21).
func TestGroup_CancelTakesItsUnitOut_S21(t *testing.T) {
	t.Parallel()
	inner := filepath.Join(t.TempDir(), "inner")
	g := newGrouped(t, nil, "scheduler.group.before-seal=pause("+inner+")")
	t.Cleanup(func() { _ = os.WriteFile(inner, nil, 0o600) })
	table := g.use(t)
	jobs := g.hold(table)
	g.open()
	lists := filepath.Join(g.Dir, "warehouse", "g", table, "metadata", "snap-*.avro")
	harness.Eventually(t, "the group is about to be sealed", func() bool {
		found, err := filepath.Glob(lists)
		require.NoError(t, err)
		return len(found) == 2
	})
	cancelled, _, err := g.Client().Cancel(harness.Context(t), jobs[2])
	require.NoError(t, err)
	require.True(t, cancelled)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, g.end(jobs[2]).GetState(), "at once")
	require.NoError(t, os.WriteFile(inner, nil, 0o600))
	g.check(table, slices.Delete(slices.Clone(jobs), 2, 3), 2)
}

// One job of the group has committed before, which nobody remembers: its key finds that commit, and the others are not held up (C5, S64).
func TestGroup_OneHasCommittedBefore_S64(t *testing.T) {
	t.Parallel()
	g := newGrouped(t, nil)
	table := g.use(t)
	first := g.submit(table, 2, "the key")
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, g.end(first).GetState())
	before := inline(t, g.end(first))["snapshot_id"]
	g.Scheduler.Terminate(t)
	require.NoError(t, os.Remove(journalOf(g.Cluster)))
	g.StartScheduler(g.env)
	g.AwaitExecutors(1)
	jobs := g.hold(table, "", "the key")
	g.open()
	for _, id := range jobs {
		require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, g.end(id).GetState(), "%v", g.end(id).GetError())
	}
	again := inline(t, g.end(jobs[2]))
	require.Equal(t, before, again["snapshot_id"])
	require.Equal(t, "true", again["already_committed"])
	require.Len(t, idsOf(t, g.Table("g", table)), 1+groupUnits)
	g.clean(table)
}

// The reply to a group's commit is lost, and the table cannot be read at first: all of its jobs resolve, none ends, and in the end each is told
// that it has committed (S63, S67).
func TestGroup_LostReply_S63_S67(t *testing.T) {
	t.Parallel()
	look := filepath.Join(t.TempDir(), "look")
	g := newGrouped(t, nil, "broker.commit.lost-reply=1*off->1*error(cut)", "broker.look.before=1*error(no network)->pause("+look+")")
	t.Cleanup(func() { _ = os.WriteFile(look, nil, 0o600) })
	table := g.use(t)
	jobs := g.hold(table)
	g.open()
	for _, id := range jobs[1:] {
		harness.Eventually(t, "the job resolves", func() bool {
			j, err := g.Client().Job(context.Background(), id)
			require.NoError(t, err)
			return j.GetJob().GetPhase() == "resolving"
		})
		cancelled, why, err := g.Client().Cancel(harness.Context(t), id)
		require.NoError(t, err)
		require.False(t, cancelled, why)
	}
	require.NoError(t, os.WriteFile(look, nil, 0o600))
	g.check(table, jobs, 2)
}
