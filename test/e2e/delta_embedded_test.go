package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// The embedded cluster has a Delta catalog beside lake where the sink for it is installed. Where it is not, lake works all the same.
func TestEmbedded_DeltaBesideLake(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t)
	r := e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4); SELECT count(*) FROM delta.demo.t")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Out, "4")
	require.FileExists(t, filepath.Join(e.dir, "delta", "demo", "t", "_delta_log", "00000000000000000000.json"))

	without := t.TempDir()
	for _, name := range []string{"plugins.lock", "signet-sink-iceberg"} {
		b, err := os.ReadFile(filepath.Join(harness.Bin, "plugins", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(without, name), b, 0o755)) //nolint:gosec // it is run
	}
	other := newEmbedded(t)
	r = harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + other.dir, "SIGNET_PLUGINS_DIR=" + without}, "sql", "--output", "csv",
		"CREATE SCHEMA demo; CREATE TABLE demo.t AS SELECT 1 AS id; SHOW CATALOGS")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Out, "lake")
	require.NotContains(t, r.Out, "delta")
}

// A drop that is cut off is finished by the next start: the table is gone, with all its files, and a new one of its name is empty.
func TestDelta_DropIsCutOff(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"scheduler.drop.before", "scheduler.drop.aside"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			e := newEmbedded(t)
			require.Equal(t, 0, e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4)").Code)
			r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_FAILPOINTS=" + point + "=kill"}, "sql", "DROP TABLE delta.demo.t")
			require.NotEqual(t, 0, r.Code)
			r = e.run("SHOW TABLES FROM delta.demo") // finishes what was begun, first
			require.Equal(t, 0, r.Code, r.Err)
			require.Equal(t, "table", strings.TrimSpace(r.Out))
			require.NoError(t, filepath.WalkDir(filepath.Join(e.dir, "delta"), func(path string, d fs.DirEntry, err error) error {
				require.False(t, err == nil && d.Type().IsRegular(), "%s is left", path)
				return err
			}))
			r = e.run("CREATE TABLE delta.demo.t (id BIGINT); SELECT count(*) FROM delta.demo.t")
			require.Equal(t, 0, r.Code, r.Err)
			require.Contains(t, r.Out, "0")
		})
	}
}

// A clean-up that is cut off has removed nothing that is needed, and the next one removes the rest.
func TestDelta_VacuumIsCutOff(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t)
	require.Equal(t, 0, e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4); INSERT OVERWRITE delta.demo.t SELECT 7 AS id").Code)
	files := func() (n int) {
		require.NoError(t, filepath.WalkDir(filepath.Join(e.dir, "delta"), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".parquet") {
				n++
			}
			return err
		}))
		return n
	}
	require.Equal(t, 2, files())
	const clean = "CALL delta.system.remove_orphan_files(table => 'demo.t', older_than => TIMESTAMP '2100-01-01 00:00:00', force => true)"
	r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_FAILPOINTS=scheduler.files.before-remove=kill"}, "sql", clean)
	require.NotEqual(t, 0, r.Code, r.Out)
	r = e.run(clean + "; SELECT id FROM delta.demo.t")
	require.Equal(t, 0, r.Code, r.Err)
	require.Contains(t, r.Out, "7")
	require.Equal(t, 1, files())
}

// Files that have come since a drop was cut off are those of another table in the making: they stay.
func TestDelta_DropLeavesWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t)
	require.Equal(t, 0, e.run("CREATE TABLE delta.demo.t AS SELECT range AS id FROM range(4)").Code)
	r := harness.RunCommand(t, "", []string{"SIGNET_DATA_DIR=" + e.dir, "SIGNET_FAILPOINTS=scheduler.drop.aside=kill"}, "sql", "DROP TABLE delta.demo.t")
	require.NotEqual(t, 0, r.Code)
	written := filepath.Join(e.dir, "delta", "demo", "t", "job", "0.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(written), 0o700))
	require.NoError(t, os.WriteFile(written, []byte("rows"), 0o600))
	require.Equal(t, 0, e.run("SHOW TABLES FROM delta.demo").Code) // finishes what was begun, first
	require.FileExists(t, written)
	left, err := filepath.Glob(filepath.Join(e.dir, "delta", "demo", ".dropped-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A log that names files outside of its table reads nothing of them: executors would, with rights that the log's author need not have.
func TestDelta_FilesOutsideOfTheTable(t *testing.T) {
	t.Parallel()
	e := newEmbedded(t)
	require.Equal(t, 0, e.run("CREATE TABLE delta.demo.other AS SELECT range AS id FROM range(4); CREATE TABLE delta.demo.t (id BIGINT)").Code)
	found, err := filepath.Glob(filepath.Join(e.dir, "delta", "demo", "other", "*", "*", "*", "*", "*.parquet"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	st, err := os.Stat(found[0])
	require.NoError(t, err)
	log := filepath.Join(e.dir, "delta", "demo", "t", "_delta_log", "00000000000000000001.json")
	for _, path := range []string{found[0], "file://" + found[0], "../other/" + strings.SplitAfter(found[0], "/other/")[1]} {
		add := fmt.Sprintf(`{"add":{"path":%q,"partitionValues":{},"size":%d,"modificationTime":1,"dataChange":true}}`, path, st.Size())
		require.NoError(t, os.WriteFile(log, []byte(add+"\n"), 0o600))
		for _, statement := range []string{"SELECT count(*) FROM delta.demo.t", "DELETE FROM delta.demo.t WHERE id = 1", "CALL delta.system.rewrite_data_files(table => 'demo.t')"} {
			r := e.run(statement)
			require.Equal(t, 1, r.Code, "%s with %s: %s", statement, path, r.Out)
			require.Contains(t, r.Err, "outside of the table", statement)
		}
	}
}
