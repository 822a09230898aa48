package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/test/harness"
)

// runEvent is what the tests look at of an OpenLineage event.
type runEvent struct {
	Type string `json:"eventType"`
	Time string `json:"eventTime"`
	Run  struct {
		ID     string                     `json:"runId"`
		Facets map[string]json.RawMessage `json:"facets"`
	} `json:"run"`
	Job struct {
		Namespace, Name string
		Facets          map[string]json.RawMessage
	} `json:"job"`
	Inputs, Outputs []eventDataset
}

type eventDataset struct {
	Namespace, Name string
	Facets          struct {
		Schema  struct{ Fields []struct{ Name, Type string } }
		Version struct{ DatasetVersion string }
		Symlink struct {
			Identifiers []struct{ Namespace, Name, Type string }
		} `json:"symlinks"`
		Lifecycle struct{ LifecycleStateChange string } `json:"lifecycleStateChange"`
	}
	InputFacets struct {
		Statistics struct{ Size, FileCount int64 } `json:"inputStatistics"`
	}
	OutputFacets struct {
		Statistics struct{ RowCount, Size, FileCount int64 } `json:"outputStatistics"`
	}
}

const tellConfig = `lineage: {file: lineage.jsonl, namespace: warehouse}
commit_reports: {file: reports.jsonl}
`

func lines[T any](t *testing.T, path string) []T {
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var out []T
	for l := range strings.Lines(string(b)) {
		if !strings.HasSuffix(l, "\n") {
			break // it is being written
		}
		var v T
		require.NoError(t, json.Unmarshal([]byte(l), &v), l)
		out = append(out, v)
	}
	return out
}

func lineageOf(t *testing.T, c *harness.Cluster, job string) []runEvent {
	var out []runEvent
	for _, e := range lines[runEvent](t, filepath.Join(c.Dir, "lineage.jsonl")) {
		if e.Run.ID == job {
			out = append(out, e)
		}
	}
	return out
}

// awaitLineage waits for the event that ends a job's run.
func awaitLineage(t *testing.T, c *harness.Cluster, job, end string) []runEvent {
	t.Helper()
	var out []runEvent
	harness.Eventually(t, "the run ends with "+end, func() bool {
		out = lineageOf(t, c, job)
		return len(out) > 0 && out[len(out)-1].Type == end
	})
	require.Equal(t, "START", out[0].Type)
	for _, e := range out {
		require.Equal(t, "warehouse", e.Job.Namespace)
		require.Equal(t, out[0].Job.Name, e.Job.Name)
		require.NotContains(t, e.Job.Facets, "sql", "it was not asked for")
	}
	return out
}

// TestLineage_TellsWhatJobsReadAndWrite: one START and one end for each job that reads or writes, with datasets, columns, versions and counts.
func TestLineage_TellsWhatJobsReadAndWrite(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1, Config: tellConfig})
	data := filepath.Join(c.Dir, "in")
	require.NoError(t, os.MkdirAll(data, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(data, "a.csv"), []byte("id,name\n1,x\n2,y\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(data, "b.csv"), []byte("id,name\n3,z\n"), 0o600))
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, name VARCHAR)")
	parent := "airflow/dag.task/01890a5d-ac96-774b-bcce-b302099a8057"
	c.SQL("INSERT INTO lake.d.t SELECT id, name FROM '"+data+"/*.csv'", "--set", "signet.lineage.parent="+parent, "--set", "signet.lineage.job=load.t")
	insert := c.Jobs()[0].ID
	events := awaitLineage(t, c, insert, "COMPLETE")
	require.Len(t, events, 2)
	for _, e := range events {
		require.Equal(t, "load.t", e.Job.Name)
		require.Contains(t, string(e.Run.Facets["parent"]), `"name":"dag.task"`)
		require.Len(t, e.Inputs, 1)
		require.Equal(t, []string{"file", data}, []string{e.Inputs[0].Namespace, e.Inputs[0].Name})
		require.EqualValues(t, 2, e.Inputs[0].InputFacets.Statistics.FileCount)
		require.Len(t, e.Outputs, 1)
		out := e.Outputs[0]
		require.Equal(t, []string{"file", filepath.Join(c.Dir, "warehouse", "d", "t")}, []string{out.Namespace, out.Name})
		require.Equal(t, "d.t", out.Facets.Symlink.Identifiers[0].Name)
		require.Len(t, out.Facets.Schema.Fields, 2)
		require.Equal(t, "BIGINT", out.Facets.Schema.Fields[0].Type)
	}
	tab := c.Table("d", "t")
	last := events[1].Outputs[0]
	require.Equal(t, versionText(tab), last.Facets.Version.DatasetVersion)
	require.EqualValues(t, 3, last.OutputFacets.Statistics.RowCount)
	require.EqualValues(t, len(tab.Files), last.OutputFacets.Statistics.FileCount)

	c.SQL("CREATE TABLE lake.d.u AS SELECT count(*) AS n FROM lake.d.t")
	events = awaitLineage(t, c, c.Jobs()[0].ID, "COMPLETE")
	require.Equal(t, versionText(tab), events[1].Inputs[0].Facets.Version.DatasetVersion)
	require.Equal(t, "CREATE", events[1].Outputs[0].Facets.Lifecycle.LifecycleStateChange)
	require.Equal(t, filepath.Join(c.Dir, "warehouse", "d", "t"), events[1].Inputs[0].Name, "the same dataset as it was written")

	c.SQL("SELECT * FROM lake.d.u")
	events = awaitLineage(t, c, c.Jobs()[0].ID, "COMPLETE")
	require.Len(t, events[1].Inputs, 1)
	require.Empty(t, events[1].Outputs)

	c.Fail(1, "INSERT INTO lake.d.t SELECT CAST(name AS BIGINT), name FROM lake.d.t")
	events = awaitLineage(t, c, c.Jobs()[0].ID, "FAIL")
	require.Contains(t, string(events[1].Run.Facets["errorMessage"]), "message")

	c.Fail(1, "INSERT INTO lake.d.nowhere VALUES (1)")
	awaitLineage(t, c, c.Jobs()[0].ID, "FAIL")
	c.SQL("SHOW TABLES FROM lake.d")
	show := c.Jobs()[0].ID
	c.SQL("SELECT 1")
	awaitLineage(t, c, c.Jobs()[0].ID, "COMPLETE")
	require.Empty(t, lineageOf(t, c, show), "it neither reads nor writes")

	type report struct {
		Type      string `json:"report-type"`
		Table     string `json:"table-name"`
		Snapshot  int64  `json:"snapshot-id"`
		Sequence  int64  `json:"sequence-number"`
		Operation string `json:"operation"`
		Metrics   map[string]struct {
			Value int64
			Total int64 `json:"total-duration"`
		}
	}
	reports := lines[report](t, filepath.Join(c.Dir, "reports.jsonl"))
	require.Len(t, reports, 2)
	r := reports[0]
	require.Equal(t, []any{"commit-report", "lake.d.t", tab.Metadata.CurrentSnapshot().SnapshotID, int64(1), "append"}, []any{r.Type, r.Table, r.Snapshot, r.Sequence, r.Operation})
	require.EqualValues(t, 3, r.Metrics["added-records"].Value)
	require.EqualValues(t, 1, r.Metrics["attempts"].Value)
	require.Positive(t, r.Metrics["total-duration"].Total)
	require.Equal(t, "lake.d.u", reports[1].Table)
	history := harness.RunCommand(t, "", nil, "history", insert, "--data-dir", filepath.Join(c.Dir, "data"))
	require.Contains(t, history.Out, "sequence number 1, append: files +1 -0, rows +3 -0")
}

func versionText(tab harness.Table) string {
	b, _ := json.Marshal(tab.Metadata.CurrentSnapshot().SnapshotID)
	return string(b)
}

// TestLineage_NothingIsLostInACrash: the scheduler dies right after a commit was recorded, and the next one tells of it; it dies right after it has told, and
// the next one tells again.
func TestLineage_NothingIsLostInACrash(t *testing.T) {
	t.Parallel()
	for point, passing := range map[string]int{"scheduler.settle.after-journal": 0, "scheduler.outbox.after-send": 1, "scheduler.seal.after-journal": 0} {
		t.Run(point, func(t *testing.T) {
			c := harness.New(t, harness.Options{Executors: 1, Config: tellConfig})
			c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT)")
			c.Scheduler.Kill()
			f := harness.NewFaults(t)
			c.StartScheduler(f.Env(point))
			c.AwaitExecutors(1)
			f.Arm(t, point, passing)
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Run("sql", "--quiet", "INSERT INTO lake.d.t VALUES (1)")
			}()
			c.Scheduler.Wait(t)
			require.True(t, c.Scheduler.Killed())
			c.StartScheduler()
			<-done
			job := c.AwaitJobs()[0]
			require.Equal(t, "successful", strings.ToLower(job.State))
			events := awaitLineage(t, c, job.ID, "COMPLETE")
			last := events[len(events)-1].Outputs[0]
			require.Equal(t, versionText(c.Table("d", "t")), last.Facets.Version.DatasetVersion)
			require.EqualValues(t, 1, last.OutputFacets.Statistics.RowCount)
			harness.Eventually(t, "the commit is reported", func() bool { return len(lines[map[string]any](t, filepath.Join(c.Dir, "reports.jsonl"))) > 0 })
		})
	}
}

// TestLineage_OfAnEndThatIsHardToJournal: an end that is journalled at the third try tells of the same run as any other, whichever write it is.
func TestLineage_OfAnEndThatIsHardToJournal(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1, Config: tellConfig})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (id BIGINT, name VARCHAR); INSERT INTO lake.d.t VALUES (1, 'x')")
	planned := 0
	for passing := 1; passing < 6; passing++ {
		c.Scheduler.Terminate(t)
		c.StartScheduler(fmt.Sprintf("%s=journal.write.before-commit=%d*off->2*error(no space)->off", fault.Env, passing))
		c.AwaitExecutors(1)
		c.Fail(1, "INSERT INTO lake.d.t SELECT CAST(name AS BIGINT), name FROM lake.d.t")
		events := awaitLineage(t, c, c.Jobs()[0].ID, "FAIL")
		for _, e := range events { // one may come twice: that it was delivered is a write, too
			require.Equal(t, events[0].Outputs == nil, e.Outputs == nil, "each tells what the run writes, or none does: %v", events)
		}
		if len(events[0].Outputs) > 0 {
			planned++
		}
	}
	require.Positive(t, planned, "some of the writes that failed came after the plan")
}
