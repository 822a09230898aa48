package log_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/localstore"
)

const benchStats = `{"numRecords":1000000,"minValues":{"id":1,"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","price":-12345.67,"at":"2024-01-01T00:00:00.000Z"},` +
	`"maxValues":{"id":1000000,"name":"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz","price":99999.99,"at":"2024-12-31T23:59:59.999Z"},"nullCount":{"id":0,"name":3,"price":0,"at":0}}`

func benchAdds(n int) []log.Action {
	out := make([]log.Action, n)
	stats := benchStats
	for i := range out {
		day := fmt.Sprintf("2024-01-%02d", i%28+1)
		out[i].Add = &log.Add{
			Path: fmt.Sprintf("0190b2a4-7f0e-7000-8000-000000000000/3/%d/1/part-%08d.parquet", i%64, i), PartitionValues: map[string]*string{"day": &day},
			Size: 128 << 20, ModificationTime: 1717171717171, DataChange: true, Stats: &stats,
		}
	}
	return out
}

func encodeAll(tb testing.TB, actions []log.Action) []byte {
	tb.Helper()
	var out []byte
	var err error
	for i := range actions {
		out, err = log.AppendAction(out, &actions[i])
		require.NoError(tb, err)
	}
	return out
}

func BenchmarkEncodeCommitOf100000Files(b *testing.B) {
	actions := benchAdds(100_000)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(encodeAll(b, actions))))
	}
}

func BenchmarkParseCommitOf100000Files(b *testing.B) {
	data := encodeAll(b, benchAdds(100_000))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := log.ParseCommit(data)
		require.NoError(b, err)
	}
}

// benchTable is a table with a number of versions, each of which adds a file, and a checkpoint ten versions before the newest.
func benchTable(b *testing.B, versions int) *localstore.Store {
	b.Helper()
	dir := b.TempDir()
	require.NoError(b, os.Mkdir(filepath.Join(dir, log.Dir), 0o755))
	store := localstore.New(dir)
	for v := range versions {
		body := addLine(fmt.Sprintf("part-%08d.parquet", v))
		if v == 0 {
			body = first
		}
		require.NoError(b, os.WriteFile(filepath.Join(dir, log.CommitName(int64(v))), []byte(body), 0o600))
	}
	s, err := log.Load(b.Context(), store, version(int64(versions-10)))
	require.NoError(b, err)
	require.NoError(b, log.WriteCheckpoint(b.Context(), store, s))
	return store
}

func BenchmarkOpen10000Versions(b *testing.B) {
	store := benchTable(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		s, err := log.Load(b.Context(), store, log.LoadOptions{})
		require.NoError(b, err)
		require.Equal(b, 9_999, s.NumFiles())
	}
}

func BenchmarkAdvanceOfAMillionFiles(b *testing.B) {
	actions := append(benchAdds(1_000_000), log.Action{Protocol: &log.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}}, log.Action{Metadata: &log.Metadata{ID: "i"}})
	s, err := log.NewSnapshot(0, 0, actions)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		s, err = s.With(log.Commit{Version: s.Version + 1, Actions: []log.Action{{Add: &log.Add{Path: fmt.Sprintf("new-%d", s.Version)}}}})
		require.NoError(b, err)
	}
}

func BenchmarkCheckpointOf100000Files(b *testing.B) {
	actions := append(benchAdds(100_000), log.Action{Protocol: &log.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}}, log.Action{Metadata: &log.Metadata{
		ID: "i", SchemaString: `{"type":"struct","fields":[]}`, Configuration: map[string]string{},
	}})
	s, err := log.NewSnapshot(0, 0, actions)
	require.NoError(b, err)
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, log.WriteCheckpoint(context.Background(), localstore.New(b.TempDir()), s))
		}
	})
	b.Run("read", func(b *testing.B) {
		store := localstore.New(b.TempDir())
		require.NoError(b, log.WriteCheckpoint(b.Context(), store, s))
		b.ReportAllocs()
		for b.Loop() {
			got, err := log.Load(b.Context(), store, log.LoadOptions{})
			require.NoError(b, err)
			require.Equal(b, s.NumFiles(), got.NumFiles())
		}
	})
}

// A commit of 100,000 files is encoded without copies of it: what is allocated is the text and its growth.
func TestEncode_CommitOf100000FilesIsLean(t *testing.T) {
	actions := benchAdds(2000)
	var size int
	perRun := testing.AllocsPerRun(5, func() { size = len(encodeAll(t, actions)) })
	require.Less(t, perRun/2000, 6.0, "allocations for each file")
	require.Equal(t, 2000, strings.Count(string(encodeAll(t, actions)), "\n"))
	require.Less(t, size/2000, 800, "bytes for each file")
}

func BenchmarkParseAddsOf100000Files(b *testing.B) {
	data := encodeAll(b, benchAdds(100_000))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := log.ParseAdds(data)
		require.NoError(b, err)
	}
}
