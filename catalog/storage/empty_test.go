package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemoveEmpty(t *testing.T) {
	dir := t.TempDir()
	mk := func(p string) { require.NoError(t, os.MkdirAll(filepath.Join(dir, p), 0o755)) }
	mk("w/ns/t/data/job/0/0")
	require.NoError(t, RemoveEmpty("file://"+dir+"/w", dir+"/w/ns/t/data/job/0/0/gone"))
	require.NoDirExists(t, dir+"/w/ns")
	require.DirExists(t, dir+"/w", "the base stays")

	mk("w/t/metadata")
	mk("w/t/data/job/0")
	require.NoError(t, RemoveEmpty(dir+"/w", dir+"/w/t/data/job/0"))
	require.NoDirExists(t, dir+"/w/t/data")
	require.DirExists(t, dir+"/w/t/metadata", "what is beside stays")

	mk("other/job")
	require.NoError(t, os.Symlink(dir+"/other", dir+"/w/t/data"))
	require.NoError(t, RemoveEmpty(dir+"/w", dir+"/w/t/data"))
	_, err := os.Lstat(dir + "/w/t/data")
	require.NoError(t, err, "a link stays")

	require.ErrorIs(t, RemoveEmpty(dir+"/w", dir+"/other/job"), ErrOutside)
	require.NoError(t, RemoveEmpty(dir+"/nothing", dir+"/nothing/at/all"))
}

func TestIsEmpty(t *testing.T) {
	dir := t.TempDir()
	s, err := Local.Open(t.Context(), dir+"/w")
	require.NoError(t, err)
	empty := func(prefix string) bool {
		got, err := IsEmpty(t.Context(), s, dir+"/w"+prefix)
		require.NoError(t, err)
		return got
	}
	require.True(t, empty(""), "it does not exist")
	require.NoError(t, os.MkdirAll(dir+"/w/a/b", 0o755))
	require.False(t, empty(""), "an empty directory is something")
	require.True(t, empty("/a/b"))
	require.True(t, empty("/none"))
	require.NoError(t, os.WriteFile(dir+"/w/a/"+TempPrefix+"x", nil, 0o644))
	require.False(t, empty("/a"))
	require.False(t, empty("/a/"+TempPrefix+"x"), "a file is in the way")
	require.NoError(t, os.WriteFile(dir+"/f", nil, 0o644))
	s, err = Local.Open(t.Context(), dir+"/f")
	require.NoError(t, err)
	got, err := IsEmpty(t.Context(), s, dir+"/f")
	require.NoError(t, err)
	require.False(t, got, "a file is in the way")
}
