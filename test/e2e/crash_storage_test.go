package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// storageCommit is one commit of a table that lies in storage, as its log has it.
type storageCommit struct {
	markers     []string
	add, remove []string // data files
}

// storageTable is the truth of such a table, read past Signet.
type storageTable struct {
	commits int
	markers map[string]int // how often each is there
	ids     map[int64]int
	orphans []string
}

// storageFormat is a kind of table whose log lies in storage.
type storageFormat struct {
	catalog string // name of the catalog
	config  func(root string) string
	log     func(t *testing.T, dir string) []storageCommit
	logDir  string // below the table
}

var ledgerFormat = storageFormat{catalog: "led", config: ledgerCatalog, log: ledgerLog, logDir: "_ledger"}

// ledgerLog reads the log of test/sinks/ledger.
func ledgerLog(t *testing.T, dir string) (out []storageCommit) {
	t.Helper()
	for {
		b, err := os.ReadFile(filepath.Join(dir, "_ledger", fmt.Sprintf("%020d.json", len(out))))
		if errors.Is(err, fs.ErrNotExist) {
			return out
		}
		require.NoError(t, err)
		var e struct {
			Markers []string
			Add     []struct{ URI string }
			Remove  []string
		}
		require.NoError(t, json.Unmarshal(b, &e))
		c := storageCommit{markers: e.Markers}
		for _, f := range e.Add {
			c.add = append(c.add, strings.TrimPrefix(f.URI, "file://"))
		}
		for _, uri := range e.Remove {
			c.remove = append(c.remove, strings.TrimPrefix(uri, "file://"))
		}
		out = append(out, c)
	}
}

// read replays the log, and lists the files that no commit has ever named.
func (f storageFormat) read(t *testing.T, dir string) storageTable {
	t.Helper()
	out := storageTable{markers: map[string]int{}, ids: map[int64]int{}}
	live, known := map[string]bool{}, map[string]bool{}
	for _, c := range f.log(t, dir) {
		out.commits++
		for _, m := range c.markers {
			out.markers[m]++
		}
		for _, file := range c.remove {
			require.True(t, live[file], "%s is removed and was not there", file)
			delete(live, file)
		}
		for _, file := range c.add {
			require.False(t, known[file], "%s twice", file)
			live[file], known[file] = true, true
		}
	}
	for file := range live {
		for _, id := range harness.Int64s(t, file, "id") {
			out.ids[id]++
		}
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it is being removed
			return nil
		}
		inLog := strings.HasPrefix(path, filepath.Join(dir, f.logDir)+"/") && !strings.HasPrefix(filepath.Base(path), ".")
		if err == nil && d.Type().IsRegular() && !known[path] && !inLog {
			out.orphans = append(out.orphans, path)
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// await waits until no file of the table is orphaned, and returns its state.
func (f storageFormat) await(t *testing.T, dir string) (now storageTable) {
	t.Helper()
	clean := harness.Soon(harness.Patience, func() bool {
		now = f.read(t, dir)
		return len(now.orphans) == 0
	})
	require.True(t, clean, "left over: %s", now.orphans)
	return now
}

// storageStatements are what runs while something dies, on tables with a log in storage.
var storageStatements = map[string]statement{
	"insert":    {prepare: withBaseline, text: "INSERT INTO {table} SELECT id FROM '{input}'", rows: baseline + bulkFiles*bulkRows, commits: 1},
	"ctas":      {text: "CREATE TABLE {table} AS SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1},
	"overwrite": {prepare: withBaseline, text: "INSERT OVERWRITE {table} SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1},
	"overwrite by filter": {
		prepare: "CREATE TABLE %s PARTITIONED BY (p) AS SELECT i AS id, i & 1 AS p FROM range(-10, 0) r(i)",
		text:    "INSERT INTO {table} REPLACE WHERE p = 0 SELECT id, 0 AS p FROM '{input}'", rows: baseline/2 + bulkFiles*bulkRows, commits: 1,
	},
	"delete": {prepare: withBaseline, text: deleteSome, rows: baseline - 5, commits: 1},
	"merge":  {prepare: withBaseline, text: mergeSome, rows: bulkFiles*bulkRows - 5, commits: 1},
	"many": { // the tenth version has a checkpoint
		prepare: withSmallFiles + "; INSERT INTO %[1]s VALUES (1000); INSERT INTO %[1]s VALUES (1001); INSERT INTO %[1]s VALUES (1002); INSERT INTO %[1]s VALUES (1003); INSERT INTO %[1]s VALUES (1004)",
		text:    "INSERT INTO {table} SELECT id FROM '{input}' WHERE id < 100", rows: baseline + 5 + 100, commits: 1,
	},
	"truncate": {prepare: withBaseline, text: "TRUNCATE TABLE {table}", commits: 1},
	"create":   {text: "CREATE TABLE {table} (id BIGINT)", commits: 1, unmarked: true},
	"alter":    {prepare: withBaseline, text: "ALTER TABLE {table} ADD COLUMN extra VARCHAR", rows: baseline, commits: 1, unmarked: true},
	"replace":  {prepare: withBaseline, text: "CREATE OR REPLACE TABLE {table} AS SELECT id FROM '{input}'", rows: bulkFiles * bulkRows, commits: 1},
	"rewrite":  {prepare: withSmallFiles, text: "CALL {catalog}.system.rewrite_data_files(table => '{table}')", rows: baseline, commits: 1},
}

// storageCrashes are where the scheduler dies in an INSERT, in the order in which it gets there.
var storageCrashes = []crash{
	{point: "scheduler.submit.after-journal", do: "insert"},
	{point: "plugins.preparewrite.after", do: "insert"},
	{point: "scheduler.plan.before-journal", do: "insert"},
	{point: "scheduler.launch.before", passing: 1, do: "insert"},
	{point: "scheduler.manifest.before-journal", passing: 1, do: "insert"},
	{point: "scheduler.manifest.before-ack", do: "insert"},
	{point: "scheduler.root.start", do: "insert"},
	{point: "scheduler.stage.before-finish", do: "insert"},
	{point: "plugins.stage.after", do: "insert"},
	{point: "scheduler.root.before-commit", do: "insert"},
	{point: "plugins.commit.before", do: "insert"},
	{point: "broker.seal.before", do: "insert"},
	{point: "scheduler.seal.before-journal", do: "insert"},
	{point: "scheduler.seal.after-journal", do: "insert"},
	{point: "broker.seal.after", do: "insert"},
	{point: "storage.put.before-sync", do: "insert"},
	{point: "storage.put.before-link", do: "insert"},
	{point: "storage.put.after-link", do: "insert"},
	{point: "broker.commit.after-send", do: "insert"},
	{point: "broker.commit.lost-reply", do: "insert"},
	{point: "broker.settle.before", do: "insert"},
	{point: "scheduler.settle.before-journal", do: "insert"},
	{point: "scheduler.settle.after-journal", do: "insert", after: true},
	{point: "broker.settle.after", do: "insert", after: true},
	{point: "plugins.commit.after", do: "insert", after: true},
}

var storageRecoveries = []crash{
	{point: "scheduler.submit.after-journal", again: "scheduler.plan.before-journal", do: "insert"},
	{point: "scheduler.manifest.before-ack", again: "scheduler.stage.before-finish", do: "insert"},
	{point: "scheduler.root.before-commit", again: "scheduler.seal.after-journal", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "broker.look.before", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "storage.put.after-link", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "scheduler.settle.after-journal", do: "insert"},
	{point: "broker.commit.after-send", again: "broker.look.before", do: "insert"},
}

// storageElsewhere is at the commit of every other statement.
func storageElsewhere() (out []crash) {
	for _, do := range []string{"ctas", "overwrite", "overwrite by filter", "delete", "merge", "truncate", "replace", "rewrite"} {
		for _, c := range storageCrashes[slices.IndexFunc(storageCrashes, func(c crash) bool { return c.point == "scheduler.root.before-commit" }):] {
			c.do, c.sampled = do, true
			out = append(out, c)
		}
	}
	return out
}

var storagePlugins = []crash{
	{point: "sdk.stage.before-reply", do: "insert"},
	{point: "sdk.commit.before", do: "insert"},
	{point: "sdk.commit-point.before-send", do: "insert"},
	{point: "sdk.commit-point.after-reply", do: "insert", after: true},
	{point: "sdk.commit.before-reply", do: "insert", after: true},
	{point: "sdk.commit-point.before-send", do: "overwrite"},
	{point: "sdk.commit-point.after-reply", do: "merge", after: true},
	{point: "sdk.commit.before-reply", do: "ctas", after: true},
}

// Wherever somebody dies, the table's log has the statement once, and no file is left that it does not name.
func TestCrashStorage_Scheduler(t *testing.T) { ledgerFormat.crashes(t, scheduler, storageCrashes) }

func TestCrashStorage_Recovery(t *testing.T) { ledgerFormat.crashes(t, scheduler, storageRecoveries) }

func TestCrashStorage_Statements(t *testing.T) {
	ledgerFormat.crashes(t, scheduler, storageElsewhere())
}
func TestCrashStorage_Plugin(t *testing.T) { ledgerFormat.crashes(t, plugin, storagePlugins) }

func (f storageFormat) crashes(t *testing.T, who string, crashes []crash) {
	t.Parallel()
	root := t.TempDir()
	s := newCrashStage(t, pointsOf(crashes), f.config(root))
	for n, c := range some(t.Name(), crashes) {
		c.who = who
		t.Run(c.name(), func(t *testing.T) {
			for ; !f.crash(t, s, root, fmt.Sprintf("t%d_%d", n, c.passing), c); c.passing-- {
				require.Positive(t, c.passing, "answered, and nobody has died: the point was not reached")
			}
		})
	}
}

// crash says whether somebody died.
func (f storageFormat) crash(t *testing.T, s *crashStage, root, name string, c crash) bool {
	s.Use(t)
	s.revive(t, "")
	st, table, dir := storageStatements[c.do], f.catalog+".f."+name, filepath.Join(root, "f", name)
	if st.prepare != "" {
		s.SQL(fmt.Sprintf(st.prepare, table))
	}
	before := f.read(t, dir).commits
	x := &trial{crashStage: s, t: t, crash: c, st: st, name: name}
	x.text = strings.NewReplacer("{table}", table, "{catalog}", f.catalog, "{input}", s.input).Replace(st.text)
	reached, err := x.crashing()
	require.NoError(t, err)
	if !reached {
		return false
	}
	s.awaitAll(t)
	require.NoError(t, s.execute(t, "key of "+name, x.text), "once more, under the same key")
	jobs := slices.DeleteFunc(s.JobsAbout(table), func(j *schedulerv1.Job) bool { return j.GetStatement() != x.text })
	require.Len(t, jobs, 1)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, jobs[0].GetState())
	now := f.await(t, dir)
	require.Len(t, now.ids, st.rows)
	for id, times := range now.ids {
		require.Equal(t, 1, times, "row %d", id)
	}
	require.Equal(t, before+st.commits, now.commits)
	for m, times := range now.markers {
		require.Equal(t, 1, times, "marker %s", m)
	}
	marked := now.commits
	if st.unmarked {
		marked -= st.commits
	}
	require.Len(t, now.markers, marked)
	require.Equal(t, fmt.Sprint(st.rows), s.Value("SELECT count(*) FROM "+table))
	return true
}

// bodyCrashes are those in a commit whose object does not go into the journal.
var bodyCrashes = []crash{
	{point: "broker.body.before-create", do: "insert"},
	{point: "broker.body.after-create", do: "insert"},
	{point: "scheduler.seal.before-journal", do: "insert"},
	{point: "scheduler.seal.after-journal", do: "insert"},
	{point: "storage.put.before-link", do: "insert"},
	{point: "broker.commit.after-send", do: "insert"},
	{point: "scheduler.settle.before-journal", do: "insert"},
	{point: "broker.body.before-remove", do: "insert", after: true},
	{point: "scheduler.seal.after-journal", again: "broker.resolve.before-send", do: "insert"},
	{point: "scheduler.seal.after-journal", again: "scheduler.settle.after-journal", do: "insert"},
}

// S62, S67: a commit of 18 MiB is sent again as it was, from the file beside the journal, and no such file is left.
func TestCrashStorage_LargeCommit(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f := ledgerFormat
	s := newCrashStage(t, pointsOf(bodyCrashes), f.config(root))
	for n, c := range bodyCrashes {
		c.who = scheduler
		t.Run(c.name(), func(t *testing.T) {
			s.Use(t)
			s.revive(t, "")
			name := fmt.Sprintf("t%d", n)
			table, dir := f.catalog+".f."+name, filepath.Join(root, "f", name)
			s.SQL("CREATE TABLE " + table + " WITH ('pad' = '18874368') AS SELECT CAST(-1 AS BIGINT) AS id")
			x := &trial{crashStage: s, t: t, crash: c, name: name, text: "INSERT INTO " + table + " SELECT id FROM '" + s.input + "'"}
			reached, err := x.crashing()
			require.NoError(t, err)
			require.True(t, reached, "nobody has died")
			s.awaitAll(t)
			require.NoError(t, s.execute(t, "key of "+name, x.text), "once more, under the same key")
			now := f.await(t, dir)
			require.Len(t, now.ids, 1+bulkFiles*bulkRows)
			require.Equal(t, 2, now.commits)
			harness.Eventually(t, "no commit object is left beside the journal", func() bool {
				left, err := os.ReadDir(filepath.Join(s.Dir, "data", "commits"))
				return err == nil && len(left) == 0
			})
		})
	}
}
