package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// foreignTable is a table of examples/sinks/minimal, read from its files.
type foreignTable struct {
	commits int
	markers map[string]bool
	ids     map[int64]bool
	orphans []string
}

func readForeign(t *testing.T, dir string) foreignTable {
	t.Helper()
	out := foreignTable{markers: map[string]bool{}, ids: map[int64]bool{}}
	known := map[string]bool{filepath.Join(dir, "_schema.json"): true}
	for ; ; out.commits++ {
		path := filepath.Join(dir, "_manifest", fmt.Sprintf("%020d.json", out.commits))
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			break
		}
		require.NoError(t, err)
		var m struct {
			Markers []string         `json:"markers"`
			Files   []map[string]any `json:"files"`
		}
		require.NoError(t, json.Unmarshal(b, &m))
		known[path] = true
		for _, mk := range m.Markers {
			require.False(t, out.markers[mk], "marker %s twice", mk)
			out.markers[mk] = true
		}
		for _, f := range m.Files {
			uri, ok := f["uri"].(string)
			require.True(t, ok, f)
			file := strings.TrimPrefix(uri, "file://")
			require.False(t, known[file], "%s twice", file)
			known[file] = true
			for _, id := range harness.Int64s(t, file, "id") {
				require.False(t, out.ids[id], "row %d twice", id)
				out.ids[id] = true
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it is being removed
			return nil
		}
		if err == nil && d.Type().IsRegular() && !known[path] {
			out.orphans = append(out.orphans, path)
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// awaitForeign waits until no file of the table is orphaned, and returns its state.
func awaitForeign(t *testing.T, dir string) (now foreignTable) {
	t.Helper()
	clean := harness.Soon(harness.Patience, func() bool {
		now = readForeign(t, dir)
		return len(now.orphans) == 0
	})
	require.True(t, clean, "left over: %s", now.orphans)
	return now
}

func foreignCatalog(root string) string {
	return "  files: {type: sink, sink: minimal, root: 'file://" + root + "'}\n"
}

var foreignCrashes = []crash{
	{point: "scheduler.root.before-commit", who: scheduler},
	{point: "broker.seal.before", who: scheduler},
	{point: "scheduler.seal.after-journal", who: scheduler},
	{point: "storage.put.before-link", who: scheduler},
	{point: "storage.put.after-link", who: scheduler},
	{point: "broker.commit.after-send", who: scheduler},
	{point: "broker.settle.before", who: scheduler},
	{point: "scheduler.settle.before-journal", who: scheduler},
	{point: "broker.settle.after", who: scheduler, after: true},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", who: scheduler},
	{point: "sdk.stage.before-reply", who: plugin},
	{point: "sdk.commit.before", who: plugin},
	{point: "sdk.commit-point.before-send", who: plugin},
	{point: "sdk.commit-point.after-reply", who: plugin, after: true},
	{point: "sdk.commit.before-reply", who: plugin, after: true},
}

// A foreign sink goes the same way as ours: whoever dies around its commit point, its table has the rows once.
func TestForeign_CrashesAroundTheCommitPoint(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newCrashStage(t, pointsOf(foreignCrashes), foreignCatalog(root))
	for n, c := range foreignCrashes {
		c.do = "insert"
		t.Run(c.name(), func(t *testing.T) {
			s.Use(t)
			s.revive(t, "")
			name := fmt.Sprintf("t%d", n)
			table, dir := "files.f."+name, filepath.Join(root, "f", name)
			s.SQL("CREATE TABLE " + table + " (id BIGINT); INSERT INTO " + table + " SELECT i AS id FROM range(-10, 0) r(i)")
			x := &trial{crashStage: s, t: t, crash: c, name: name, text: "INSERT INTO " + table + " SELECT id FROM '" + s.input + "'"}
			reached, err := x.crashing()
			require.NoError(t, err)
			require.True(t, reached, "nobody has died")
			s.awaitAll(t)
			require.NoError(t, s.execute(t, "key of "+name, x.text), "once more, under the same key")
			jobs := s.JobsAbout(x.text)
			require.Len(t, jobs, 1)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, jobs[0].GetState())
			now := awaitForeign(t, dir)
			require.Len(t, now.ids, baseline+bulkFiles*bulkRows)
			require.Equal(t, 2, now.commits)
			require.Len(t, now.markers, 2)
			require.Equal(t, fmt.Sprint(baseline+bulkFiles*bulkRows), s.Value("SELECT count(*) FROM "+table))
		})
	}
}

// Jobs that commit to one foreign table at once all land; when the journal is lost, the markers are found.
func TestForeign_ManyCommitsAndALostJournal(t *testing.T) {
	t.Parallel()
	const jobs = 8
	root := t.TempDir()
	c := harness.New(t, harness.Options{Executors: 1, CatalogConfig: foreignCatalog(root)})
	s, dir := &crashStage{Cluster: c}, filepath.Join(root, "f", "t")
	c.SQL("CREATE TABLE files.f.t (id BIGINT)")
	insert := func(i int) error {
		return s.execute(t, fmt.Sprint("job ", i), fmt.Sprintf("INSERT INTO files.f.t SELECT %d AS id", i))
	}
	errs := make(chan error)
	for i := range jobs {
		go func() { errs <- insert(i) }()
	}
	for range jobs {
		require.NoError(t, <-errs)
	}
	now := awaitForeign(t, dir)
	require.Len(t, now.ids, jobs)
	require.Equal(t, jobs, now.commits)

	c.Scheduler.Kill()
	loseJournal(t, c)
	c.StartScheduler()
	for i := range jobs {
		require.NoError(t, insert(i))
	}
	now = awaitForeign(t, dir)
	require.Len(t, now.ids, jobs)
	require.Equal(t, jobs, now.commits)
}
