package broker

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxInflated caps what all blocks of a manifest list that a plugin wrote may decompress to, in bytes.
	maxInflated = 256 << 20
	// maxEntries caps their declared number of entries.
	maxEntries = 500_000
)

var errOCF = errors.New("no Avro object container file")

// checkContainer walks an Avro object container file without decoding an entry: what a few kilobytes decompress to is known before
// anything is allocated for it.
func checkContainer(raw []byte) error {
	r := &ocfReader{b: raw}
	if !bytes.Equal(r.take(4), []byte("Obj\x01")) {
		return errOCF
	}
	codec := r.codec()
	r.take(16) // sync marker
	left, entries := int64(maxInflated), int64(0)
	for r.err == nil && len(r.b) > 0 {
		n, data := r.long(), r.bytes()
		r.take(16)
		if entries += n; r.err == nil && (n < 0 || entries > maxEntries) {
			return fmt.Errorf("%d entries, limit %d", entries, maxEntries)
		}
		size, err := inflated(codec, data, left)
		if err != nil {
			return err
		}
		if left -= size; left < 0 {
			return fmt.Errorf("decompresses beyond the limit of %d bytes", int64(maxInflated))
		}
	}
	return r.err
}

func inflated(codec string, data []byte, limit int64) (int64, error) {
	switch codec {
	case "", "null":
		return int64(len(data)), nil
	case "deflate":
		n, err := io.Copy(io.Discard, io.LimitReader(flate.NewReader(bytes.NewReader(data)), limit+1))
		if err != nil {
			return 0, fmt.Errorf("block: %w", err)
		}
		return n, nil
	default:
		return 0, fmt.Errorf("codec %q: want null or deflate", codec)
	}
}

// ocfReader takes a container apart; after its first error it yields nothing.
type ocfReader struct {
	b   []byte
	err error
}

func (r *ocfReader) take(n int64) []byte {
	if r.err != nil || n < 0 || n > int64(len(r.b)) {
		r.err = errOCF
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *ocfReader) long() int64 {
	v, n := binary.Varint(r.b) // Go's varint is Avro's zig-zag long
	if r.err != nil || n <= 0 {
		r.err = errOCF
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *ocfReader) bytes() []byte { return r.take(r.long()) }

// codec reads the header's map and returns its codec.
func (r *ocfReader) codec() string {
	codec := ""
	for r.err == nil {
		n := r.long()
		if n < 0 { // a block of the map that says its size
			n = -n
			r.long()
		}
		if n == 0 {
			return codec
		}
		for ; n > 0 && r.err == nil; n-- {
			key, value := r.bytes(), r.bytes()
			if string(key) == "avro.codec" {
				codec = string(value)
			}
		}
	}
	return codec
}
