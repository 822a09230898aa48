package splice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Piece is a run of bytes of a new file: of another file, or at hand.
type Piece struct {
	Path           string  // empty: Data
	From           *Object // not nil: the file is this object, and Path says no more than which
	Offset, Length int64
	Data           []byte
}

// Size is how many bytes it has.
func (p *Piece) Size() int64 { return max(p.Length, int64(len(p.Data))) }

// Read reads all of it.
func (p *Piece) Read() ([]byte, error) {
	if p.Path == "" {
		return p.Data, nil
	}
	var in io.ReaderAt = p.From
	if p.From == nil {
		f, err := os.Open(p.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b := make([]byte, p.Length)
	if _, err := in.ReadAt(b, p.Offset); err != nil {
		return nil, err
	}
	return b, nil
}

// Object is a source file in an object store, of one version. Reads are requests.
type Object struct {
	io.ReaderAt
	URI   string
	Size  int64
	Least int64 // runs of bytes that are shorter are not copied by the store
}

// Maker makes a file out of pieces. That of an object store can copy them on the store's side.
type Maker interface {
	// Make writes the pieces, in order, as the file target, which is not there yet. A file that it could not finish may be left behind.
	Make(ctx context.Context, pieces []Piece, target string) error
}

// Local makes files of the local file system. Where that shares or copies blocks by itself (copy_file_range on Linux) the bytes do not pass through this process.
type Local struct{}

// copyStep is how much is copied between two looks at the context.
const copyStep = 64 << 20

// Make implements Maker.
func (Local) Make(ctx context.Context, pieces []Piece, target string) (err error) {
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var in *os.File
	defer func() {
		if in != nil {
			_ = in.Close() // it was only read
		}
	}()
	for _, p := range pieces {
		if p.Path == "" {
			if _, err := out.Write(p.Data); err != nil {
				return err
			}
			continue
		}
		if p.From != nil {
			return fmt.Errorf("%s is not at hand", p.From.URI)
		}
		if in == nil || in.Name() != p.Path {
			if in != nil {
				_ = in.Close() // it was only read
			}
			if in, err = os.Open(p.Path); err != nil {
				return err
			}
		}
		if err := copyRange(ctx, out, in, p.Offset, p.Length); err != nil {
			return fmt.Errorf("copy %d bytes at %d of %s: %w", p.Length, p.Offset, p.Path, err)
		}
	}
	return nil
}

func copyRange(ctx context.Context, out, in *os.File, off, n int64) error {
	if _, err := in.Seek(off, io.SeekStart); err != nil {
		return err
	}
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		step := min(n, copyStep)
		got, err := io.CopyN(out, in, step)
		if err != nil {
			return err
		}
		n -= got
	}
	return nil
}
