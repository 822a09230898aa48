package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// smallDisk mounts a file system of 8 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); errors.Is(err, syscall.EPERM) {
		t.Skip("mounting a small disk needs root")
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

const bulky = "INSERT INTO lake.d.t SELECT uuid()::VARCHAR || uuid()::VARCHAR FROM range(500000)"

// A full or read-only scratch disk fails the statement with the reason; the table is as before, and the executor lives.
func TestScratch_FullDisk(t *testing.T) {
	dir := smallDisk(t)
	c := harness.New(t, harness.Options{Executors: 1, ExecutorArgs: []string{"--scratch", dir, "--min-free", "0"}})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (s VARCHAR); INSERT INTO lake.d.t VALUES ('x')")
	c.Fail(1, bulky)
	require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.d.t"))
	require.Equal(t, 1, c.Table("d", "t").Snapshots)
	c.NoOrphans("d", "t")
	require.False(t, c.Executors[0].Ended())
	c.SQL("INSERT INTO lake.d.t VALUES ('y')")
	c.Stop()
}

func TestScratch_TooLittleFreeSpace(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1, ExecutorArgs: []string{"--scratch", smallDisk(t), "--min-free", "1GiB"}})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (s VARCHAR)")
	c.Fail(1, bulky, "no space", "at least 1073741824")
	require.Zero(t, c.Table("d", "t").Snapshots)
	c.Stop()
}

// What was the executor's directory is a file now.
func TestScratch_Unwritable(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "s")
	c := harness.New(t, harness.Options{Executors: 1, ExecutorArgs: []string{"--scratch", scratch}})
	c.SQL("CREATE SCHEMA lake.d; CREATE TABLE lake.d.t (s VARCHAR)")
	require.NoError(t, os.RemoveAll(scratch))
	require.NoError(t, os.WriteFile(scratch, nil, 0o600))
	c.Fail(1, "INSERT INTO lake.d.t VALUES ('x')", scratch)
	require.Zero(t, c.Table("d", "t").Snapshots)
	require.NoError(t, os.Remove(scratch))
	c.Stop()
}
