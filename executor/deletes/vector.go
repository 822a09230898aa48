package deletes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// VectorMagic begins a deletion vector, behind its length.
var VectorMagic = []byte{0xD1, 0xD3, 0x39, 0x64}

// MaxVectorBytes bounds a deletion vector: 2^31 positions in the dense form are 256 MiB.
const MaxVectorBytes = 1 << 29

// EncodeVector makes the blob of a deletion vector (Iceberg's Puffin specification, deletion-vector-v1): length (4 bytes, big-endian) of magic and bitmap,
// magic, bitmap in the portable format of 64-bit Roaring bitmaps, CRC-32 (4 bytes, big-endian) of magic and bitmap. The bitmap is brought into its smallest
// form.
func EncodeVector(positions *roaring64.Bitmap) ([]byte, error) {
	positions.RunOptimize()
	size := positions.GetSerializedSizeInBytes() + uint64(len(VectorMagic))
	if size > MaxVectorBytes-8 {
		return nil, fmt.Errorf("a deletion vector of %d positions takes %d bytes, more than %d", positions.GetCardinality(), size, MaxVectorBytes)
	}
	var out bytes.Buffer
	out.Grow(int(size) + 8)                                     //nolint:gosec // bounded above
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(size))) //nolint:gosec // bounded above
	out.Write(VectorMagic)
	if _, err := positions.WriteTo(&out); err != nil {
		return nil, err
	}
	body := out.Bytes()[4:]
	if uint64(len(body)) != size {
		return nil, fmt.Errorf("a deletion vector has %d bytes, and %d were expected", len(body), size)
	}
	return binary.BigEndian.AppendUint32(out.Bytes(), crc32.ChecksumIEEE(body)), nil
}
