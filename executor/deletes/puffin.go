package deletes

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

const (
	puffinMagic = "PFA1"
	vectorType  = "deletion-vector-v1"
	// rowPosition is the field id of a row's position (Iceberg specification, "Reserved Field IDs"), which the blob is about.
	rowPosition = 2147483645
)

// Puffin writes deletion vectors into a Puffin file.
type Puffin struct {
	file  *os.File
	out   *bufio.Writer
	size  int64
	blobs []blob
}

// Place is where a blob lies in its file, in bytes.
type Place struct{ Offset, Size int64 }

// blob is a blob's record in the footer. Snapshot and sequence number are those of the commit, which nobody knows yet: -1, as the specification says.
type blob struct {
	Type       string            `json:"type"`
	Fields     []int32           `json:"fields"`
	Snapshot   int64             `json:"snapshot-id"`
	Sequence   int64             `json:"sequence-number"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Properties map[string]string `json:"properties"`
}

// CreatePuffin begins a file that must not exist. The caller ends it with Close or Abort.
func CreatePuffin(path string) (*Puffin, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	p := &Puffin{file: f, out: bufio.NewWriterSize(f, 1<<16)}
	return p, p.write([]byte(puffinMagic))
}

func (p *Puffin) write(b []byte) error {
	n, err := p.out.Write(b)
	p.size += int64(n)
	return err
}

// Add writes the deletion vector of a data file.
func (p *Puffin) Add(dataFile string, positions *roaring64.Bitmap) (Place, error) {
	raw, err := EncodeVector(positions)
	if err != nil {
		return Place{}, err
	}
	at := Place{Offset: p.size, Size: int64(len(raw))}
	p.blobs = append(p.blobs, blob{
		Type: vectorType, Fields: []int32{rowPosition}, Snapshot: -1, Sequence: -1, Offset: at.Offset, Length: at.Size,
		Properties: map[string]string{"referenced-data-file": dataFile, "cardinality": strconv.FormatUint(positions.GetCardinality(), 10)},
	})
	return at, p.write(raw)
}

// Close writes the footer and answers the size of the file in bytes.
func (p *Puffin) Close() (size int64, err error) {
	defer func() { err = errors.Join(err, p.Abort()) }()
	payload, err := json.Marshal(map[string]any{"blobs": p.blobs, "properties": map[string]string{"created-by": "signet"}})
	if err != nil {
		return 0, err
	}
	foot := append([]byte(puffinMagic), payload...)
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(payload))) //nolint:gosec // some hundred bytes a blob
	foot = binary.LittleEndian.AppendUint32(foot, 0)                    // flags: the payload is not compressed
	if err := p.write(append(foot, puffinMagic...)); err != nil {
		return 0, err
	}
	return p.size, p.out.Flush()
}

// Abort closes the file as it is; after Close it does nothing.
func (p *Puffin) Abort() error {
	if p.file == nil {
		return nil
	}
	f := p.file
	p.file = nil
	return f.Close()
}
