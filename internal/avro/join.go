package avro

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
)

// Join puts object container files of one schema, one codec and one header together, without decoding a record. rows is how many there are. Files that
// differ in their headers are refused with ErrLayout.
func Join(files [][]byte) (joined []byte, rows int64, err error) {
	var out bytes.Buffer
	var first *File
	for i, raw := range files {
		f := &File{Meta: map[string]string{}}
		if len(raw) < len(magic) || string(raw[:len(magic)]) != magic {
			return nil, 0, fmt.Errorf("%w: not an Avro container file", ErrFormat)
		}
		f.d = decoder{raw[len(magic):]}
		if err := f.header(); err != nil {
			return nil, 0, err
		}
		if i == 0 {
			first = f
			out.Write(raw[:len(raw)-len(f.d.b)])
		} else if !maps.Equal(f.Meta, first.Meta) {
			return nil, 0, ErrLayout
		}
		n, err := f.rawBlocks(func(n int64, packed []byte) {
			out.Write(binary.AppendVarint(binary.AppendVarint(nil, n), int64(len(packed))))
			out.Write(packed)
			out.Write(first.sync[:])
		})
		if err != nil {
			return nil, 0, err
		}
		rows += n
	}
	return out.Bytes(), rows, nil
}

// rawBlocks visits the blocks as they are, compressed, and counts their records.
func (f *File) rawBlocks(visit func(n int64, packed []byte)) (rows int64, err error) {
	for len(f.d.b) > 0 {
		n, err := f.d.long()
		if err != nil {
			return 0, err
		}
		packed, err := f.d.bytes()
		if err != nil {
			return 0, err
		}
		s, err := f.d.take(syncSize)
		if err != nil {
			return 0, err
		}
		if n < 0 || !bytes.Equal(s, f.sync[:]) {
			return 0, fmt.Errorf("%w: block without its sync marker", ErrFormat)
		}
		visit(n, packed)
		rows += n
	}
	return rows, nil
}
