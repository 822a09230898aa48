package log_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/sinks/delta/log"
)

const typed = `{\"type\":\"struct\",\"fields\":[` +
	`{\"name\":\"p\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}},{\"name\":\"i\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{}},` +
	`{\"name\":\"d\",\"type\":\"decimal(38,2)\",\"nullable\":true,\"metadata\":{}},{\"name\":\"t\",\"type\":\"timestamp\",\"nullable\":true,\"metadata\":{}},` +
	`{\"name\":\"s\",\"type\":{\"type\":\"struct\",\"fields\":[{\"name\":\"x.y\",\"type\":\"double\",\"nullable\":true,\"metadata\":{}}]},\"nullable\":true,\"metadata\":{}},` +
	`{\"name\":\"b\",\"type\":\"boolean\",\"nullable\":true,\"metadata\":{}},{\"name\":\"e\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}}]}`

// full is a commit with one of everything that a checkpoint keeps, and of what it leaves out.
func full(settings string) string {
	recent := time.Now().UnixMilli()
	return `{"commitInfo":{"operation":"WRITE"}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors","domainMetadata"]}}
{"metaData":{"id":"i","name":"n","format":{"provider":"parquet","options":{}},"schemaString":"` + typed + `","partitionColumns":["p"],"configuration":{"delta.setTransactionRetentionDuration":"interval 2 days"` + settings + `},"createdTime":9007199254740993}}
{"txn":{"appId":"old","version":1,"lastUpdated":5}}
{"txn":{"appId":"without time","version":2}}
` + fmt.Sprintf(`{"txn":{"appId":"new","version":9007199254740993,"lastUpdated":%d}}`, recent) + `
{"domainMetadata":{"domain":"kept","configuration":"{}","removed":false}}
{"domainMetadata":{"domain":"gone","configuration":"{}","removed":true}}
{"add":{"path":"p%3D1/a%20b","partitionValues":{"p":"2024-02-29"},"size":9007199254740993,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":3,\"minValues\":{\"i\":-1,\"d\":-123456789012345678901234567890123456.78,\"t\":\"1969-12-31T23:59:59.999Z\",\"s\":{\"x.y\":-0.5},\"e\":\"\"},\"maxValues\":{\"i\":2147483647,\"d\":0.01,\"t\":\"2024-01-01T00:00:00.123Z\",\"s\":{\"x.y\":1e+300}},\"nullCount\":{\"i\":0,\"d\":1,\"t\":0,\"s\":{\"x.y\":0},\"b\":3}}","tags":{"k":null,"l":"v"},"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6},"baseRowId":1,"defaultRowCommitVersion":2,"clusteringProvider":"c"}}
{"add":{"path":"null","partitionValues":{"p":null},"size":1,"modificationTime":1,"dataChange":true}}
{"cdc":{"path":"_change_data/c","partitionValues":{},"size":1,"dataChange":false}}
` + fmt.Sprintf(`{"remove":{"path":"recent%%2C","deletionTimestamp":%d,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{"p":null},"size":7,"stats":"s","tags":{"a":"b"}}}`, recent) + `
{"remove":{"path":"expired","deletionTimestamp":1,"dataChange":true}}
{"remove":{"path":"without time","dataChange":true}}
`
}

func (tab *table) checkpoint(s *log.Snapshot) string {
	tab.t.Helper()
	require.NoError(tab.t, log.WriteCheckpoint(tab.t.Context(), tab, s))
	return filepath.Join(tab.dir, fmt.Sprintf("_delta_log/%020d.checkpoint.parquet", s.Version))
}

func adds(s *log.Snapshot) (out []log.Add) {
	for a := range s.Files() {
		b := *a
		b.DataChange = false // a checkpoint says so
		out = append(out, b)
	}
	return out
}

// What a checkpoint gives is what the commits gave; versions before it can be deleted.
func TestCheckpoint_KeepsTheTable(t *testing.T) {
	for _, settings := range []string{"", `,"delta.checkpoint.writeStatsAsStruct":"true"`, `,"delta.checkpoint.writeStatsAsJson":"false","delta.checkpoint.writeStatsAsStruct":"true"`} {
		tab := newTable(t, full(settings))
		want := tab.load(log.LoadOptions{})
		tab.checkpoint(want)
		require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(0))))
		tab.put(log.CommitName(1), addLine("more"))
		got := tab.load(version(0))
		require.Equal(t, adds(want), adds(got), settings)
		require.Equal(t, want.Protocol, got.Protocol)
		require.Equal(t, want.Metadata, got.Metadata)
		require.Equal(t, want.Domains(), got.Domains())
		require.Equal(t, want.Size(), got.Size())
		for id, kept := range map[string]bool{"old": false, "without time": true, "new": true} {
			was, _ := want.Txn(id)
			is, ok := got.Txn(id)
			require.Equal(t, kept, ok, id)
			require.True(t, !ok || is.Version == was.Version)
		}
		var removed []log.Remove
		for m := range got.Tombstones() {
			removed = append(removed, *m)
		}
		require.Len(t, removed, 1)
		require.Equal(t, "recent,", removed[0].Path)
		require.Equal(t, "recent%2C", removed[0].RawPath)
		require.EqualValues(t, 7, *removed[0].Size)
		require.Nil(t, removed[0].Stats)
		require.Nil(t, removed[0].Tags)
		require.Equal(t, []string{"more", "null", "p=1/a b|uab^-aqEH.-t@S}K{vb[*k^@4"}, paths(tab.load(log.LoadOptions{})))
	}
}

func readRecords(t *testing.T, path string) arrow.Table {
	t.Helper()
	in, err := file.OpenParquetFile(path, false)
	require.NoError(t, err)
	t.Cleanup(func() { in.Close() })
	r, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	tbl, err := r.ReadTable(t.Context())
	require.NoError(t, err)
	return tbl
}

// E12: what is absent is a null struct, not a struct of nulls or of empty strings; each row is one action.
func TestCheckpoint_E12AbsentStructsAreNull(t *testing.T) {
	tab := newTable(t, full(`,"delta.checkpoint.writeStatsAsStruct":"true"`))
	tbl := readRecords(t, tab.checkpoint(tab.load(log.LoadOptions{})))
	perRow := make([]int, tbl.NumRows())
	for i := range int(tbl.NumCols()) {
		column := tbl.Column(i).Data().Chunk(0).(*array.Struct)
		for row := range perRow {
			if column.IsValid(row) {
				perRow[row]++
			}
		}
		if tbl.Schema().Field(i).Name != "add" {
			continue
		}
		st := column.DataType().(*arrow.StructType)
		vector, _ := st.FieldIdx("deletionVector")
		parsed, _ := st.FieldIdx("partitionValues_parsed")
		stats, _ := st.FieldIdx("stats_parsed")
		for row := range perRow {
			path := column.Field(0).(*array.String)
			if column.IsNull(row) {
				require.True(t, column.Field(vector).IsNull(row))
				continue
			}
			require.Equal(t, path.Value(row) != "null", column.Field(vector).IsValid(row))
			require.Equal(t, path.Value(row) != "null", column.Field(stats).IsValid(row))
			require.True(t, column.Field(parsed).IsValid(row))
			if path.Value(row) != "null" {
				require.Equal(t, "2024-02-29", column.Field(parsed).(*array.Struct).Field(0).(*array.Date32).Value(row).FormattedString())
			}
		}
	}
	for row, n := range perRow {
		require.Equal(t, 1, n, "row %d", row)
	}
}

// E10, E15: a checkpoint keeps the partition columns, and empty feature lists as lists.
func TestCheckpoint_KeepsPartitionColumnsAndFeatureLists(t *testing.T) {
	tab := newTable(t, full(""), `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":[]}}`)
	tab.checkpoint(tab.load(log.LoadOptions{}))
	for v := range int64(2) {
		require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(v))))
	}
	got := tab.load(log.LoadOptions{})
	require.Equal(t, []string{"p"}, got.Metadata.PartitionColumns)
	require.Equal(t, []string{}, got.Protocol.ReaderFeatures)
	require.Equal(t, []string{}, got.Protocol.WriterFeatures)
}

// E11: a snapshot that no log was read for makes no checkpoint.
func TestCheckpoint_E11OfNothingIsRefused(t *testing.T) {
	tab := newTable(t, first)
	require.ErrorContains(t, log.WriteCheckpoint(t.Context(), tab, &log.Snapshot{}), "not loaded")
	s, err := log.NewSnapshot(0, 0, []log.Action{
		{Protocol: &log.Protocol{MinReaderVersion: 1, MinWriterVersion: 7, WriterFeatures: []string{"checkpointProtection"}}}, {Metadata: &log.Metadata{ID: "i", SchemaString: `{"type":"struct","fields":[]}`}},
	})
	require.NoError(t, err)
	require.ErrorContains(t, log.WriteCheckpoint(t.Context(), tab, s), "checkpointProtection")
	entries, err := os.ReadDir(filepath.Join(tab.dir, log.Dir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// E13: checkpoints that are written at the same time, in whatever order, leave a whole hint, of the newest version.
func TestCheckpoint_E13HintsNeitherMixNorGoBack(t *testing.T) {
	commits := []string{first}
	for v := 1; v < 12; v++ {
		commits = append(commits, addLine(fmt.Sprint(v)))
	}
	tab := newTable(t, commits...)
	var group sync.WaitGroup
	for v := range 12 {
		s := tab.load(version(int64(v)))
		group.Go(func() {
			if err := log.WriteCheckpoint(context.Background(), tab, s); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	hint, err := tab.Get(t.Context(), log.Hint)
	require.NoError(t, err)
	require.Regexp(t, `^\{"version":11,"size":13,"sizeInBytes":\d+,"numOfAddFiles":11\}$`, string(hint))
	require.NoError(t, log.WriteCheckpoint(t.Context(), tab, tab.load(version(3))), "one that is there is left as it is")
	again, err := tab.Get(t.Context(), log.Hint)
	require.NoError(t, err)
	require.Equal(t, hint, again)
}

// X14: whatever the hint says or lacks, the table is the same; half a checkpoint is none.
func TestLoad_X14Hints(t *testing.T) {
	build := func() *table {
		commits := []string{first}
		for v := 1; v <= 12; v++ {
			commits = append(commits, addLine(fmt.Sprint(v)))
		}
		tab := newTable(t, commits...)
		tab.checkpoint(tab.load(version(10)))
		return tab
	}
	clean := func(tab *table) {
		for v := range int64(10) {
			require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(v))))
		}
	}
	checkpoint := "_delta_log/00000000000000000010.checkpoint.parquet"
	for name, damage := range map[string]func(*table){
		"none":             func(*table) {},
		"empty":            func(tab *table) { tab.put(log.Hint, "") },
		"cut":              func(tab *table) { tab.put(log.Hint, `{"version":1`) },
		"of another type":  func(tab *table) { tab.put(log.Hint, `{"version":"10"}`) },
		"negative":         func(tab *table) { tab.put(log.Hint, `{"version":-5}`) },
		"huge":             func(tab *table) { tab.put(log.Hint, `{"version":9223372036854775807}`) },
		"to a missing one": func(tab *table) { tab.put(log.Hint, `{"version":11}`) },
		"to the future":    func(tab *table) { tab.put(log.Hint, `{"version":50}`) },
		"absent":           func(tab *table) { require.NoError(t, os.Remove(filepath.Join(tab.dir, log.Hint))) },
		"absent, cleaned up": func(tab *table) {
			require.NoError(t, os.Remove(filepath.Join(tab.dir, log.Hint)))
			clean(tab)
		},
		"cleaned up":          clean,
		"checkpoint is cut":   func(tab *table) { require.NoError(t, os.Truncate(filepath.Join(tab.dir, checkpoint), 100)) },
		"checkpoint is empty": func(tab *table) { tab.put(checkpoint, "") },
		"half of a multipart checkpoint": func(tab *table) {
			tab.put("_delta_log/00000000000000000012.checkpoint.0000000001.0000000002.parquet", "x")
			tab.put(log.Hint, `{"version":12,"parts":2}`)
		},
		"other files": func(tab *table) {
			tab.put("_delta_log/00000000000000000012.crc", "x")
			tab.put("_delta_log/00000000000000000003.00000000000000000012.compacted.json", "x")
			tab.put("_delta_log/99999999999999999999.json", "x")
			tab.put("_delta_log/13.json", "x")
			tab.put("_delta_log/_staged_commits/00000000000000000013.x.json", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			tab := build()
			damage(tab)
			s := tab.load(log.LoadOptions{})
			require.EqualValues(t, 12, s.Version)
			require.Equal(t, 12, s.NumFiles())
		})
	}
	tab := build()
	clean(tab)
	require.NoError(t, os.Truncate(filepath.Join(tab.dir, checkpoint), 100))
	_, err := log.Load(t.Context(), tab, log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrCorrupt)
	require.ErrorContains(t, err, "00000000000000000010.checkpoint.parquet")
	require.ErrorContains(t, err, "version 0 is missing")
	tab = build()
	require.NoError(t, os.Remove(filepath.Join(tab.dir, log.CommitName(11))))
	_, err = log.Load(t.Context(), tab, log.LoadOptions{})
	require.ErrorIs(t, err, log.ErrCorrupt)
	require.ErrorContains(t, err, "version 11 is missing")
	tab = build()
	clean(tab)
	_, err = log.Load(t.Context(), tab, version(3))
	require.ErrorIs(t, err, log.ErrNoVersion)
	require.ErrorContains(t, err, "goes back to 10")
}

// failing is a store whose calls of one kind fail.
type failing struct {
	log.Store
	get, open, list string
}

var errStore = errors.New("store is away")

func (f failing) Get(ctx context.Context, name string) ([]byte, error) {
	if name == f.get {
		return nil, errStore
	}
	return f.Store.Get(ctx, name)
}

func (f failing) Open(ctx context.Context, name string) (log.Object, error) {
	if name == f.open {
		return nil, errStore
	}
	return f.Store.Open(ctx, name)
}

func (f failing) List(ctx context.Context, dir, from string) ([]log.Info, error) {
	if dir == f.list {
		return nil, errStore
	}
	return f.Store.List(ctx, dir, from)
}

// D11: a failure to read is an error, never "it is not there".
func TestLoad_D11FailuresToReadAreErrors(t *testing.T) {
	tab := newTable(t, first, addLine("a"), addLine("b"))
	tab.checkpoint(tab.load(version(1)))
	for _, store := range []log.Store{
		failing{Store: tab, get: log.Hint},
		failing{Store: tab, get: log.CommitName(2)},
		failing{Store: tab, list: log.Dir},
		failing{Store: tab, open: "_delta_log/00000000000000000001.checkpoint.parquet"},
	} {
		_, err := log.Load(t.Context(), store, log.LoadOptions{})
		require.ErrorIs(t, err, errStore)
		require.NotErrorIs(t, err, log.ErrNoTable)
	}
	s := tab.load(version(1))
	_, _, err := s.Advance(t.Context(), failing{Store: tab, get: log.CommitName(2)})
	require.ErrorIs(t, err, errStore)
	require.ErrorIs(t, log.WriteCheckpoint(t.Context(), failing{Store: tab, get: log.Hint}, tab.load(version(2))), errStore)
}
