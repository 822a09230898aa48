package host_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/host"
)

// pluginDir is a directory with this test binary as its one plugin, and things that are none.
func pluginDir(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "signet-sink-hostile")
	self, err := os.Executable()
	require.NoError(t, err)
	copyFile(t, self, path)
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "signet-sink-link")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "signet-sink-dir"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))
	return dir, path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	require.NoError(t, err)
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err)
	_, err = io.Copy(dst, src)
	require.NoError(t, err)
	require.NoError(t, dst.Close())
}

func edit(t *testing.T, dir string, change func(*host.Lock)) {
	t.Helper()
	l, err := host.ReadLock(dir)
	require.NoError(t, err)
	change(l)
	b, err := json.Marshal(l)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, host.LockFile), b, 0o600))
}

// The name in the file's name is the one by which a host starts it, and it refuses one that says another.
func TestLock_RefusesAPluginOfAnotherName(t *testing.T) {
	dir, path := pluginDir(t)
	require.NoError(t, os.Rename(path, filepath.Join(dir, "signet-sink-other")))
	err := host.WriteLock(dir)
	require.ErrorContains(t, err, `it calls itself "hostile"`)
	require.ErrorContains(t, err, "rename the file to signet-sink-hostile")
	require.NoFileExists(t, filepath.Join(dir, host.LockFile))
}

func TestLock_WriteReadVerifyStart(t *testing.T) {
	dir, path := pluginDir(t)
	_, err := host.ReadLock(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = host.Find(dir, "hostile", false)
	require.ErrorIs(t, err, host.ErrNotLocked)
	cfg, err := host.Find(dir, "hostile", true)
	require.NoError(t, err)
	require.Empty(t, cfg.SHA256)

	require.NoError(t, host.WriteLock(dir))
	l, err := host.ReadLock(dir)
	require.NoError(t, err)
	require.Len(t, l.Plugins, 1, "links and directories are no plugins")
	require.Equal(t, "hostile", l.Plugins[0].Name)
	require.Equal(t, "1.2.3", l.Plugins[0].Version, "the plugin was asked")
	require.Equal(t, 1, l.Plugins[0].Protocol)
	require.NoError(t, l.Verify(dir))

	cfg, err = host.Find(dir, "hostile", false)
	require.NoError(t, err)
	require.Equal(t, path, cfg.Path)
	cfg.Dir = t.TempDir()
	start(t, cfg)
	_, err = host.Find(dir, "link", false)
	require.ErrorIs(t, err, host.ErrConfig)
	_, err = host.Find(dir, "../hostile", false)
	require.ErrorIs(t, err, host.ErrConfig)
}

func TestLock_ChangedFileDoesNotRun(t *testing.T) {
	dir, path := pluginDir(t)
	require.NoError(t, host.WriteLock(dir))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, unlocked := range []bool{false, true} {
		cfg, err := host.Find(dir, "hostile", unlocked)
		require.NoError(t, err)
		cfg.Dir = t.TempDir()
		_, err = host.Start(t.Context(), cfg)
		require.ErrorIs(t, err, host.ErrChecksum, "unlocked is for plugins that the lock does not name")
	}
	l, err := host.ReadLock(dir)
	require.NoError(t, err)
	require.ErrorIs(t, l.Verify(dir), host.ErrChecksum)
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, l.Verify(dir), fs.ErrNotExist)
}

func TestLock_OtherPlatforms(t *testing.T) {
	dir, _ := pluginDir(t)
	require.NoError(t, host.WriteLock(dir))
	other := strings.Repeat("ab", 32)
	edit(t, dir, func(l *host.Lock) { l.Plugins[0].SHA256["plan9_386"] = other })
	require.NoError(t, host.WriteLock(dir))
	l, err := host.ReadLock(dir)
	require.NoError(t, err)
	require.Equal(t, other, l.Plugins[0].SHA256["plan9_386"], "the same version keeps its other sums")
	edit(t, dir, func(l *host.Lock) { l.Plugins[0].Version = "0.0.1" })
	require.NoError(t, host.WriteLock(dir))
	l, err = host.ReadLock(dir)
	require.NoError(t, err)
	require.Len(t, l.Plugins[0].SHA256, 1, "another version does not")

	edit(t, dir, func(l *host.Lock) { l.Plugins[0].SHA256 = map[string]string{"plan9_386": other} })
	_, err = host.Find(dir, "hostile", true)
	require.ErrorIs(t, err, host.ErrNotLocked)
	require.ErrorContains(t, err, host.Platform())
	edit(t, dir, func(l *host.Lock) {
		l.Plugins[0].SHA256[host.Platform()], l.Plugins[0].Protocol = other, 2
	})
	_, err = host.Find(dir, "hostile", false)
	require.ErrorIs(t, err, host.ErrProtocol)
}

func TestLock_Refusals(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"not JSON":      `plugins: []`,
		"unknown field": `{"version":1,"plugin":[]}`,
		"version":       `{"version":2,"plugins":[]}`,
		"name":          `{"version":1,"plugins":[{"name":"../x","protocol":1,"sha256":{}}]}`,
		"twice":         `{"version":1,"plugins":[{"name":"x","protocol":1,"sha256":{"a":"` + sum + `"}},{"name":"x","protocol":1,"sha256":{}}]}`,
		"sum":           `{"version":1,"plugins":[{"name":"x","protocol":1,"sha256":{"a":"12"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, host.LockFile), []byte(text), 0o600))
			_, err := host.ReadLock(dir)
			require.ErrorIs(t, err, host.ErrConfig)
			_, err = host.Find(dir, "x", true)
			require.ErrorIs(t, err, host.ErrConfig)
		})
	}
	dir, _ := pluginDir(t)
	require.NoError(t, host.WriteLock(dir))
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := host.ReadLock(dir)
	require.ErrorContains(t, err, "everybody may write")
}
