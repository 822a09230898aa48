package icefile

import (
	"bytes"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/avro"
)

func TestDetails_OfOurOwnEntries(t *testing.T) {
	l := layout(t, 2, nil)
	p := write(t, l, dataFile(l, "a"))
	n := 0
	require.NoError(t, ReadDetails(p.Data, func(e *Entry) error {
		n++
		d := e.Detail()
		require.Nil(t, d.Sequence)
		require.Nil(t, d.SnapshotID)
		require.Nil(t, d.FirstRowID)
		require.Empty(t, d.EqualityIDs)
		require.EqualValues(t, 7, e.DataSequence(&Manifest{SequenceNumber: 7}))
		m := e.Metrics(2)
		require.NotNil(t, m)
		require.NotNil(t, m.Values)
		require.Nil(t, e.Metrics(999))
		return nil
	}))
	require.Equal(t, 1, n)
}

// An entry of iceberg-go, with everything that a deletion vector has.
func TestDetails_OfADeletionVector(t *testing.T) {
	schema := icebergo.NewSchema(0, icebergo.NestedField{ID: 1, Name: "id", Type: icebergo.PrimitiveTypes.Int64})
	spec := icebergo.NewPartitionSpec()
	b, err := icebergo.NewDataFileBuilder(spec, icebergo.EntryContentPosDeletes, "dv.puffin", icebergo.PuffinFile, nil, nil, nil, 3, 100)
	require.NoError(t, err)
	b.ReferencedDataFile("data.parquet").ContentOffset(4).ContentSizeInBytes(60).KeyMetadata([]byte("k"))
	var raw bytes.Buffer
	snapshot, seq := int64(5), int64(6)
	w, err := icebergo.NewManifestWriter(3, &raw, spec, schema, snapshot, icebergo.WithManifestWriterContent(icebergo.ManifestContentDeletes))
	require.NoError(t, err)
	require.NoError(t, w.Existing(icebergo.NewManifestEntry(icebergo.EntryStatusEXISTING, &snapshot, &seq, &seq, b.Build())))
	require.NoError(t, w.Close())
	require.NoError(t, ReadDetails(raw.Bytes(), func(e *Entry) error {
		d := e.Detail()
		require.EqualValues(t, FilePositions, e.Content)
		require.Equal(t, "data.parquet", d.ReferencedFile)
		require.EqualValues(t, 4, *d.ContentOffset)
		require.EqualValues(t, 60, *d.ContentSize)
		require.EqualValues(t, 6, *d.Sequence)
		require.EqualValues(t, 5, *d.SnapshotID)
		require.Equal(t, []byte("k"), d.Key)
		require.EqualValues(t, 6, e.DataSequence(&Manifest{SequenceNumber: 9}), "its own")
		return nil
	}))
	require.Error(t, ReadDetails(raw.Bytes()[:raw.Len()-3], func(*Entry) error { return nil }))
	require.ErrorIs(t, ReadDetails([]byte("x"), func(*Entry) error { return nil }), avro.ErrFormat)
}
