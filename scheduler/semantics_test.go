package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// A job that was told "cancelled" while it was planned ends so, and no task of it runs when planning could go on (T3). Until then it says what it waits
// for (J9).
func TestCancel_WhilePlanned_T3(t *testing.T) {
	b := newBench(t)
	id := b.submit("SELECT n", inParts("static")) // nobody is there to analyse it
	b.eventually("it is planned, and says what it waits for", func() bool {
		j := b.job(id).GetJob()
		return j.GetState() == schedulerv1.JobState_JOB_STATE_PLANNING && j.GetMessage() == "waiting for an executor"
	})
	cancelled, _, err := b.client.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, cancelled)
	x := b.actor()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, b.end(id).GetState())
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", inParts("static"))).GetState())
	for _, task := range x.ran() {
		require.NotEqual(t, id, task.JobId)
	}
}

// Whoever reads his subscription only when all is over, and much more has happened than fits any buffer, hears the job's end (T4).
func TestWatch_SlowSubscriberHearsTheEnd_T4(t *testing.T) {
	b := newBench(t)
	id := b.submit("SELECT n", inParts("static"))
	st, err := b.client.Raw().Watch(t.Context(), &schedulerv1.WatchRequest{JobId: id})
	require.NoError(t, err)
	b.eventually("it is planned", func() bool { return b.job(id).GetJob().GetState() == schedulerv1.JobState_JOB_STATE_PLANNING })
	j := b.server.job(id)
	for range 500 {
		j.setPhase(schedulerv1.JobState_JOB_STATE_PLANNING, "", strings.Repeat("x", 16<<10))
	}
	b.actor()
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(id).GetState())
	var last *schedulerv1.Job
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		last = m.Job
	}
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, last.GetState())
}

// The rows of a job without a root wait for their client, who may fetch them more than once, while executors keep nothing (S42).
func TestSelect_RowsWaitForTheirClient_S42(t *testing.T) {
	b := newBench(t)
	x := b.actor()
	id := b.submit("SELECT n", inParts("static"))
	j := b.end(id)
	require.True(t, j.GetHasRows())
	b.freed(x)
	fetch := func() int64 {
		rows, err := b.client.Rows(t.Context(), j)
		require.NoError(t, err)
		defer rows.Close()
		n := int64(0)
		for rows.Next() {
			n += rows.RecordBatch().NumRows()
		}
		require.NoError(t, rows.Err())
		return n
	}
	for range 2 {
		require.EqualValues(t, 1, fetch())
	}
	b.server.job(id).output.free() // as the time limit does
	_, err := b.client.Rows(t.Context(), j)
	require.ErrorContains(t, err, "no rows to fetch")
}

// Rows do not outlive the scheduler that has them: a stop removes them, and a start what a crash has left.
func TestSelect_StartRemovesRowsOfBefore(t *testing.T) {
	b := newBench(t)
	b.actor()
	id := b.submit("SELECT n", inParts("static"))
	b.end(id)
	dir := filepath.Join(resultsDir(b.cfg.DataDir), id)
	require.DirExists(t, dir)
	b.stop()
	require.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(dir, 0o700)) // as a crash leaves it
	b.start()
	require.NoDirExists(t, dir)
}

// No task says what the session had set (T7).
func TestTasks_CarryNoSettings_T7(t *testing.T) {
	b := newBench(t)
	x := b.actor()
	set := inParts("static")
	set[plan.SettingMinTaskBytes] = "4711"
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, b.end(b.submit("SELECT n", set)).GetState())
	require.NotEmpty(t, x.ran())
	for _, task := range x.ran() {
		text := prototext.Format(task)
		for name := range set {
			require.NotContains(t, text, name)
		}
		require.NotContains(t, text, "4711")
	}
}

// What a failed root reports keeps its code, its cause and its hint (S22, S23).
func TestRootFailure_KeepsCodeCauseAndHint_S22_S23(t *testing.T) {
	cause := errors.New("the catalog is read-only")
	err := rootFailure(fail(codeRefused, "ask its operator", "the commit to t was refused: %w", cause))
	f := asFailure(err)
	require.Equal(t, "Error running the job's scheduler root: the commit to t was refused: the catalog is read-only", f.Message)
	require.Equal(t, codeRefused, f.Code)
	require.Equal(t, "ask its operator", f.Hint)
	require.ErrorIs(t, err, cause)
	require.NoError(t, rootFailure(nil))
	require.Equal(t, errCancelled, rootFailure(errCancelled), "a cancel is no failure of the root")
}

// S46: the scheduler's stage is the last one, without tasks. S48: other jobs have none. J13: the others are in their order.
func TestView_RootIsTheLastStage_S46_S48_J13(t *testing.T) {
	ids := func(list []shownStage) []eventlog.StageID {
		var out []eventlog.StageID
		for _, s := range list {
			out = append(out, s.id)
		}
		return out
	}
	const stages = "Stage 10: 2 tasks\n  Write t\nStage 2: 1 task\n  Scan\nStage 0: 3 tasks\n  Scan\n"
	tasks := []*schedulerv1.TaskInfo{{Stage: 10}, {Stage: 0}, {Stage: 2}}
	v := &jobView{}
	with := v.list("[scheduler] Commit t\n"+stages, tasks, journal.Job{})
	require.Equal(t, []eventlog.StageID{"0", "2", "10", eventlog.SchedulerStage}, ids(with))
	require.Equal(t, shownStage{id: eventlog.SchedulerStage, plan: "[scheduler] Commit t\n"}, with[3])
	require.Equal(t, []eventlog.StageID{"0", "2", "10"}, ids(v.list(stages, tasks, journal.Job{})))
	require.Equal(t, []eventlog.StageID{eventlog.SchedulerStage}, ids(v.list("", nil, journal.Job{Write: &journal.Write{}})))
}

// S38: the answer of a commit does not grow with what was written.
func TestCommitResult_IsSmallHoweverMuchWasWritten_S38(t *testing.T) {
	m := coordinator.New("job", 1)
	step := func(ev coordinator.Event) {
		t.Helper()
		_, err := m.Step(ev)
		require.NoError(t, err)
	}
	step(coordinator.Begin{Tasks: 1, TableUUID: "u"})
	paths := make([]string, 10_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("file:///t/a/%d", i)
	}
	step(coordinator.Accept{Attempt: "a", Epoch: 1, Digest: "00", Totals: coordinator.Totals{Files: int64(len(paths)), Rows: 1 << 50, Bytes: 1 << 60}, Paths: paths})
	step(coordinator.Start{})
	step(coordinator.Seal{Attempt: coordinator.Attempt{
		Epoch: 1, Kind: coordinator.KindCatalog, SnapshotID: 1 << 60, Version: "1152921504606846976", SequenceNumber: 1, TableUUID: "u", Markers: []string{"m"},
		Requirements: json.RawMessage(`[]`), Updates: json.RawMessage(`[]`),
	}})
	step(coordinator.Landed{Seq: 1, Version: "1152921504606846976", Location: "v2.json"})
	b, err := commitResult(m, committed{table: "lake.schema.table", job: "0196f8a0-0000-7000-8000-000000000000", marker: "0123456789abcdef", branch: "audit", snapshots: true})
	require.NoError(t, err)
	require.Less(t, len(b), 4096, "names of columns and their padding included")
}

// S61, S72: what a losing attempt has written is swept when its job has ended, and again when its executor has confirmed the attempt's end, also if the
// scheduler was restarted in between.
func TestSweep_DutiesAreDoneTwiceAndSurvive_S61_S72(t *testing.T) {
	b := newBench(t)
	home := t.TempDir()
	files := &catalogEntry{name: "files", sink: "minimal", root: "file://" + home}
	b.server.catalogs["files"] = files
	table := "file://" + filepath.Join(home, "t")
	left := filepath.Join(home, "t", "job", "loser")
	writeFile := func() {
		require.NoError(t, os.MkdirAll(left, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(left, "0.parquet"), []byte("rows"), 0o600))
	}
	duties := func() (out []journal.Duty) {
		require.NoError(t, b.server.journal.View(func(tx *journal.Tx) error {
			return tx.Duties(func(d *journal.Duty) error { out = append(out, *d); return nil })
		}))
		return out
	}
	writeFile()
	rec := &journal.Job{ID: "job"}
	require.NoError(t, b.server.journal.Update(func(tx *journal.Tx) error {
		if err := tx.PutAttempt(&journal.Attempt{Job: "job", ID: "loser", Prefix: "file://" + left, Location: table, Catalog: "files"}); err != nil {
			return err
		}
		return b.server.oweSweeps(tx, rec)
	}))
	b.server.sweepOnce(t.Context())
	require.NoDirExists(t, left)
	require.Len(t, duties(), 1, "its executor may still write")
	writeFile() // as it does
	b.stop()
	b.start()
	b.server.catalogs["files"] = files
	require.Len(t, duties(), 1)
	b.server.dutyConfirmed("loser")
	b.eventually("it is swept again, and then nobody owes anything", func() bool {
		_, err := os.Stat(left)
		return errors.Is(err, os.ErrNotExist) && len(duties()) == 0
	})
}

// rootInput is how many outputs of a job's last stage are kept; those before it go as soon as they were read.
func (a *actor) rootInput(job string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, o := range a.outputs {
		if o.ref.JobId == job && o.ref.Stage == 1 {
			n++
		}
	}
	return n
}
