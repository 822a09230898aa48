package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunDir_SweepTakesOnlyWhatIsDead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100)) // too long for a socket
	live, err := newRunDir(dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(live.sock), maxSock)
	for _, d := range []string{live.Path, live.sock, live.tmp()} {
		info, err := os.Stat(d)
		require.NoError(t, err)
		require.EqualValues(t, 0o700, info.Mode().Perm(), d)
	}
	dead, err := newRunDir(dir)
	require.NoError(t, err)
	require.NoError(t, dead.Abandon()) // as the kernel does when a host dies
	foreign := t.TempDir()
	evil, err := newRunDir(dir)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(evil.Path, sockLink)))
	require.NoError(t, os.Symlink(foreign, filepath.Join(evil.Path, sockLink)))
	require.NoError(t, evil.Abandon())

	next, err := newRunDir(dir)
	require.NoError(t, err)
	require.DirExists(t, live.Path)
	require.DirExists(t, live.sock)
	require.NoDirExists(t, dead.Path)
	require.NoDirExists(t, dead.sock)
	require.DirExists(t, foreign, "a link to elsewhere is not followed")
	for _, r := range []*runDir{live, next} {
		require.NoError(t, r.remove())
		require.NoDirExists(t, r.Path)
		require.NoDirExists(t, r.sock)
	}
	require.NoError(t, os.RemoveAll(evil.sock))
}

func TestRunDir_ShortPathKeepsSocketsInside(t *testing.T) {
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // t.TempDir is too long for a socket
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	r, err := newRunDir(dir)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(r.sock, r.Path+"/"))
	require.NoError(t, r.remove())
}

func TestImage_SealedAndUnaffectedByTheOriginal(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "p")
	require.NoError(t, os.WriteFile(path, []byte("\x7fELF original"), 0o700))
	sum, err := fileSum(path)
	require.NoError(t, err)
	run, err := newRunDir(filepath.Join(dir, "run"))
	require.NoError(t, err)
	defer func() { require.NoError(t, run.remove()) }()
	img, err := load(&Config{Name: "p", Path: path, SHA256: strings.ToUpper(sum)}, run)
	require.NoError(t, err)
	defer img.close()
	require.NoError(t, os.WriteFile(path, []byte("\x7fELF replaced"), 0o700))
	b, err := os.ReadFile(img.path)
	require.NoError(t, err)
	require.Equal(t, "\x7fELF original", string(b))
	if img.sealed != nil {
		w, err := os.OpenFile(img.path, os.O_WRONLY, 0)
		if err == nil {
			_, err = w.WriteString("x")
			_ = w.Close()
		}
		require.Error(t, err, "nobody can change the copy")
	}
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	script, err := load(&Config{Name: "p", Path: path, Unlocked: true}, run)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(run.Path, "p"), script.path)
}
