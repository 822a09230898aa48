package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/signet-io/signet/internal/fault"
)

// Local is the Store of file URIs.
type Local struct{}

// Writer implements Store.
func (Local) Writer(_ context.Context, prefix string) (Writer, error) {
	dir, err := LocalPath(prefix)
	if err != nil {
		return nil, err
	}
	return &localWriter{prefix: prefix, dir: dir, dirty: map[string]bool{}}, nil
}

// RemovePrefix implements Store. Parents that are empty afterwards go too, up to the job's: they were made for the attempt.
func (Local) RemovePrefix(ctx context.Context, prefix string) (int, error) {
	dir, err := LocalPath(prefix)
	if err != nil {
		return 0, err
	}
	n := 0
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return errors.Join(ctx.Err(), ignoreMissing(err))
	})
	if err != nil {
		return 0, fmt.Errorf("remove %s: %w", dir, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return 0, fmt.Errorf("remove %s: %w", dir, err)
	}
	removeEmpty(filepath.Dir(dir), 3) // task, stage, job
	return n, nil
}

// removeEmpty removes a directory and so many levels above it in all, as long as they are empty.
func removeEmpty(dir string, levels int) {
	for ; levels > 0 && os.Remove(dir) == nil; levels-- {
		dir = filepath.Dir(dir)
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type localWriter struct {
	prefix, dir string

	mu    sync.Mutex
	made  bool
	dirty map[string]bool // directories with names that are not durable yet
}

// Place links the file into its directory where both are on one file system, and copies it otherwise. link(2) never replaces a name.
func (w *localWriter) Place(ctx context.Context, local, name string) (string, int64, error) {
	if err := CheckName(name); err != nil {
		return "", 0, err
	}
	if err := ctx.Err(); err != nil {
		return "", 0, err
	}
	if err := fault.Hit("executor.upload.before-fsync"); err != nil {
		return "", 0, err
	}
	// Directories first: the file's sync then carries them along on file systems with a journal.
	if err := w.makeDir(false); err != nil {
		return "", 0, resource(w.dir, err)
	}
	want, err := syncFile(local)
	if err != nil {
		return "", 0, resource(filepath.Dir(local), err)
	}
	target := filepath.Join(w.dir, name)
	if err := w.link(local, target); err != nil {
		return "", 0, resource(w.dir, err)
	}
	if err := fault.Hit("executor.upload.after-link"); err != nil {
		return "", 0, err
	}
	st, err := os.Lstat(target)
	if err != nil {
		return "", 0, resource(w.dir, err)
	}
	if st.Size() != want {
		return "", 0, fmt.Errorf("%s has %d bytes after it was written with %d", target, st.Size(), want)
	}
	return w.prefix + "/" + name, st.Size(), nil
}

// link makes the directories again when it must: a sweep of another attempt may have removed empty parents in between.
func (w *localWriter) link(local, target string) error {
	err := linkOrCopy(local, target)
	if errors.Is(err, fs.ErrNotExist) {
		if err := w.makeDir(true); err != nil {
			return err
		}
		err = linkOrCopy(local, target)
	}
	return err
}

func linkOrCopy(local, target string) error {
	err := os.Link(local, target)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already: another attempt with this id wrote it: %w", target, fs.ErrExist)
	case errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EMLINK):
		return copyInto(local, target) // another file system, or one without links
	}
	return err
}

// copyInto copies under a temporary name, so that the final one appears whole.
func copyInto(local, target string) error {
	in, err := os.Open(local)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := filepath.Join(filepath.Dir(target), ".signet-"+filepath.Base(target)+".tmp")
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // gone already after a rename
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	err = renameNew(tmp, target)
	if err != nil {
		return fmt.Errorf("name %s: %w", target, err)
	}
	return nil
}

func (w *localWriter) makeDir(again bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made && !again {
		return nil
	}
	for dir := w.dir; ; dir = filepath.Dir(dir) { // every directory that will get a name of ours
		w.dirty[dir] = true
		if _, err := os.Stat(dir); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	w.made = true
	return nil
}

// Finish syncs the directories, deepest first.
func (w *localWriter) Finish(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir := w.dir; w.dirty[dir]; dir = filepath.Dir(dir) {
		if _, err := syncFile(dir); err != nil {
			return resource(dir, err)
		}
		delete(w.dirty, dir)
	}
	return fault.Hit("executor.upload.after-dirsync")
}

// syncFile makes a file or directory durable and answers its size.
func syncFile(p string) (int64, error) {
	f, err := os.Open(p)
	if err != nil {
		return 0, err
	}
	err = f.Sync()
	st, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return 0, err
	}
	return st.Size(), nil
}
