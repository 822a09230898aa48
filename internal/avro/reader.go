package avro

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// maxBlock bounds the decompressed size of a block, in bytes.
const maxBlock = 256 << 20

const (
	magic    = "Obj\x01"
	syncSize = 16
)

// File is an object container file in memory.
type File struct {
	Meta   map[string]string
	Schema *Schema
	d      decoder
	sync   [syncSize]byte
	codec  func([]byte) ([]byte, error)
}

// Open reads the header.
func Open(raw []byte) (*File, error) {
	if len(raw) < len(magic) || string(raw[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: not an Avro container file", ErrFormat)
	}
	f := &File{Meta: map[string]string{}, d: decoder{raw[len(magic):]}}
	if err := f.header(); err != nil {
		return nil, err
	}
	var err error
	if f.codec, err = codecOf(f.Meta["avro.codec"]); err != nil {
		return nil, err
	}
	f.Schema, err = ParseSchema([]byte(f.Meta["avro.schema"]))
	if err == nil && f.Schema.kind != kindRecord {
		err = fmt.Errorf("%w: the file does not hold records", ErrFormat)
	}
	return f, err
}

func (f *File) header() error {
	for {
		n, err := f.d.long()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if n < 0 {
			if n = -n; n < 0 {
				return fmt.Errorf("%w: header", ErrFormat)
			}
			if _, err := f.d.long(); err != nil {
				return err
			}
		}
		for range n {
			k, err := f.d.bytes()
			if err != nil {
				return err
			}
			v, err := f.d.bytes()
			if err != nil {
				return err
			}
			f.Meta[string(k)] = string(v)
		}
	}
	s, err := f.d.take(syncSize)
	copy(f.sync[:], s)
	return err
}

// Records decodes all records in order. It may be called once.
func (f *File) Records(visit func(*Record) error) error {
	for len(f.d.b) > 0 {
		n, err := f.d.long()
		if err != nil {
			return err
		}
		raw, err := f.d.bytes()
		if err != nil {
			return err
		}
		s, err := f.d.take(syncSize)
		if err != nil {
			return err
		}
		if !bytes.Equal(s, f.sync[:]) {
			return fmt.Errorf("%w: block without its sync marker", ErrFormat)
		}
		block, err := f.codec(raw)
		if err != nil {
			return err
		}
		if err := f.block(n, block, visit); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) block(n int64, b []byte, visit func(*Record) error) error {
	d := decoder{b}
	if tooMany(n, len(b), f.Schema) {
		return fmt.Errorf("%w: a block of %d bytes cannot hold %d records", ErrFormat, len(b), n)
	}
	for range n {
		v, err := d.record(f.Schema, false, 0)
		if err != nil {
			return err
		}
		if err := visit(v.(*Record)); err != nil {
			return err
		}
	}
	if len(d.b) > 0 {
		return fmt.Errorf("%w: %d bytes after the last record of a block", ErrFormat, len(d.b))
	}
	return nil
}

func codecOf(name string) (func([]byte) ([]byte, error), error) {
	switch name {
	case "", "null":
		return func(b []byte) ([]byte, error) { return b, nil }, nil
	case "deflate":
		return inflate, nil
	case "snappy":
		return unsnap, nil
	case "zstandard":
		return unzstd, nil
	}
	return nil, fmt.Errorf("%w: codec %q is unknown", ErrFormat, name)
}

func inflate(b []byte) ([]byte, error) {
	var out bytes.Buffer
	if _, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxBlock+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if out.Len() > maxBlock {
		return nil, fmt.Errorf("%w: a block of more than %d bytes", ErrFormat, maxBlock)
	}
	return out.Bytes(), nil
}

func unsnap(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: snappy block without a checksum", ErrFormat)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if n, err := snappy.DecodedLen(body); err != nil || n > maxBlock {
		return nil, fmt.Errorf("%w: snappy block of %d bytes: %w", ErrFormat, n, err)
	}
	out, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if crc32.ChecksumIEEE(out) != sum {
		return nil, fmt.Errorf("%w: checksum of a snappy block", ErrFormat)
	}
	return out, nil
}

func unzstd(b []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := r.DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return out, nil
}
