package manifest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Writer turns data files into chunks as they come. Each chunk goes to emit, which may keep it.
type Writer struct {
	emit    func(*planv1.ManifestChunk) error
	sum     hash.Hash
	buf     []byte
	n       int
	trailer planv1.ManifestTrailer
	err     error
	closed  bool
}

// NewWriter emits the header and returns a Writer for the files.
func NewWriter(header *planv1.ManifestHeader, emit func(*planv1.ManifestChunk) error) (*Writer, error) {
	if header == nil {
		return nil, fmt.Errorf("%w: no header", ErrMalformed)
	}
	if n := proto.Size(header); n > ChunkBytes {
		return nil, fmt.Errorf("%w: header of %d bytes, limit %d", ErrTooLarge, n, ChunkBytes)
	}
	w := &Writer{emit: emit, sum: sha256.New()}
	return w, emit(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: header}})
}

// Add appends one data file. Negative counts, and a file whose record alone passes the chunk size, are refused.
func (w *Writer) Add(f *planv1.DataFile) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return fmt.Errorf("%w: file after the trailer", ErrOrder)
	}
	return w.keep(w.add(f))
}

func (w *Writer) add(f *planv1.DataFile) error {
	if negative(f) {
		return fmt.Errorf("%w: %q has a negative count", ErrMalformed, f.GetPath())
	}
	rec, err := proto.Marshal(f)
	if err != nil {
		return errors.Join(ErrMalformed, fmt.Errorf("%q: %w", f.GetPath(), err))
	}
	if err := w.append(fieldFiles, f.GetPath(), rec); err != nil {
		return err
	}
	t := &w.trailer
	t.Files++
	c := CountsOf(f)
	if err := count(f.GetPath(), &t.Rows, c.Rows, &t.Bytes, c.Bytes); err != nil {
		return err
	}
	return count(f.GetPath(), &t.DeletedRows, c.Deleted, &t.UpdatedRows, c.Updated)
}

// Replace appends one file that is replaced.
func (w *Writer) Replace(f *planv1.ReplacedFile) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return fmt.Errorf("%w: file after the trailer", ErrOrder)
	}
	return w.keep(w.replace(f))
}

func (w *Writer) replace(f *planv1.ReplacedFile) error {
	if f.GetRecordCount() < 0 || f.GetDeletedRows() < 0 || f.GetUpdatedRows() < 0 {
		return fmt.Errorf("%w: %q has a negative count", ErrMalformed, f.GetPath())
	}
	rec, err := proto.Marshal(f)
	if err != nil {
		return errors.Join(ErrMalformed, fmt.Errorf("%q: %w", f.GetPath(), err))
	}
	if err := w.append(fieldReplaced, f.GetPath(), rec); err != nil {
		return err
	}
	t := &w.trailer
	t.ReplacedFiles++
	return count(f.GetPath(), &t.DeletedRows, f.GetDeletedRows(), &t.UpdatedRows, f.GetUpdatedRows())
}

// append adds a record to the chunk, or to the next one.
func (w *Writer) append(field protowire.Number, path string, rec []byte) error {
	size := protowire.SizeTag(field) + protowire.SizeBytes(len(rec))
	if size > ChunkBytes {
		return fmt.Errorf("%w: the record of %q has %d bytes, limit %d", ErrTooLarge, path, size, ChunkBytes)
	}
	if w.n == FilesPerChunk || len(w.buf)+size > ChunkBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf = protowire.AppendTag(w.buf, field, protowire.BytesType)
	w.buf = protowire.AppendBytes(w.buf, rec)
	w.n++
	return nil
}

// count adds to two totals.
func count(path string, a *int64, addA int64, b *int64, addB int64) error {
	sumA, okA := addInt64(*a, addA)
	sumB, okB := addInt64(*b, addB)
	if !okA || !okB {
		return fmt.Errorf("%w: totals overflow at %q", ErrTooLarge, path)
	}
	*a, *b = sumA, sumB
	return nil
}

func (w *Writer) flush() error {
	if w.n == 0 {
		return nil
	}
	w.sum.Write(w.buf)
	chunk := &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: w.buf}}
	w.buf, w.n = nil, 0 // the receiver owns the bytes now
	return w.emit(chunk)
}

// Close emits the rest and the trailer.
func (w *Writer) Close() error {
	if w.err != nil || w.closed {
		return w.err
	}
	w.closed = true
	if err := w.keep(w.flush()); err != nil {
		return err
	}
	w.trailer.Sha256 = w.sum.Sum(nil)
	return w.keep(w.emit(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: &w.trailer}}))
}

func (w *Writer) keep(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// Encode makes the whole stream of one task manifest.
func Encode(header *planv1.ManifestHeader, files []*planv1.DataFile, replaced ...*planv1.ReplacedFile) ([]*planv1.ManifestChunk, error) {
	var out []*planv1.ManifestChunk
	w, err := NewWriter(header, func(c *planv1.ManifestChunk) error {
		out = append(out, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := w.Add(f); err != nil {
			return nil, err
		}
	}
	for _, f := range replaced {
		if err := w.Replace(f); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out, nil
}

// addInt64 adds two non-negative numbers; ok is false on overflow.
func addInt64(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, sum >= a
}
