package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

func deltaCatalog(root string) string {
	return "  dl: {type: delta, root: 'file://" + root + "'}\n"
}

func newDelta(t *testing.T) (*harness.Cluster, string) {
	root := t.TempDir()
	return harness.New(t, harness.Options{Executors: 1, CatalogConfig: deltaCatalog(root)}), root
}

var deltaFormat = storageFormat{catalog: "dl", config: deltaCatalog, log: deltaLog, logDir: "_delta_log"}

// deltaLog reads the commits of a Delta log, with nothing of Signet's.
func deltaLog(t *testing.T, dir string) (out []storageCommit) {
	t.Helper()
	for {
		b, err := os.ReadFile(filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", len(out))))
		if errors.Is(err, fs.ErrNotExist) {
			return out
		}
		require.NoError(t, err)
		c := storageCommit{}
		lines := bufio.NewScanner(bytes.NewReader(b))
		lines.Buffer(nil, len(b)+1)
		for lines.Scan() {
			var a struct {
				Add, Remove *struct{ Path string }
				Txn         *struct{ AppID string }
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &a))
			for list, file := range map[*[]string]*struct{ Path string }{&c.add: a.Add, &c.remove: a.Remove} {
				if file == nil {
					continue
				}
				name, err := url.PathUnescape(file.Path)
				require.NoError(t, err)
				*list = append(*list, filepath.Join(dir, name))
			}
			if a.Txn != nil {
				c.markers = append(c.markers, strings.TrimPrefix(a.Txn.AppID, "signet:"))
			}
		}
		require.NoError(t, lines.Err())
		out = append(out, c)
	}
}

func TestDelta_EveryStatement(t *testing.T) {
	t.Parallel()
	c, _ := newDelta(t)
	everyStatement(t, c, "dl", "CREATE OR REPLACE TABLE AS SELECT")
}

func TestDelta_ManyAppendTogether(t *testing.T) {
	t.Parallel()
	c, root := newDelta(t)
	manyAppend(t, c, root, deltaFormat)
}

func TestDelta_Vacuum(t *testing.T) {
	t.Parallel()
	c, root := newDelta(t)
	vacuums(t, c, root, "dl")
}

// D1, D5: replies are lost, and the name is found taken by our own commit: it landed once, and no second version was made.
func TestDelta_LostReplies(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := harness.New(t, harness.Options{
		Executors: 1, CatalogConfig: deltaCatalog(root), SchedulerEnv: []string{"SIGNET_FAILPOINTS=broker.commit.lost-reply=2*error(gone);broker.look.before=3*off->4*error(away)"},
	})
	c.SQL("CREATE TABLE dl.a.t AS SELECT CAST(i AS BIGINT) AS id FROM range(3) r(i)")
	require.Equal(t, "false", answerOf(t, c, "INSERT INTO dl.a.t VALUES (3)")["already_committed"])
	c.SQL("INSERT INTO dl.a.t VALUES (4)")
	require.Equal(t, "0 1 2 3 4", ids(c, "dl.a.t"))
	now := deltaFormat.await(t, filepath.Join(root, "a", "t"))
	require.Equal(t, 3, now.commits)
	require.Len(t, now.markers, 3)
}

// C16: what writes and removes no row makes no version; what empties a table does.
func TestDelta_NoRows(t *testing.T) {
	t.Parallel()
	c, root := newDelta(t)
	c.SQL("CREATE TABLE dl.a.t PARTITIONED BY (p) AS SELECT CAST(i AS BIGINT) AS id, i % 2 AS p FROM range(4) r(i)")
	commits := func() int { return deltaFormat.await(t, filepath.Join(root, "a", "t")).commits }
	for _, statement := range []string{
		"INSERT INTO dl.a.t SELECT 1, 1 WHERE false", "INSERT OVERWRITE PARTITIONS INTO dl.a.t SELECT 1, 1 WHERE false", "DELETE FROM dl.a.t WHERE id = 99",
	} {
		require.Equal(t, "0", answerOf(t, c, statement)["rows"], statement)
		require.Equal(t, 1, commits(), statement)
	}
	c.SQL("INSERT INTO dl.a.t REPLACE WHERE p = 1 SELECT 1, 1 WHERE false")
	require.Equal(t, "0 2", ids(c, "dl.a.t"))
	c.SQL("INSERT OVERWRITE dl.a.t SELECT 1, 1 WHERE false")
	require.Equal(t, "", ids(c, "dl.a.t"))
	require.Equal(t, 3, commits())
	c.SQL("CREATE TABLE dl.a.e AS SELECT CAST(1 AS BIGINT) AS id WHERE false")
	require.Equal(t, "", ids(c, "dl.a.e"))
}

// Wherever somebody dies, the Delta log has the statement once, and no file is left that it does not name.
func TestCrashDelta_Scheduler(t *testing.T) { deltaFormat.crashes(t, scheduler, storageCrashes) }

func TestCrashDelta_Recovery(t *testing.T) { deltaFormat.crashes(t, scheduler, storageRecoveries) }

func TestCrashDelta_Statements(t *testing.T) { deltaFormat.crashes(t, scheduler, storageElsewhere()) }
func TestCrashDelta_Plugin(t *testing.T)     { deltaFormat.crashes(t, plugin, deltaPlugins) }

var deltaPlugins = append([]crash{
	{point: "delta.load.before", do: "insert"},
	{point: "delta.load.before", passing: 1, do: "insert"},
	{point: "delta.commit.before-send", do: "insert"},
	{point: "delta.commit.after-send", do: "insert", after: true},
	{point: "delta.checkpoint.before", do: "many", after: true},
	{point: "delta.commit.before-send", do: "ctas"},
	{point: "delta.commit.after-send", do: "replace", after: true},
	{point: "delta.define.before-send", do: "create"},
	{point: "delta.define.before-send", do: "alter"},
	{point: "delta.define.after-send", do: "alter", after: true},
}, storagePlugins...)
