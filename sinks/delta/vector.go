package delta

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log"
)

// vectorFrame is what a deletion vector in a file has around it: its length before it, a checksum behind. sizeInBytes counts neither ("Deletion Vector File Storage Format").
const vectorFrame = 8

// deletes says where a deletion vector lies ("Derived Fields"), or holds it as it would lie in a file.
func (sc *scan) deletes(v *log.DeletionVector) (*planv1.DeleteFile, error) {
	d := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, RecordCount: v.Cardinality, ContentSize: int64(v.SizeInBytes) + vectorFrame}
	if v.SizeInBytes < 0 || v.Cardinality < 0 {
		return nil, fmt.Errorf("%w: %d rows in %d bytes", errVector, v.Cardinality, v.SizeInBytes)
	}
	if v.StorageType == "i" {
		blob, err := decodeZ85(v.PathOrInlineDv)
		if err != nil {
			return nil, err
		}
		if int(v.SizeInBytes) > len(blob) {
			return nil, fmt.Errorf("%w: %d bytes are there of %d", errVector, len(blob), v.SizeInBytes)
		}
		blob = blob[:v.SizeInBytes] // the encoding fills up to a multiple of four
		d.Inline = binary.BigEndian.AppendUint32(nil, uint32(len(blob)))
		d.Inline = append(d.Inline, blob...)
		d.Inline = binary.BigEndian.AppendUint32(d.Inline, crc32.ChecksumIEEE(blob))
		return d, nil
	}
	if v.Offset != nil {
		d.ContentOffset = int64(*v.Offset)
	}
	switch v.StorageType {
	case "p":
		d.Path = resolve(sc.table.location, v.PathOrInlineDv)
	case "u":
		const encoded = 20 // a UUID's 16 bytes
		n := len(v.PathOrInlineDv) - encoded
		if n < 0 {
			return nil, fmt.Errorf("%w: path %q is too short to name a file", errVector, v.PathOrInlineDv)
		}
		raw, err := decodeZ85(v.PathOrInlineDv[n:])
		if err != nil {
			return nil, err
		}
		id, err := uuid.FromBytes(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errVector, err)
		}
		d.Path = "deletion_vector_" + id.String() + ".bin"
		if n > 0 {
			d.Path = v.PathOrInlineDv[:n] + "/" + d.Path
		}
		d.Path = sc.table.location + "/" + d.Path
	default:
		return nil, fmt.Errorf("%w: storage type %q is not known", errVector, v.StorageType)
	}
	return d, nil
}

const z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// decodeZ85 decodes ZeroMQ's base 85: five characters for four bytes.
func decodeZ85(text string) ([]byte, error) {
	if len(text)%5 != 0 {
		return nil, fmt.Errorf("%w: %d characters are not a whole number of groups of five", errVector, len(text))
	}
	out := make([]byte, 0, len(text)/5*4)
	for ; text != ""; text = text[5:] {
		var n uint64
		for i := range 5 {
			digit := strings.IndexByte(z85, text[i])
			if digit < 0 {
				return nil, fmt.Errorf("%w: %q is not a character of Base85", errVector, text[i])
			}
			n = n*85 + uint64(digit)
		}
		if n > 1<<32-1 {
			return nil, fmt.Errorf("%w: %q is too large for four bytes", errVector, text[:5])
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	return out, nil
}
