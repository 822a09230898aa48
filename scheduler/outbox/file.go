package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File appends messages to a file, as JSON lines, and syncs it. The file is opened anew for every batch, so that it may be renamed at any time.
type File struct{ path string }

// NewFile makes the file's directory and tries to open it, so that a wrong path is known at start.
func NewFile(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f := &File{path}
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	return f, file.Close()
}

func (f *File) open() (*os.File, error) {
	return os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
}

// Send implements Target.
func (f *File) Send(_ context.Context, list []Message) (int, error) {
	file, err := f.open()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(f.write(file, list), file.Close()); err != nil {
		return 0, fmt.Errorf("%s: %w", f.path, err)
	}
	return len(list), nil
}

func (f *File) write(file *os.File, list []Message) error {
	whole, err := endsWhole(file)
	if err != nil {
		return err
	}
	var buf []byte
	if !whole { // a crash, or a full disk, has left half of a line
		buf = append(buf, '\n')
	}
	for _, m := range list {
		buf = append(append(buf, m.Body...), '\n')
	}
	if _, err := file.Write(buf); err != nil {
		return err
	}
	return file.Sync()
}

// endsWhole tells whether the file's last line ends.
func endsWhole(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return true, err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] == '\n', nil
}

// Close implements Target.
func (f *File) Close() error { return nil }
