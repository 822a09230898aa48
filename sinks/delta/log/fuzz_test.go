package log

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// fuzzCheckpoint is a small checkpoint with every column.
func fuzzCheckpoint(f *testing.F) []byte {
	text, stats := "v", `{"numRecords":3,"minValues":{"b":"a"},"maxValues":{"b":"c"},"nullCount":{"b":0}}`
	n := int64(7)
	s, err := NewSnapshot(0, 0, []Action{
		{Protocol: &Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"v2Checkpoint"}, WriterFeatures: []string{"v2Checkpoint"}}},
		{Metadata: &Metadata{ID: "i", SchemaString: schemaOf(`"string"`, ""), PartitionColumns: []string{"a"}, Configuration: settings("delta.checkpoint.writeStatsAsStruct", "true")}},
		{Add: &Add{
			Path: "a b", PartitionValues: map[string]*string{"a": nil}, Stats: &stats, Tags: map[string]*string{"t": &text}, BaseRowID: &n,
			DeletionVector: &DeletionVector{StorageType: "i", PathOrInlineDv: "x", Cardinality: 1},
		}},
		{Add: &Add{Path: "c", PartitionValues: map[string]*string{"a": new(string)}}},
		{Remove: &Remove{Path: "r", DeletionTimestamp: &n}},
		{Txn: &Txn{AppID: "x", Version: 3}},
		{DomainMetadata: &DomainMetadata{Domain: "d"}},
	})
	require.NoError(f, err)
	s.Metadata.PartitionColumns = nil // the values above are none of a long
	actions := []Action{{Protocol: &s.Protocol}, {Metadata: &s.Metadata}}
	for a := range s.Files() {
		actions = append(actions, Action{Add: a})
	}
	for m := range s.Tombstones() {
		actions = append(actions, Action{Remove: m})
	}
	var out bytes.Buffer
	require.NoError(f, writeParquet(&out, s, actions))
	return out.Bytes()
}

// What is read of a broken checkpoint is an error or actions, and costs no more than a file of its size may.
func FuzzCheckpoint(f *testing.F) {
	seed := fuzzCheckpoint(f)
	f.Add(seed)
	for i := 0; i < len(seed); i += 97 { // also without the fuzzer, each of these is run
		broken := bytes.Clone(seed)
		broken[i] ^= 0xff
		f.Add(broken)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		actions, err := parseParquet(t.Context(), bytes.NewReader(data), int64(len(data)))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30), "memory for %d bytes", len(data))
		if err != nil {
			return
		}
		for i := range actions {
			if a := actions[i].Add; a != nil {
				require.NotEmpty(t, a.Path)
			}
			_, _ = AppendAction(nil, &actions[i]) // text that is not UTF-8 is an error there
		}
	})
}
