package scheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoster_WhoMayComeBack(t *testing.T) {
	dir := t.TempDir()
	host, err := os.Hostname()
	require.NoError(t, err)
	r := openRoster(dir)
	_, known := r.missing()
	require.False(t, known, "without a file nobody knows")
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	zombie := exec.Command("true")
	require.NoError(t, zombie.Start())
	t.Cleanup(func() { _ = zombie.Wait() })
	require.NoError(t, r.joined("gone", host, ended.Process.Pid))
	require.NoError(t, r.joined("zombie", host, zombie.Process.Pid))

	missing := func(want int) *roster {
		t.Helper()
		r := openRoster(dir)
		require.Eventually(t, func() bool {
			n, known := r.missing()
			return known && n == want
		}, patience, lookAgain)
		return r
	}
	missing(0)
	require.NoError(t, r.joined("here", host, os.Getpid()))
	require.NoError(t, r.joined("elsewhere", "another machine", ended.Process.Pid))
	r = missing(2)
	require.NoError(t, r.joined("elsewhere", "another machine", 1))
	n, _ := r.missing()
	require.Equal(t, 1, n)
	require.NoError(t, r.left("here"))
	n, _ = r.missing()
	require.Zero(t, n, "those that are back are not missed")
	missing(1)
	require.NoError(t, openRoster(dir).forget())
	missing(0)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "executors.json"), []byte("null"), 0o600))
	_, known = openRoster(dir).missing()
	require.False(t, known)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "executors.json"), []byte("{"), 0o600))
	_, known = openRoster(dir).missing()
	require.False(t, known)
}
