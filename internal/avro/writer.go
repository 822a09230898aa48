package avro

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

const (
	blockSize = 64 << 10
	// level is the deflate level: what a commit waits for is the packing. The fastest level costs a third of the next one and makes manifests a tenth larger.
	level = 1
)

// deflaters are kept, since one is a megabyte: it would cost more than a short file does.
var deflaters = sync.Pool{New: func() any {
	z, err := flate.NewWriter(io.Discard, level)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// Writer makes an object container file of rows that are already encoded, in memory.
type Writer struct {
	out   bytes.Buffer
	block []byte
	rows  int64
	sync  [syncSize]byte
}

// KV is one entry of the file's header.
type KV struct{ Key, Value string }

// NewWriter begins a file.
func NewWriter(schema string, meta []KV) (*Writer, error) {
	w := &Writer{}
	return w, w.Reset(schema, meta)
}

// Reset begins another file and reuses the memory. What Bytes returned is invalid from then on.
func (w *Writer) Reset(schema string, meta []KV) error {
	w.out.Reset()
	w.block, w.rows = w.block[:0], 0
	if _, err := rand.Read(w.sync[:]); err != nil {
		return err
	}
	w.out.WriteString(magic)
	head := binary.AppendVarint(nil, int64(len(meta)+2))
	for _, kv := range append([]KV{{"avro.schema", schema}, {"avro.codec", "deflate"}}, meta...) {
		head = AppendString(AppendString(head, kv.Key), kv.Value)
	}
	w.out.Write(append(head, 0))
	w.out.Write(w.sync[:])
	return nil
}

// Row gives the buffer to append one encoded row to; Done takes it back.
func (w *Writer) Row() []byte { return w.block }

// Done ends the row that was appended to the buffer of Row. A row that failed is simply not handed back.
func (w *Writer) Done(b []byte) error {
	w.block = b
	w.rows++
	if len(w.block) < blockSize {
		return nil
	}
	return w.flush()
}

// Size is what has been compressed so far, in bytes.
func (w *Writer) Size() int { return w.out.Len() }

// Ready is what has been compressed so far: the file will begin with it. The slice is valid until the next row.
func (w *Writer) Ready() []byte { return w.out.Bytes() }

// Bytes ends the file. The slice is valid until Reset.
func (w *Writer) Bytes() ([]byte, error) {
	err := w.flush()
	return w.out.Bytes(), err
}

func (w *Writer) flush() error {
	if w.rows == 0 {
		return nil
	}
	var packed bytes.Buffer
	packed.Grow(len(w.block) / 4)
	z := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(z)
	z.Reset(&packed)
	if _, err := z.Write(w.block); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	head := binary.AppendVarint(nil, w.rows)
	head = binary.AppendVarint(head, int64(packed.Len()))
	w.out.Write(head)
	w.out.Write(packed.Bytes())
	w.out.Write(w.sync[:])
	w.block, w.rows = w.block[:0], 0
	return nil
}

// AppendLong appends an int or a long.
func AppendLong(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// AppendString appends a string.
func AppendString(dst []byte, s string) []byte {
	return append(binary.AppendVarint(dst, int64(len(s))), s...)
}

// AppendBytes appends bytes.
func AppendBytes(dst, b []byte) []byte {
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// AppendNull appends the branch null of the union of null and another type.
func AppendNull(dst []byte) []byte { return append(dst, 0) }

// AppendSome appends the other branch; its value follows.
func AppendSome(dst []byte) []byte { return append(dst, 2) }
