package sdk

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/manifest"
)

// ErrManifest is wrapped by every error about a stream of task manifests that is out of order, cut, or does not add up.
var ErrManifest = errors.New("task manifest stream is damaged")

// ManifestSource hands out the task manifests of one Stage call, one after another, while they stream in. It is not safe for concurrent use.
type ManifestSource struct {
	recv    func() (*sinkv1.StageRequest, error)
	cur     *Manifest
	sum     hash.Hash
	in      tally // of the current manifest
	totals  tally
	decoder manifest.Decoder
	count   int64
	done    bool
	err     error
}

type tally struct{ Files, Rows, Bytes, ReplacedFiles, DeletedRows, UpdatedRows int64 }

func (t *tally) add(o tally) {
	t.Files += o.Files
	t.Rows += o.Rows
	t.Bytes += o.Bytes
	t.ReplacedFiles += o.ReplacedFiles
	t.DeletedRows += o.DeletedRows
	t.UpdatedRows += o.UpdatedRows
}

func (t *tally) replaced(f *planv1.ReplacedFile) {
	t.ReplacedFiles++
	t.DeletedRows += f.GetDeletedRows()
	t.UpdatedRows += f.GetUpdatedRows()
}

// stated is what a trailer says.
type stated interface {
	GetFiles() int64
	GetRows() int64
	GetBytes() int64
	GetReplacedFiles() int64
	GetDeletedRows() int64
	GetUpdatedRows() int64
}

func tallyOf(t stated) tally {
	return tally{t.GetFiles(), t.GetRows(), t.GetBytes(), t.GetReplacedFiles(), t.GetDeletedRows(), t.GetUpdatedRows()}
}

// counted is a data file, however it is read.
type counted interface{ manifest.Counted }

// Next returns the next task manifest, or io.EOF after the last one. The files of the previous one must have been read to their end: a
// file that a sink does not look at is a file whose rows would be lost.
func (s *ManifestSource) Next() (*Manifest, error) {
	if s.cur != nil {
		return nil, s.fail(fmt.Errorf("%w: the sink left files of task %d unread", ErrManifest, s.cur.Header.GetTask()))
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.done {
		return nil, io.EOF
	}
	req, err := s.recv()
	if err != nil {
		return nil, s.fail(cut(err))
	}
	switch part := req.GetPart().(type) {
	case *sinkv1.StageRequest_Trailer:
		return nil, s.end(part.Trailer)
	case *sinkv1.StageRequest_Manifest:
		head := part.Manifest.GetHeader()
		if head == nil {
			return nil, s.fail(fmt.Errorf("%w: manifest %d does not open with a header", ErrManifest, s.count))
		}
		s.cur, s.sum, s.in = &Manifest{Header: head, src: s}, sha256.New(), tally{}
		return s.cur, nil
	}
	return nil, s.fail(fmt.Errorf("%w: want a manifest or the trailer, got %T", ErrManifest, req.GetPart()))
}

// All ranges over the task manifests. It stops after the first error.
func (s *ManifestSource) All() iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		for {
			m, err := s.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Totals are those of all manifests read so far.
func (s *ManifestSource) Totals() *sinkv1.Totals {
	t := s.totals
	return &sinkv1.Totals{Files: t.Files, Rows: t.Rows, Bytes: t.Bytes, ReplacedFiles: t.ReplacedFiles, DeletedRows: t.DeletedRows, UpdatedRows: t.UpdatedRows}
}

func (s *ManifestSource) end(t *sinkv1.StageTrailer) error {
	want := tallyOf(t.GetTotals())
	if t.GetManifests() != s.count || want != s.totals {
		return s.fail(fmt.Errorf("%w: read %d manifests with %+v, the trailer says %d with %+v", ErrManifest, s.count, s.totals,
			t.GetManifests(), want))
	}
	s.done = true
	return io.EOF
}

func (s *ManifestSource) fail(err error) error {
	if s.err == nil {
		s.err = err
	}
	return s.err
}

func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ended without a trailer", ErrManifest)
	}
	return err
}

// Files ranges over the data files, each once. After an error it stops; the error is also that of the next call to Next. A loop that is
// left early makes the whole call fail.
func (m *Manifest) Files() iter.Seq2[*planv1.DataFile, error] { return m.files(false) }

// EachFile is Files for sinks that keep nothing of a file: the messages of one are reused for the next, which makes reading them several times faster.
// Strings may be kept.
func (m *Manifest) EachFile() iter.Seq2[*planv1.DataFile, error] { return m.files(true) }

// LeanFile is a data file whose column metrics are left serialised, each a planv1.ColumnMetrics.
type LeanFile = manifest.LeanFile

// EachLean is EachFile for sinks that write column metrics in an encoding of their own: they read them from the bytes, and no message is made for any. The
// bytes have not been looked at: they may be damaged, and are valid until the next file.
func (m *Manifest) EachLean() iter.Seq2[LeanFile, error] {
	return each(m, func(b []byte) ([]LeanFile, []*planv1.ReplacedFile, error) { return m.src.decoder.DecodeLean(b) })
}

func (m *Manifest) files(reuse bool) iter.Seq2[*planv1.DataFile, error] {
	return each(m, func(b []byte) ([]*planv1.DataFile, []*planv1.ReplacedFile, error) {
		decode := manifest.DecodeFiles
		if reuse {
			decode = m.src.decoder.Decode
		}
		f, err := decode(b)
		return f.GetFiles(), f.GetReplaced(), err
	})
}

// each ranges over the files of one manifest, as decode gives those of each chunk.
func each[T counted](m *Manifest, decode func([]byte) ([]T, []*planv1.ReplacedFile, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for m.trailer == nil && m.src.cur == m {
			batch, err := nextBatch(m.src, m, decode)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for i, f := range batch {
				if !yield(f, nil) {
					if i+1 < len(batch) {
						m.src.err = cmp.Or(m.src.err, fmt.Errorf("%w: the sink left files of task %d unread", ErrManifest, m.Header.GetTask()))
					}
					return
				}
			}
		}
	}
}

// Replaced are the files that the task has replaced; complete once Files has been read to its end.
func (m *Manifest) Replaced() []*planv1.ReplacedFile { return m.replaced }

// Trailer is nil until Files has been read to its end.
func (m *Manifest) Trailer() *planv1.ManifestTrailer { return m.trailer }

// nextBatch reads one chunk: some files, or none and the trailer.
func nextBatch[T counted](s *ManifestSource, m *Manifest, decode func([]byte) ([]T, []*planv1.ReplacedFile, error)) ([]T, error) {
	if s.err != nil {
		return nil, s.err
	}
	req, err := s.recv()
	if err != nil {
		return nil, s.fail(cut(err))
	}
	switch part := req.GetManifest().GetPart().(type) {
	case *planv1.ManifestChunk_Files:
		files, replaced, err := decode(part.Files)
		if err != nil {
			return nil, s.fail(fmt.Errorf("%w: task %d: %w", ErrManifest, m.Header.GetTask(), err))
		}
		s.sum.Write(part.Files)
		for _, f := range files {
			c := manifest.CountsOf(f)
			s.in.add(tally{Files: 1, Rows: c.Rows, Bytes: c.Bytes, DeletedRows: c.Deleted, UpdatedRows: c.Updated})
		}
		for _, f := range replaced {
			s.in.replaced(f)
		}
		m.replaced = append(m.replaced, replaced...)
		return files, nil
	case *planv1.ManifestChunk_Trailer:
		return nil, s.close(m, part.Trailer)
	}
	return nil, s.fail(fmt.Errorf("%w: task %d: want files or a trailer, got %v", ErrManifest, m.Header.GetTask(), req))
}

func (s *ManifestSource) close(m *Manifest, t *planv1.ManifestTrailer) error {
	if got := s.sum.Sum(nil); !bytes.Equal(got, t.GetSha256()) {
		return s.fail(fmt.Errorf("%w: task %d: sha256 is %x, the trailer says %x", ErrManifest, m.Header.GetTask(), got, t.GetSha256()))
	}
	if want := tallyOf(t); want != s.in {
		return s.fail(fmt.Errorf("%w: task %d: read %+v, the trailer says %+v", ErrManifest, m.Header.GetTask(), s.in, want))
	}
	m.trailer, s.cur = t, nil
	s.count++
	s.totals.add(s.in)
	return nil
}
