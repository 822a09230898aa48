package manifest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"iter"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Reader takes the chunks of one task manifest in their order. It keeps the raw files bytes and decodes them only when asked.
// It is not safe for concurrent use.
type Reader struct {
	limits  Limits
	header  *planv1.ManifestHeader
	trailer *planv1.ManifestTrailer
	raw     [][]byte
	sum     hash.Hash
	seen    counts
	rawSize int64
	err     error
}

// NewReader returns an empty Reader.
func NewReader(limits Limits) *Reader {
	limits.setDefaults()
	return &Reader{limits: limits, sum: sha256.New()}
}

// Add takes the next chunk; the Reader owns its bytes from then on. An error is final.
func (r *Reader) Add(c *planv1.ManifestChunk) error {
	if r.err != nil {
		return r.err
	}
	r.err = r.add(c)
	return r.err
}

func (r *Reader) add(c *planv1.ManifestChunk) error {
	switch part := c.GetPart().(type) {
	case *planv1.ManifestChunk_Header:
		return r.addHeader(part.Header)
	case *planv1.ManifestChunk_Files:
		return r.addFiles(part.Files)
	case *planv1.ManifestChunk_Trailer:
		return r.addTrailer(part.Trailer)
	default:
		return fmt.Errorf("%w: empty chunk", ErrMalformed)
	}
}

func (r *Reader) addHeader(h *planv1.ManifestHeader) error {
	if r.header != nil {
		return fmt.Errorf("%w: second header", ErrOrder)
	}
	if h == nil {
		return fmt.Errorf("%w: empty header", ErrMalformed)
	}
	if n := proto.Size(h); n > r.limits.ChunkBytes {
		return fmt.Errorf("%w: header of %d bytes, limit %d", ErrTooLarge, n, r.limits.ChunkBytes)
	}
	r.header = h
	return nil
}

func (r *Reader) addFiles(b []byte) error {
	switch {
	case r.header == nil:
		return fmt.Errorf("%w: files before the header", ErrOrder)
	case r.trailer != nil:
		return fmt.Errorf("%w: files after the trailer", ErrOrder)
	case len(b) > r.limits.ChunkBytes:
		return fmt.Errorf("%w: chunk of %d bytes, limit %d", ErrTooLarge, len(b), r.limits.ChunkBytes)
	case len(b) == 0:
		return nil // adds nothing to digest or totals, and is not kept: a million of them cost nothing
	}
	c, err := scanFiles(b, &r.limits)
	if err != nil {
		return err
	}
	if c.files+c.replaced == 0 { // otherwise endless tiny chunks would cost more than their bytes
		return fmt.Errorf("%w: chunk without a file", ErrMalformed)
	}
	if err := r.account(c, len(b)); err != nil {
		return err
	}
	r.sum.Write(b)
	r.raw = append(r.raw, b)
	return nil
}

func (r *Reader) account(c counts, size int) error {
	r.seen.files += c.files
	r.seen.elements += c.elements
	r.rawSize += int64(size)
	r.seen.replaced += c.replaced
	var okR, okB, okD, okU bool
	r.seen.rows, okR = addInt64(r.seen.rows, c.rows)
	r.seen.bytes, okB = addInt64(r.seen.bytes, c.bytes)
	r.seen.deleted, okD = addInt64(r.seen.deleted, c.deleted)
	r.seen.updated, okU = addInt64(r.seen.updated, c.updated)
	switch {
	case !okR || !okB || !okD || !okU:
		return fmt.Errorf("%w: totals overflow", ErrTooLarge)
	case r.seen.files+r.seen.replaced > r.limits.Files:
		return fmt.Errorf("%w: more than %d files", ErrTooLarge, r.limits.Files)
	case r.rawSize > r.limits.Bytes:
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.limits.Bytes)
	case r.seen.elements > r.limits.Elements:
		return fmt.Errorf("%w: more than %d partition values, column metrics and offsets", ErrTooLarge, r.limits.Elements)
	}
	return nil
}

func (r *Reader) addTrailer(t *planv1.ManifestTrailer) error {
	switch {
	case r.header == nil:
		return fmt.Errorf("%w: trailer before the header", ErrOrder)
	case r.trailer != nil:
		return fmt.Errorf("%w: second trailer", ErrOrder)
	case t == nil:
		return fmt.Errorf("%w: empty trailer", ErrMalformed)
	}
	if got := r.sum.Sum(nil); !bytes.Equal(got, t.GetSha256()) {
		return fmt.Errorf("%w: received %x, trailer says %x", ErrDigest, got, head(t.GetSha256()))
	}
	for _, x := range []struct {
		what        string
		got, stated int64
	}{
		{"files", r.seen.files, t.GetFiles()},
		{"rows", r.seen.rows, t.GetRows()},
		{"bytes", r.seen.bytes, t.GetBytes()},
		{"replaced files", r.seen.replaced, t.GetReplacedFiles()},
		{"deleted rows", r.seen.deleted, t.GetDeletedRows()},
		{"updated rows", r.seen.updated, t.GetUpdatedRows()},
	} {
		if x.got != x.stated {
			return fmt.Errorf("%w: received %d %s, trailer says %d", ErrTotals, x.got, x.what, x.stated)
		}
	}
	r.trailer = t
	return nil
}

func head(b []byte) []byte { return b[:min(len(b), sha256.Size)] }

// Done reports whether the manifest is complete and verified.
func (r *Reader) Done() bool { return r.err == nil && r.trailer != nil }

// Header returns the header, or nil before its chunk.
func (r *Reader) Header() *planv1.ManifestHeader { return r.header }

// Trailer returns the verified trailer, or nil before it.
func (r *Reader) Trailer() *planv1.ManifestTrailer { return r.trailer }

// Files decodes all data files of a complete manifest.
func (r *Reader) Files() ([]*planv1.DataFile, error) {
	files, _, err := r.Everything()
	return files, err
}

// Everything decodes all of a complete manifest: its data files, and the files that it replaces.
func (r *Reader) Everything() (files []*planv1.DataFile, replaced []*planv1.ReplacedFile, err error) {
	if !r.Done() {
		return nil, nil, r.incomplete()
	}
	for _, b := range r.raw {
		d, err := DecodeFiles(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		files, replaced = append(files, d.GetFiles()...), append(replaced, d.GetReplaced()...)
	}
	return files, replaced, nil
}

// All decodes the data files of a complete manifest chunk by chunk. An error ends the sequence.
func (r *Reader) All() iter.Seq2[*planv1.DataFile, error] {
	return decode(r, (*planv1.DataFiles).GetFiles)
}

// Replaced decodes the files that a complete manifest replaces, chunk by chunk. An error ends the sequence.
func (r *Reader) Replaced() iter.Seq2[*planv1.ReplacedFile, error] {
	return decode(r, (*planv1.DataFiles).GetReplaced)
}

func decode[T any](r *Reader, pick func(*planv1.DataFiles) []*T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if !r.Done() {
			yield(nil, r.incomplete())
			return
		}
		for _, b := range r.raw {
			d, err := DecodeFiles(b)
			if err != nil {
				yield(nil, fmt.Errorf("%w: %w", ErrMalformed, err))
				return
			}
			for _, f := range pick(d) {
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// Chunks gives the stream of a complete manifest again, for the journal and for a sink's Stage.
func (r *Reader) Chunks() ([]*planv1.ManifestChunk, error) {
	if !r.Done() {
		return nil, r.incomplete()
	}
	out := make([]*planv1.ManifestChunk, 0, len(r.raw)+2)
	out = append(out, &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: r.header}})
	for _, b := range r.raw {
		out = append(out, &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: b}})
	}
	return append(out, &planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: r.trailer}}), nil
}

func (r *Reader) incomplete() error {
	if r.err != nil {
		return r.err
	}
	return ErrIncomplete
}
