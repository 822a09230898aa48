package footer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Magic is what Parquet files begin and end with.
const Magic = "PAR1"

// MaxBytes is the largest footer that is read: one of a hundred thousand column chunks takes some 20 MB.
const MaxBytes = 256 << 20

// ErrEncrypted is for files whose footer is encrypted.
var ErrEncrypted = errors.New("it is encrypted")

// Read reads the footer of an open file of a size, and answers where the footer begins.
func Read(f io.ReaderAt, size int64) (*File, int64, error) {
	if size < 12 {
		return nil, 0, fmt.Errorf("%w: %d bytes are no Parquet file", errDamaged, size)
	}
	var head [4]byte
	var tail [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, 0, err
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return nil, 0, err
	}
	if string(tail[4:]) == "PARE" {
		return nil, 0, ErrEncrypted
	}
	if string(tail[4:]) != Magic || string(head[:]) != Magic {
		return nil, 0, fmt.Errorf("%w: it does not begin and end like a Parquet file", errDamaged)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	start := size - 8 - n
	if start < 4 || n > MaxBytes {
		return nil, 0, fmt.Errorf("%w: a footer of %d bytes in a file of %d", errDamaged, n, size)
	}
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, start); err != nil {
		return nil, 0, err
	}
	meta, err := Parse(buf)
	return meta, start, err
}

// Open reads the footer of the file at path.
func Open(path string) (meta *File, start, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, 0, err
	}
	meta, start, err = Read(f, st.Size())
	return meta, start, st.Size(), err
}

// End is what stands behind a file's body: the footer, its length and the magic.
func (f *File) End() []byte {
	b := f.Bytes()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return append(b, Magic...)
}
