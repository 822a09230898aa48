package duckdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/deletes"
)

// The parts of a deletion vector's blob around magic and bitmap; see deletes.EncodeVector.
const (
	vectorHead = 4
	vectorTail = 4
)

var errVector = errors.New("damaged deletion vector")

// readVector reads a deletion vector: out of the file that d names (Iceberg's Puffin files and Delta's deletion_vector_*.bin hold the same blobs), or d's own.
func readVector(d *planv1.DeleteFile) (*roaring64.Bitmap, error) {
	name := d.GetPath()
	blob := d.GetInline()
	var err error
	if len(blob) > 0 {
		name = "the deletion vector in the table's log"
	} else if blob, err = blobOf(d); err != nil {
		return nil, err
	}
	if len(blob) < minVector {
		return nil, fmt.Errorf("%s: %w: a blob of %d bytes", name, errVector, len(blob))
	}
	b, err := decodeVector(blob)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n := b.GetCardinality(); n != uint64(d.GetRecordCount()) {
		return nil, fmt.Errorf("%s: %w: it has %d positions, the table says %d", name, errVector, n, d.GetRecordCount())
	}
	return b, nil
}

// minVector is the size in bytes of a blob whose bitmap has none.
const minVector = vectorHead + 4 + vectorTail

// blobOf reads the bytes of a file that d places.
func blobOf(d *planv1.DeleteFile) ([]byte, error) {
	size := d.GetContentSize()
	if size < minVector || size > deletes.MaxVectorBytes || d.GetContentOffset() < 0 {
		return nil, fmt.Errorf("%s: %w: a blob of %d bytes at %d", d.GetPath(), errVector, size, d.GetContentOffset())
	}
	f, err := os.Open(d.GetPath())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if d.GetContentOffset() > st.Size()-size {
		return nil, fmt.Errorf("%s: %w: a blob of %d bytes at %d in a file of %d", d.GetPath(), errVector, size, d.GetContentOffset(), st.Size())
	}
	blob := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, d.GetContentOffset(), size), blob); err != nil {
		return nil, fmt.Errorf("%s: %w", d.GetPath(), err)
	}
	return blob, nil
}

func decodeVector(blob []byte) (b *roaring64.Bitmap, err error) {
	body := blob[vectorHead : len(blob)-vectorTail]
	switch {
	case int(binary.BigEndian.Uint32(blob)) != len(body):
		return nil, fmt.Errorf("%w: it names a length of %d, and has %d", errVector, binary.BigEndian.Uint32(blob), len(body))
	case !bytes.HasPrefix(body, deletes.VectorMagic):
		return nil, fmt.Errorf("%w: it does not begin as one", errVector)
	case crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(blob[len(blob)-vectorTail:]):
		return nil, fmt.Errorf("%w: its checksum differs", errVector)
	}
	defer func() { // the checksum is right and the content is not: no such bytes may end the process
		if r := recover(); r != nil {
			b, err = nil, fmt.Errorf("%w: %v", errVector, r)
		}
	}()
	b = roaring64.New()
	in := bytes.NewReader(body[len(deletes.VectorMagic):])
	if _, err := b.ReadFrom(in); err != nil {
		return nil, fmt.Errorf("%w: %w", errVector, err)
	}
	if in.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow the bitmap", errVector, in.Len())
	}
	return b, nil
}
