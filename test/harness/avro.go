package harness

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/stretchr/testify/require"
)

// avroMagic begins an Avro container file.
const avroMagic = "Obj\x01"

// EditAvro rewrites the header of an Avro file in place, as another writer would have written it. The records stay.
func EditAvro(t require.TestingT, path string, edit func(header map[string]string)) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	header, rest, err := avroHeader(raw)
	require.NoError(t, err, path)
	edit(header)
	out := bytes.NewBufferString(avroMagic)
	put := func(n int) { out.Write(binary.AppendVarint(nil, int64(n))) }
	put(len(header))
	for _, k := range slices.Sorted(maps.Keys(header)) {
		put(len(k))
		out.WriteString(k)
		put(len(header[k]))
		out.WriteString(header[k])
	}
	put(0)
	out.Write(rest)
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
}

// AvroHeader is the header of an Avro file, keys and values.
func AvroHeader(t require.TestingT, path string) map[string]string {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	header, _, err := avroHeader(raw)
	require.NoError(t, err, path)
	return header
}

// avroHeader parses a header, and returns what comes behind it: the sync marker and the blocks.
func avroHeader(raw []byte) (header map[string]string, rest []byte, err error) {
	if !bytes.HasPrefix(raw, []byte(avroMagic)) {
		return nil, nil, errors.New("not an Avro file")
	}
	raw = raw[len(avroMagic):]
	number := func() int64 {
		n, size := binary.Varint(raw)
		if size <= 0 {
			err = errors.New("the header ends early")
			return 0
		}
		raw = raw[size:]
		return n
	}
	text := func() string {
		n := number()
		if err != nil || n < 0 || n > int64(len(raw)) {
			err = errors.Join(err, fmt.Errorf("a text of %d bytes", n))
			return ""
		}
		s := string(raw[:n])
		raw = raw[n:]
		return s
	}
	header = map[string]string{}
	for n := number(); n != 0 && err == nil; n = number() {
		if n < 0 { // a size in bytes follows
			n = -n
			number()
		}
		for ; n > 0 && err == nil; n-- {
			k := text()
			header[k] = text()
		}
	}
	return header, raw, err
}
