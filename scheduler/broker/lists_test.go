package broker_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/broker"
)

func listOf(t testing.TB, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := iceberg.NewManifestListWriterV2(&buf, 7, 3, nil)
	require.NoError(t, err)
	for i := range n {
		m := iceberg.NewManifestFile(2, "file:///t/metadata/"+string(rune('a'+i))+".avro", 100, 0, 7).AddedFiles(1).AddedRows(10).Build()
		require.NoError(t, w.AddManifests([]iceberg.ManifestFile{m}))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func TestManifestList_Cut(t *testing.T) {
	good := listOf(t, 3)
	require.NoError(t, broker.ParseManifestList(good))
	for n := range len(good) - 1 {
		_ = broker.ParseManifestList(good[:n]) // never panics; a cut between two blocks reads as a shorter list
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0xff
		_ = broker.ParseManifestList(bad)
	}
}

// A few kilobytes must not become gigabytes.
func TestManifestList_Bomb(t *testing.T) {
	require.ErrorContains(t, broker.ParseManifestList(container(t, "deflate", 1, zeros(t, 1<<30))), "limit")
	require.ErrorContains(t, broker.ParseManifestList(container(t, "null", 1<<40, []byte("x"))), "limit")
	require.ErrorContains(t, broker.ParseManifestList(container(t, "zstandard", 1, []byte("x"))), "codec")
	require.Error(t, broker.ParseManifestList(container(t, "deflate", 1, []byte("no deflate"))))
	require.Error(t, broker.ParseManifestList([]byte("PAR1")))
	require.Error(t, broker.ParseManifestList(nil))
}

// zeros is n zero bytes, deflated.
func zeros(t *testing.T, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := flate.NewWriter(&buf, flate.BestSpeed)
	require.NoError(t, err)
	for block := make([]byte, 1<<20); n > 0; n -= len(block) {
		_, err = w.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// container is an Avro file with the header of a good list, another codec, and one block.
func container(t *testing.T, codec string, count int64, block []byte) []byte {
	t.Helper()
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	out := binary.AppendVarint([]byte("Obj\x01"), 2)
	out = text(text(out, "avro.codec"), codec)
	out = text(text(out, "avro.schema"), `{"type":"record","name":"manifest_file","fields":[]}`)
	out = append(out, 0)
	sync := make([]byte, 16)
	out = append(out, sync...)
	out = binary.AppendVarint(binary.AppendVarint(out, count), int64(len(block)))
	return append(append(out, block...), sync...)
}

func FuzzParseManifestList(f *testing.F) {
	f.Add(listOf(f, 0))
	f.Add(listOf(f, 2))
	f.Fuzz(func(_ *testing.T, raw []byte) { _ = broker.ParseManifestList(raw) })
}
