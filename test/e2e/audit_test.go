package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// audited are the events in an audit log.
func audited(t *testing.T, c *harness.Cluster) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, "audit.jsonl"))
	require.NoError(t, err)
	var out []map[string]any
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(line, "\n") {
			continue // it is being written
		}
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		out = append(out, e)
	}
	return out
}

// eventsWhere are those that have all of these values.
func eventsWhere(list []map[string]any, want map[string]any) []map[string]any {
	var out []map[string]any
	for _, e := range list {
		fits := true
		for k, v := range want {
			fits = fits && e[k] == v
		}
		if fits {
			out = append(out, e)
		}
	}
	return out
}

func awaitEvent(t *testing.T, c *harness.Cluster, want map[string]any) map[string]any {
	t.Helper()
	var found []map[string]any
	harness.Eventually(t, "the event is in the audit log", func() bool {
		found = eventsWhere(audited(t, c), want)
		return len(found) > 0
	})
	require.Len(t, found, 1, "%v", want)
	return found[0]
}

// What was committed, made, altered, dropped and refused, and by whom, is in the audit log; what was only read is not.
//
// Numbers in docs/semantics.md: J23.
func TestAudit_TellsWhoDidWhat(t *testing.T) {
	c, as := permitted(t, "audit: {file: audit.jsonl}\n")
	c.SQL("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT); CREATE TABLE lake.demo.gone (id BIGINT)")
	writer := principalOf(insert)
	require.Equal(t, 0, runAs(c, t, as(writer), "INSERT INTO lake.demo.t VALUES (41), (42), (4242)").Code)
	c.SQL("ALTER TABLE lake.demo.t ADD COLUMN b BIGINT; DROP TABLE lake.demo.gone; SELECT * FROM lake.demo.t; DROP TABLE IF EXISTS lake.demo.never; INSERT INTO lake.demo.t SELECT id, b FROM lake.demo.t WHERE id > 100000")
	require.Equal(t, 1, runAs(c, t, as(writer), "SELECT * FROM lake.demo.t").Code)
	bad := file(t, "bad", "not-a-token")
	require.Equal(t, 1, runAs(c, t, []string{"--token-file", bad}, "SHOW CATALOGS").Code)

	e := awaitEvent(t, c, map[string]any{"event": "commit", "principal": writer})
	require.Equal(t, "lake.demo.t", e["table"])
	require.Equal(t, "insert", e["kind"])
	require.EqualValues(t, 3, e["rows"])
	require.EqualValues(t, 1, e["files"])
	require.NotEmpty(t, e["marker"])
	require.NotEmpty(t, e["statement_hash"])
	require.NotEmpty(t, e["table_uuid"])
	snapshots := c.SQL("SHOW SNAPSHOTS FROM lake.demo.t")
	require.Equal(t, snapshots[0][1], e["version"])
	awaitEvent(t, c, map[string]any{"event": "create", "schema": "lake.demo", "principal": "admin"})
	awaitEvent(t, c, map[string]any{"event": "create", "table": "lake.demo.t"})
	awaitEvent(t, c, map[string]any{"event": "alter", "table": "lake.demo.t"})
	awaitEvent(t, c, map[string]any{"event": "drop", "table": "lake.demo.gone"})
	e = awaitEvent(t, c, map[string]any{"event": "refused", "reason": "permission", "principal": writer})
	require.Contains(t, e["message"], "may not read table lake.demo.t")
	e = awaitEvent(t, c, map[string]any{"event": "refused", "reason": "authentication"})
	require.Contains(t, e["peer"], "127.0.0.1:")
	require.Contains(t, e["method"], "/signet.scheduler.v1.Scheduler/")

	all := audited(t, c)
	require.Empty(t, eventsWhere(all, map[string]any{"kind": "select", "event": "commit"}))
	require.Empty(t, eventsWhere(all, map[string]any{"table": "lake.demo.never"}))
	b, err := os.ReadFile(filepath.Join(c.Dir, "audit.jsonl"))
	require.NoError(t, err)
	require.NotContains(t, string(b), "4242", "statements are not written")
	require.NotContains(t, string(b), "token-of-")
	st, err := os.Stat(filepath.Join(c.Dir, "audit.jsonl"))
	require.NoError(t, err)
	require.Zero(t, st.Mode().Perm()&0o077)
	r := c.Run("sql", "--quiet", "SELECT * FROM read_json('"+filepath.Join(c.Dir, "audit.jsonl")+"')")
	require.Equal(t, 1, r.Code, "no statement reads it")
}

// Wherever the scheduler is killed around a commit, the audit log has it once.
//
// Numbers in docs/semantics.md: J23.
func TestAudit_OneEventOverCrashes(t *testing.T) {
	for _, point := range []string{
		"catalog.commit.after-swap", "scheduler.settle.before-journal", "scheduler.settle.after-journal", "scheduler.outbox.after-send", "scheduler.seal.after-journal",
	} {
		t.Run(point, func(t *testing.T) {
			c := harness.New(t, harness.Options{Executors: 1, Config: "audit: {file: audit.jsonl, include_sql: true}\n"})
			c.SQL("CREATE SCHEMA lake.demo; CREATE TABLE lake.demo.t (id BIGINT)")
			awaitEvent(t, c, map[string]any{"event": "create", "table": "lake.demo.t"})
			c.Scheduler.Terminate(t)
			c.StartScheduler("SIGNET_FAILPOINTS=" + point + "=kill")
			c.AwaitExecutors(1)
			c.Run("sql", "--quiet", "INSERT INTO lake.demo.t VALUES (1)", "--retry-for", "0s", "--idempotency-key", "once")
			c.Scheduler.Wait(t)
			c.StartScheduler()
			c.AwaitExecutors(1)
			r := c.Run("sql", "--quiet", "INSERT INTO lake.demo.t VALUES (1)", "--idempotency-key", "once")
			require.Equal(t, 0, r.Code, r.Err)
			c.AwaitJobs()
			require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.demo.t"))
			e := awaitEvent(t, c, map[string]any{"event": "commit"})
			require.Equal(t, "INSERT INTO lake.demo.t VALUES (1)", e["sql"])
			c.Scheduler.Terminate(t)
			c.StartScheduler()
			c.AwaitExecutors(1)
			c.SQL("INSERT INTO lake.demo.t VALUES (2)") // told after everything that was left
			awaitEvent(t, c, map[string]any{"event": "commit", "sql": "INSERT INTO lake.demo.t VALUES (2)"})
			require.Len(t, eventsWhere(audited(t, c), map[string]any{"event": "commit"}), 2)
		})
	}
}
