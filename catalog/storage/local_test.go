package storage_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/catalog/storage/storagetest"
	"github.com/signet-io/signet/internal/fault"
)

func TestLocal_Conformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Env {
		dir := t.TempDir()
		return storagetest.Env{Location: "file://" + dir + "/wh/table1", Sibling: "file://" + dir + "/wh/table10", Open: storage.Local.Open}
	})
}

// Locations that other engines write: a plain path, one slash, doubled slashes, spaces.
func TestLocal_LocationForms(t *testing.T) {
	dir := t.TempDir() + "/my table"
	for _, loc := range []string{dir, "file:" + dir, "file://localhost" + dir, "FILE://" + dir, strings.ReplaceAll(dir, "/", "//"), "file://" + dir + "/"} {
		s, err := storage.Local.Open(t.Context(), loc)
		require.NoError(t, err, loc)
		_, err = s.ReplaceIf(t.Context(), dir+"/f", "", []byte("x"))
		if err != nil {
			require.ErrorIs(t, err, storage.ErrChanged, loc)
		}
		for _, uri := range []string{dir + "/f", "file:" + dir + "/f", "file://" + dir + "/f", dir + "//f"} {
			rel, err := s.Rel(uri)
			require.NoError(t, err, "%s in %s", uri, loc)
			assert.Equal(t, "f", rel)
		}
	}
	for _, loc := range []string{"", "relative", "/", "file:///", "s3://b/k", "file://host/x", "file:relative", dir + "/../x", "hdfs://n/x"} {
		_, err := storage.Local.Open(t.Context(), loc)
		require.Error(t, err, "%q", loc)
	}
}

// Symbolic links: inside they are followed to read, outside nothing is reached, and nothing is listed or removed through one.
func TestLocal_SymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	loc := filepath.Join(dir, "table")
	for _, f := range []string{"table/in/f", "out/secret"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o644))
	}
	link := func(to, name string) { require.NoError(t, os.Symlink(to, filepath.Join(loc, name))) }
	link("in", "good")
	link("../out", "rel")
	link(filepath.Join(dir, "out"), "abs")
	link("../out/secret", "file")
	link("loop", "loop")
	link("nowhere", "dangling")
	s, err := storage.Local.Open(t.Context(), "file://"+loc)
	require.NoError(t, err)
	ctx := t.Context()

	o, err := s.Open(ctx, loc+"/good/f")
	require.NoError(t, err)
	require.NoError(t, o.Close())
	for _, name := range []string{"/rel/secret", "/abs/secret", "/file"} {
		_, err := s.Open(ctx, loc+name)
		require.ErrorIs(t, err, storage.ErrOutside, name)
		_, err = s.Stat(ctx, loc+name)
		require.ErrorIs(t, err, storage.ErrOutside, name)
	}
	for _, name := range []string{"/rel/new", "/abs/new", "/rel/a/b/new"} {
		_, err = s.PutIfAbsent(ctx, loc+name, strings.NewReader("x"))
		require.ErrorIs(t, err, storage.ErrOutside, name)
	}
	for _, name := range []string{"/file", "/dangling", "/loop"} {
		_, err = s.PutIfAbsent(ctx, loc+name, strings.NewReader("x"))
		require.ErrorIs(t, err, storage.ErrExists, name)
	}
	_, err = s.Open(ctx, loc+"/loop")
	require.Error(t, err)

	var listed []string
	for _, prefix := range []string{loc, loc + "/rel", loc + "/good"} {
		require.NoError(t, s.List(ctx, prefix, func(i storage.Info) error { listed = append(listed, i.URI); return nil }))
	}
	assert.Equal(t, []string{"file://" + loc + "/in/f"}, listed)
	for _, name := range []string{"/rel", "/abs", "/file"} {
		_, err := s.RemoveAll(ctx, loc+name)
		require.NoError(t, err)
		require.NoError(t, s.Remove(ctx, loc+name), "the link itself")
	}
	assert.FileExists(t, filepath.Join(dir, "out/secret"))
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestLocal_SpecialFilesDoNotBlock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	s, err := storage.Local.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = s.Open(t.Context(), dir+"/fifo")
	require.ErrorIs(t, err, storage.ErrNotFound)
	require.NoError(t, s.List(t.Context(), dir, func(i storage.Info) error { return fmt.Errorf("listed %s", i.URI) }))
}

func TestLocal_ReadOnlyDirectoryLeavesNothing(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	s, err := storage.Local.Open(t.Context(), dir)
	require.NoError(t, err)
	_, err = s.PutIfAbsent(t.Context(), dir+"/x", strings.NewReader("x"))
	require.ErrorIs(t, err, os.ErrPermission)
}

// The test runs itself as the process that dies.
func TestMain(m *testing.M) {
	if uri := os.Getenv("STORAGE_TEST_PUT"); uri != "" {
		s, err := storage.Local.Open(context.Background(), filepath.Dir(uri))
		if err == nil {
			_, err = s.PutIfAbsent(context.Background(), uri, strings.NewReader("whole"))
		}
		fmt.Println("put:", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPut_Crash kills the writer at each step: the file is whole or absent. Where files cannot be made without a name, what stays is a
// temporary file that a sweep finds.
func TestPut_Crash(t *testing.T) {
	for point, visible := range map[string]bool{"storage.put.before-sync": false, "storage.put.before-link": false, "storage.put.after-link": true} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			uri := dir + "/t/f"
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "STORAGE_TEST_PUT="+uri, fault.Env+"="+point+"=kill")
			out, err := cmd.CombinedOutput()
			require.ErrorContains(t, err, "killed", "%s", out)

			s, err := storage.Local.Open(t.Context(), dir)
			require.NoError(t, err)
			o, err := s.Open(t.Context(), uri)
			if visible {
				require.NoError(t, err)
				b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
				require.NoError(t, err)
				assert.Equal(t, "whole", string(b))
				require.NoError(t, o.Close())
			} else {
				require.ErrorIs(t, err, storage.ErrNotFound)
			}
			names := func() (temp, other int) {
				entries, err := os.ReadDir(dir + "/t")
				require.NoError(t, err)
				for _, e := range entries {
					if strings.HasPrefix(e.Name(), storage.TempPrefix) {
						temp++
					} else {
						other++
					}
				}
				return temp, other
			}
			temp, other := names()
			assert.LessOrEqual(t, temp, 1)
			if !visible {
				assert.Zero(t, other)
			}
			n, err := s.(storage.Sweeper).SweepTemp(t.Context(), dir, time.Now().Add(-time.Hour))
			require.NoError(t, err)
			assert.Zero(t, n, "young ones may be in use")
			n, err = s.(storage.Sweeper).SweepTemp(t.Context(), dir, time.Now().Add(time.Hour))
			require.NoError(t, err)
			assert.Equal(t, temp, n)
			temp, _ = names()
			assert.Zero(t, temp)

			_, err = s.PutIfAbsent(t.Context(), uri, strings.NewReader("again"))
			if visible {
				require.ErrorIs(t, err, storage.ErrExists)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestRemoveAll_TakesTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/a", 0o755))
	require.NoError(t, os.WriteFile(dir+"/a/"+storage.TempPrefix+"x", nil, 0o644))
	s, err := storage.Local.Open(t.Context(), dir)
	require.NoError(t, err)
	n, err := s.RemoveAll(t.Context(), dir+"/a")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.NoDirExists(t, dir+"/a")
}

func TestTableDir(t *testing.T) {
	for want, ident := range map[string][]string{
		"demo/t": {"demo", "t"}, "a.b/c": {"a", "b", "c"}, "a~2eb/c": {"a.b", "c"}, "~2e~2e/~2f": {"..", "/"}, "a~7e/~c3~bc": {"a~", "ü"},
	} {
		assert.Equal(t, want, storage.TableDir(ident))
	}
	long := storage.TableDir([]string{strings.Repeat("ü", 40), strings.Repeat("é", 40), "t"})
	other := storage.TableDir([]string{strings.Repeat("ü", 40), strings.Repeat("é", 39) + "x", "t"})
	assert.NotEqual(t, long, other)
	for _, l := range []string{long, other} {
		ns, _, _ := strings.Cut(l, "/")
		assert.LessOrEqual(t, len(ns), 240)
	}
}
