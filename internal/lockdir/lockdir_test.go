package lockdir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/lockdir"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestSweep_TakesOnlyWhatIsDead(t *testing.T) {
	dir := t.TempDir()
	live, err := lockdir.Make(dir, "p-live")
	require.NoError(t, err)
	dead, err := lockdir.Make(dir, "p-dead")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dead.Path, "f"), nil, 0o600))
	require.NoError(t, dead.Abandon())
	other, err := lockdir.Make(dir, "q-dead")
	require.NoError(t, err)
	require.NoError(t, other.Abandon())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "p-foreign"), 0o700))

	require.NoError(t, lockdir.Sweep(dir, "p-", nil))
	require.Equal(t, []string{"p-foreign", "p-live", "p-live.lock", "q-dead", "q-dead.lock"}, names(t, dir))
	require.NoError(t, live.Remove())
	require.NoDirExists(t, live.Path)
}

// A process may die between any two steps of Make and Remove: what it leaves is found.
func TestSweep_FindsWhatIsHalfMade(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p-x.lock"), nil, 0o600))
	require.NoError(t, lockdir.Sweep(dir, "p-", nil))
	require.Empty(t, names(t, dir))
	require.NoError(t, lockdir.Sweep(filepath.Join(dir, "absent"), "p-", nil))
}

func TestSweep_KeepsWhatTheCallerCannotLetGo(t *testing.T) {
	dir := t.TempDir()
	d, err := lockdir.Make(dir, "p")
	require.NoError(t, err)
	require.NoError(t, d.Abandon())
	sentinel := errors.New("not yet")
	require.ErrorIs(t, lockdir.Sweep(dir, "p", func(string) error { return sentinel }), sentinel)
	require.DirExists(t, d.Path)
	require.NoError(t, lockdir.Sweep(dir, "p", func(path string) error { require.Equal(t, d.Path, path); return nil }))
	require.NoDirExists(t, d.Path)
}

func TestMake_NameTaken(t *testing.T) {
	dir := t.TempDir()
	d, err := lockdir.Make(dir, "p")
	require.NoError(t, err)
	_, err = lockdir.Make(dir, "p")
	require.ErrorIs(t, err, fs.ErrExist)
	require.DirExists(t, d.Path)
	_, err = lockdir.Make(filepath.Join(dir, "absent"), "p")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Processes that start at once sweep while others make theirs: none loses its own.
func TestMake_BesideSweeps(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				if err := lockdir.Sweep(dir, "p-", nil); err != nil {
					t.Error(err)
				}
				d, err := lockdir.Make(dir, fmt.Sprintf("p-%d-%d", w, i))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(d.Path); err != nil {
					t.Error(err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, names(t, dir))
}
