package executor_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
)

// A full disk under the COPY is the machine's trouble, and says where.
func TestExecutor_DiskFullWhileWriting(t *testing.T) {
	var scratch string
	g, p := one(t, func(c *executor.Config) {
		onSmallDisk(t)(c)
		scratch = c.Scratch
	})
	task := writeTask(t, 1, "SELECT (hash(i) >> 1)::BIGINT FROM range(5000000) t(i)")
	g.launch(task)
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, st.GetError().GetClass(), "%v", st.GetError())
	require.Contains(t, st.GetError().GetMessage(), scratch)
	require.Contains(t, st.GetError().GetMessage(), "bytes free")
	require.NoDirExists(t, dir(task))
	require.NoError(t, p.stop())
}

// onSmallDisk gives an executor a scratch directory on a file system of 2 MiB.
func onSmallDisk(t *testing.T) func(*executor.Config) {
	t.Helper()
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("cannot mount a small file system here:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(disk, unix.MNT_DETACH)) })
	return func(c *executor.Config) { c.Scratch = filepath.Join(disk, "scratch") }
}
