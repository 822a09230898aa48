package upload_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/upload"
)

func scratchFile(t *testing.T, dir, body string) string {
	t.Helper()
	p := filepath.Join(dir, "f.parquet")
	require.NoError(t, os.WriteFile(p, []byte(body), 0o644))
	return p
}

func TestPlace_WholeFileUnderItsName(t *testing.T) {
	root := t.TempDir()
	prefix := "file://" + root + "/t/data dir%20/job/0/1/attempt" // raw, not decoded
	w, err := upload.Local{}.Writer(t.Context(), prefix)
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "t"))
	require.ErrorIs(t, err, fs.ErrNotExist, "nothing exists before the first file")

	uri, size, err := w.Place(t.Context(), scratchFile(t, t.TempDir(), "PAR1"), "0-1-a-0.parquet")
	require.NoError(t, err)
	require.NoError(t, w.Finish(t.Context()))
	require.Equal(t, prefix+"/0-1-a-0.parquet", uri)
	require.Equal(t, int64(4), size)
	body, err := os.ReadFile(root + "/t/data dir%20/job/0/1/attempt/0-1-a-0.parquet")
	require.NoError(t, err)
	require.Equal(t, "PAR1", string(body))
}

// C13, C18: a name that is taken is never overwritten.
func TestPlace_NeverOverwrites(t *testing.T) {
	root := t.TempDir()
	w, err := upload.Local{}.Writer(t.Context(), "file://"+root+"/p")
	require.NoError(t, err)
	_, _, err = w.Place(t.Context(), scratchFile(t, t.TempDir(), "first"), "x.parquet")
	require.NoError(t, err)
	_, _, err = w.Place(t.Context(), scratchFile(t, t.TempDir(), "second"), "x.parquet")
	require.ErrorIs(t, err, fs.ErrExist)
	body, err := os.ReadFile(filepath.Join(root, "p", "x.parquet"))
	require.NoError(t, err)
	require.Equal(t, "first", string(body))
}

// /dev/shm is another file system on Linux: links do not reach across.
func TestPlace_AcrossFileSystems(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "signet-test-") //nolint:usetesting // it must be on another file system
	if err != nil {
		t.Skip("no second file system here:", err)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(shm)) })
	root := t.TempDir()
	w, err := upload.Local{}.Writer(t.Context(), "file://"+root+"/p")
	require.NoError(t, err)
	_, size, err := w.Place(t.Context(), scratchFile(t, shm, "body"), "x.parquet")
	require.NoError(t, err)
	require.Equal(t, int64(4), size)
	_, _, err = w.Place(t.Context(), scratchFile(t, shm, "other"), "x.parquet")
	require.ErrorIs(t, err, fs.ErrExist)
	names, err := os.ReadDir(filepath.Join(root, "p"))
	require.NoError(t, err)
	require.Len(t, names, 1, "no temporary file stays")
}

func TestWriter_RefusesPlaces(t *testing.T) {
	for _, prefix := range []string{"", "rel/path", "file:rel", "file://rel/x", "/a/../b", "/a/", "/", "s3://b/x", "file:///a/../b", "file:///a/", "file:///", "file:///a//b", "file:///a\x00b"} {
		_, err := upload.Local{}.Writer(t.Context(), prefix)
		require.ErrorIs(t, err, upload.ErrPrefix, prefix)
		_, err = upload.Local{}.RemovePrefix(t.Context(), prefix)
		require.ErrorIs(t, err, upload.ErrPrefix, prefix)
	}
	w, err := upload.Local{}.Writer(t.Context(), "file://"+t.TempDir()+"/p")
	require.NoError(t, err)
	for _, name := range []string{"", ".", "..", "a/b", "../x", strings.Repeat("x", 256)} {
		_, _, err := w.Place(t.Context(), scratchFile(t, t.TempDir(), "x"), name)
		require.ErrorIs(t, err, upload.ErrPrefix, name)
	}
}

// Files are named as their table is: some engines write locations without a scheme, or with one slash.
func TestWriter_OtherFormsOfLocalPlaces(t *testing.T) {
	for _, scheme := range []string{"", "file:", "file://"} {
		root := filepath.Join(t.TempDir(), "loc 2%20x")
		w, err := upload.Local{}.Writer(t.Context(), scheme+root+"/p")
		require.NoError(t, err)
		uri, _, err := w.Place(t.Context(), scratchFile(t, t.TempDir(), "x"), "x.parquet")
		require.NoError(t, err)
		require.Equal(t, scheme+root+"/p/x.parquet", uri)
		require.FileExists(t, root+"/p/x.parquet")
		n, err := upload.Local{}.RemovePrefix(t.Context(), scheme+root+"/p")
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

func TestPlace_UnwritableTargetNamesIt(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o644))
	w, err := upload.Local{}.Writer(t.Context(), "file://"+root+"/file/p")
	require.NoError(t, err)
	_, _, err = w.Place(t.Context(), scratchFile(t, t.TempDir(), "x"), "x.parquet")
	require.ErrorContains(t, err, root+"/file/p")

	if os.Geteuid() == 0 {
		return // root may write anywhere
	}
	require.NoError(t, os.Chmod(root, 0o555))
	w, err = upload.Local{}.Writer(t.Context(), "file://"+root+"/p")
	require.NoError(t, err)
	_, _, err = w.Place(t.Context(), scratchFile(t, t.TempDir(), "x"), "x.parquet")
	var re *upload.ResourceError
	require.ErrorAs(t, err, &re)
	require.Contains(t, err.Error(), root)
}

func TestCheckSpace_NamesDirectoryAndBytes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, upload.CheckSpace(dir, 1))
	err := upload.CheckSpace(dir, 1<<62)
	var re *upload.ResourceError
	require.True(t, errors.As(err, &re))
	require.Contains(t, err.Error(), dir)
	require.Contains(t, err.Error(), "4611686018427387904 needed")
	require.Contains(t, err.Error(), "bytes free")
}

// S72, S61
func TestRemovePrefix_FilesAndEmptyParents(t *testing.T) {
	root := t.TempDir()
	for _, attempt := range []string{"a1", "a2"} {
		w, err := upload.Local{}.Writer(t.Context(), "file://"+root+"/data/job/0/7/"+attempt)
		require.NoError(t, err)
		for _, name := range []string{"x.parquet", "y.parquet"} {
			_, _, err = w.Place(t.Context(), scratchFile(t, t.TempDir(), "x"), name)
			require.NoError(t, err)
		}
	}
	n, err := upload.Local{}.RemovePrefix(t.Context(), "file://"+root+"/data/job/0/7/a1")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoDirExists(t, root+"/data/job/0/7/a1")
	require.FileExists(t, root+"/data/job/0/7/a2/x.parquet")
	_, err = upload.Local{}.RemovePrefix(t.Context(), "file://"+root+"/data/job/0/7/a2")
	require.NoError(t, err)
	require.NoDirExists(t, root+"/data/job")
	require.DirExists(t, root+"/data")
	n, err = upload.Local{}.RemovePrefix(t.Context(), "file://"+root+"/data/job/0/7/a2")
	require.NoError(t, err, "removing twice is no error")
	require.Zero(t, n)
}
