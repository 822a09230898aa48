package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog/storage"
)

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	s, err := storage.Local.Open(t.Context(), "file://"+dir)
	require.NoError(t, err)
	at := func(name string) string { return "file://" + filepath.Join(dir, name) }

	none, err := storage.Dirs(t.Context(), s, at("absent"))
	require.NoError(t, err)
	require.Empty(t, none)

	made, err := storage.MakeDir(t.Context(), s, at("b/empty"))
	require.NoError(t, err)
	require.True(t, made)
	_, err = s.PutIfAbsent(t.Context(), at("b/table/log/0.json"), strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b", "file"), nil, 0o600))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dir, "b", "link")))

	found, err := storage.Dirs(t.Context(), s, at("b"))
	require.NoError(t, err)
	require.Equal(t, []string{"empty", "table"}, found, "neither files nor links")
	_, err = storage.MakeDir(t.Context(), s, at("../out"))
	require.ErrorIs(t, err, storage.ErrOutside)

	require.NoError(t, storage.SetAside(t.Context(), s, at("b/table"), at("b/.aside")))
	_, err = s.Stat(t.Context(), at("b/table/log/0.json"))
	require.ErrorIs(t, err, storage.ErrNotFound)
	_, err = s.Stat(t.Context(), at("b/.aside/log/0.json"))
	require.NoError(t, err)
	require.ErrorIs(t, storage.SetAside(t.Context(), s, at("b/table"), at("b/.aside2")), storage.ErrNotFound)
	require.ErrorIs(t, storage.SetAside(t.Context(), s, at("b/link"), at("b/.aside2")), storage.ErrNotFound, "a link is somebody else's directory")
	require.ErrorIs(t, storage.SetAside(t.Context(), s, at("b/empty"), at("../out")), storage.ErrOutside)
}
