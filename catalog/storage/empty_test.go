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
