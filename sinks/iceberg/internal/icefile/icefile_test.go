package icefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/avro"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

func prim(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

func ptr[T any](v T) *T { return &v }

// layout is a table (id long required, body string, d double, s struct<k string>, l list<string>, m map<string, long>) partitioned by identity(body) and
// bucket[4](id).
func layout(t testing.TB, version int, modes map[string]string) Layout {
	t.Helper()
	str, long := prim(planv1.TypeKind_TYPE_KIND_STRING), prim(planv1.TypeKind_TYPE_KIND_INT64)
	fields := []*planv1.Field{
		{Name: "id", Type: long, Required: true},
		{Name: "body", Type: str},
		{Name: "d", Type: prim(planv1.TypeKind_TYPE_KIND_FLOAT64)},
		{Name: "s", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{{Name: "k", Type: str}}}},
		{Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Name: "element", Type: str}}}},
		{Name: "m", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{{Name: "key", Type: str, Required: true}, {Name: "value", Type: long}}}},
	}
	meta.AssignIDs(fields)
	schema, err := meta.NewSchema(0, fields)
	require.NoError(t, err)
	spec, err := meta.NewSpec(schema, []meta.Clause{
		{Column: "body", Transform: meta.Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}, {Column: "id", Transform: meta.Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_BUCKET, Param: 4}},
	})
	require.NoError(t, err)
	parts, err := spec.Partition(schema)
	require.NoError(t, err)
	l := Layout{Version: version, Schema: schema, Spec: spec, Partition: parts, Metrics: map[int32]*planv1.MetricsMode{}, SnapshotID: 77}
	kinds := map[string]*planv1.MetricsMode{
		"none": {Kind: planv1.MetricsKind_METRICS_KIND_NONE}, "counts": {Kind: planv1.MetricsKind_METRICS_KIND_COUNTS},
		"full": {Kind: planv1.MetricsKind_METRICS_KIND_FULL}, "": {Kind: planv1.MetricsKind_METRICS_KIND_TRUNCATE, Length: 16},
	}
	schema.Walk(func(n *meta.Node) {
		if n.Leaf() {
			l.Metrics[n.Field.GetId()] = kinds[modes[n.Path]]
		}
	})
	return l
}

func str(s string) *planv1.Value  { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
func num(n int64) *planv1.Value   { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }
func dbl(f float64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}} }

func metricsOf(id int32, rows, nulls int64, lower, upper *planv1.Value) *planv1.ColumnMetrics {
	m := &planv1.ColumnMetrics{FieldId: id, SizeBytes: ptr(int64(10)), ValueCount: &rows, NullCount: &nulls}
	if lower != nil {
		m.Lower, m.Upper = &planv1.Bound{Value: lower}, &planv1.Bound{Value: upper}
	}
	return m
}

const long = "a very long string of more than sixteen code points"

func dataFile(l Layout, path string) *planv1.DataFile {
	id := func(p string) int32 { return l.Schema.Lookup(p).Field.GetId() }
	return &planv1.DataFile{
		Path: path, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 1000, Partition: []*planv1.Value{str("x"), num(3)}, SplitOffsets: []int64{4, 500},
		SortOrderId: 1,
		Columns: []*planv1.ColumnMetrics{
			metricsOf(id("id"), 10, 0, num(1), num(10)), metricsOf(id("body"), 10, 1, str(long), str(long)), metricsOf(id("d"), 10, 0, dbl(math.NaN()), dbl(0)),
			metricsOf(id("s.k"), 10, 5, str(long), str(long)), metricsOf(id("l.element"), 30, 0, str(long), str(long)), metricsOf(id("m.key"), 3, 0, str("a"), str("b")),
		},
	}
}

func write(t testing.TB, l Layout, files ...*planv1.DataFile) *Packed {
	t.Helper()
	w, err := NewWriter(l)
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, w.Add(f))
	}
	p, err := w.Finish()
	require.NoError(t, err)
	return p
}

// goEntries reads an Iceberg manifest with iceberg-go.
func goEntries(t *testing.T, version int, p *Packed) []icebergo.ManifestEntry {
	t.Helper()
	mf := icebergo.NewManifestFile(version, "m", int64(len(p.Data)), 0, 77).AddedFiles(int32(p.Files)).SequenceNum(5, 5).Build()
	entries, err := icebergo.ReadManifest(mf, bytes.NewReader(p.Data), false)
	require.NoError(t, err)
	return entries
}

func TestWriter_IcebergGoReadsTheEntries(t *testing.T) {
	for _, version := range []int{1, 2, 3} {
		l := layout(t, version, nil)
		p := write(t, l, dataFile(l, "file:///t/a.parquet"), dataFile(l, "file:///t/b.parquet"))
		require.EqualValues(t, 2, p.Files)
		require.EqualValues(t, 20, p.Rows)
		require.EqualValues(t, 2000, p.Bytes)
		entries := goEntries(t, version, p)
		require.Len(t, entries, 2)
		e := entries[0]
		require.Equal(t, icebergo.EntryStatusADDED, e.Status())
		require.EqualValues(t, 77, e.SnapshotID(), "inherited, or written in version 1")
		if version > 1 {
			require.EqualValues(t, 5, e.SequenceNum())
		}
		f := e.DataFile()
		require.Equal(t, "file:///t/a.parquet", f.FilePath())
		require.Equal(t, icebergo.ParquetFile, f.FileFormat())
		require.Equal(t, map[int]any{1000: "x", 1001: int32(3)}, f.Partition())
		require.Equal(t, []int64{4, 500}, f.SplitOffsets())
		require.Equal(t, 1, *f.SortOrderID())
		require.EqualValues(t, 1, f.NullValueCounts()[2])
		require.EqualValues(t, 10, f.ValueCounts()[1])
		require.EqualValues(t, 10, f.ColumnSizes()[1])
	}
}

func TestWriter_MetricsFollowTheModes(t *testing.T) { // X10
	l := layout(t, 2, map[string]string{"body": "counts", "s.k": "full", "id": "none"})
	id := func(p string) int { return int(l.Schema.Lookup(p).Field.GetId()) }
	f := goEntries(t, 2, write(t, l, dataFile(l, "a")))[0].DataFile()
	lower, upper := f.LowerBoundValues(), f.UpperBoundValues()

	require.NotContains(t, f.ValueCounts(), id("id"))
	require.NotContains(t, f.ColumnSizes(), id("id"))
	require.NotContains(t, lower, id("id"))
	require.Contains(t, f.ValueCounts(), id("body"))
	require.NotContains(t, lower, id("body"))
	require.Equal(t, long, string(lower[id("s.k")]))
	require.Equal(t, long, string(upper[id("s.k")]))
	require.NotContains(t, lower, id("l.element"), "bounds of elements")
	require.Contains(t, f.ValueCounts(), id("l.element"))
	require.NotContains(t, lower, id("m.key"))
	require.NotContains(t, lower, id("d"), "NaN is no bound")
	require.Equal(t, make([]byte, 8), upper[id("d")])

	f = goEntries(t, 2, write(t, layout(t, 2, nil), dataFile(l, "a")))[0].DataFile()
	require.Equal(t, "a very long stri", string(f.LowerBoundValues()[id("body")]))
	require.Equal(t, "a very long strj", string(f.UpperBoundValues()[id("body")]))
}

func TestWriter_HeaderIsTheTablesOwn(t *testing.T) { // X11
	l := layout(t, 2, nil)
	f, err := avro.Open(write(t, l, dataFile(l, "a")).Data)
	require.NoError(t, err)
	require.Equal(t, "data", f.Meta["content"])
	require.Equal(t, "2", f.Meta["format-version"])
	require.Equal(t, "0", f.Meta["schema-id"])
	require.Equal(t, "0", f.Meta["partition-spec-id"])
	require.JSONEq(t, string(l.Schema.JSON), f.Meta["schema"])
	require.Equal(t, string(l.Spec.JSON), f.Meta["partition-spec"])
	var fields []icebergo.PartitionField
	require.NoError(t, json.Unmarshal([]byte(f.Meta["partition-spec"]), &fields))
	require.Len(t, fields, 2)
}

func TestWriter_PartitionNamesBecomeAvroNames(t *testing.T) { // V8, V3
	for name, want := range map[string]string{
		"a key": "a_x20key", "😎": "_xD83D_xDE0E", "a.b": "a_x2Eb", "a/b": "a_x2Fb", "9x": "_9x", "data#1": "data_x231", "plain_9": "plain_9", "größe": "gr_xF6_xDFe", "": "_",
	} {
		require.Equal(t, want, avroName(name))
	}
	require.Equal(t, []string{"a_x20b", "a_x20b_1001", "_"}, avroNames([]partitionField{{id: 1000, name: "a b"}, {id: 1001, name: "a_x20b"}, {id: 1002}}))

	str := prim(planv1.TypeKind_TYPE_KIND_STRING)
	fields := []*planv1.Field{{Name: "a key", Type: str}, {Name: "😎", Type: str}, {Name: "a.b", Type: str}, {Name: "9x", Type: str}}
	meta.AssignIDs(fields)
	schema, err := meta.NewSchema(0, fields)
	require.NoError(t, err)
	var clauses []meta.Clause
	for _, f := range fields {
		clauses = append(clauses, meta.Clause{Column: f.GetName(), Transform: meta.Transform{Kind: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}})
	}
	spec, err := meta.NewSpec(schema, clauses)
	require.NoError(t, err)
	parts, err := spec.Partition(schema)
	require.NoError(t, err)
	tuple := []*planv1.Value{{Kind: &planv1.Value_String_{String_: "1"}}, {}, {Kind: &planv1.Value_String_{}}, {Kind: &planv1.Value_String_{String_: "4"}}}
	p := write(t, Layout{Version: 2, Schema: schema, Spec: spec, Partition: parts}, &planv1.DataFile{
		Path: "p", Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 1, SizeBytes: 1, Partition: tuple,
	})
	require.Equal(t, map[int]any{1000: "1", 1001: nil, 1002: "", 1003: "4"}, goEntries(t, 2, p)[0].DataFile().Partition())
}

func TestWriter_SummariesOfPartitions(t *testing.T) { // V10, V11, V5
	l := layout(t, 2, nil)
	p := write(t, l, func() *planv1.DataFile {
		f := dataFile(l, "a")
		f.Partition = []*planv1.Value{str(""), num(0)}
		return f
	}(),
		func() *planv1.DataFile {
			f := dataFile(l, "b")
			f.Partition = []*planv1.Value{str("null"), num(3)}
			return f
		}())
	require.Equal(t, FieldSummary{ContainsNaN: ptr(false), Lower: []byte{}, Upper: []byte("null")}, p.Partitions[0])
	require.Equal(t, FieldSummary{ContainsNaN: ptr(false), Lower: []byte{0, 0, 0, 0}, Upper: []byte{3, 0, 0, 0}}, p.Partitions[1])

	p = write(t, l, func() *planv1.DataFile {
		f := dataFile(l, "a")
		f.Partition = []*planv1.Value{{}, num(1)}
		f.Columns = nil
		return f
	}())
	require.True(t, p.Partitions[0].ContainsNull)
	require.Nil(t, p.Partitions[0].Lower)

	s := newSummarizers([]*planv1.PartitionField{{ResultType: prim(planv1.TypeKind_TYPE_KIND_FLOAT64)}})
	for _, v := range []float64{math.NaN(), math.Copysign(0, -1), 1} {
		s[0].add(dbl(v))
	}
	got := s[0].summary()
	require.True(t, *got.ContainsNaN)
	require.Equal(t, byte(0x80), got.Lower[7], "-0.0")
}

func TestWriter_RefusesFilesThatDoNotFit(t *testing.T) { // S66, C21
	l := layout(t, 2, nil)
	id := func(p string) int32 { return l.Schema.Lookup(p).Field.GetId() }
	for want, change := range map[string]func(*planv1.DataFile){
		"no path":                           func(f *planv1.DataFile) { f.Path = "" },
		"only Parquet":                      func(f *planv1.DataFile) { f.Format = 0 },
		"-1 rows":                           func(f *planv1.DataFile) { f.RecordCount = -1 },
		"in 0 bytes":                        func(f *planv1.DataFile) { f.SizeBytes = 0 },
		"1 partition values where the spec": func(f *planv1.DataFile) { f.Partition = f.Partition[:1] },
		"value does not fit":                func(f *planv1.DataFile) { f.Partition[0] = num(1) },
		"bucket 4 of 4":                     func(f *planv1.DataFile) { f.Partition[1] = num(4) },
		"bucket -1 of 4":                    func(f *planv1.DataFile) { f.Partition[1] = num(-1) },
		`partition field "id_bucket": it is NULL`: func(f *planv1.DataFile) { f.Partition[1] = &planv1.Value{} },
		"field id 99":                          func(f *planv1.DataFile) { f.Columns[0].FieldId = 99 },
		"metrics given twice":                  func(f *planv1.DataFile) { f.Columns[0] = f.Columns[1] },
		"a count of -1":                        func(f *planv1.DataFile) { f.Columns[1].NullCount = ptr(int64(-1)) },
		"column id: 2 NULL values":             func(f *planv1.DataFile) { f.Columns[0].NullCount = ptr(int64(2)) },
		"11 NULL and 0 NaN among 10 values":    func(f *planv1.DataFile) { f.Columns[1].NullCount = ptr(int64(11)) },
		"column body: 9 values in 10 rows":     func(f *planv1.DataFile) { f.Columns[1].ValueCount = ptr(int64(9)) },
		"column id: bound: value does not fit": func(f *planv1.DataFile) { f.Columns[0].Lower.Value = str("1") },
		"lower bound is above":                 func(f *planv1.DataFile) { f.Columns[0] = metricsOf(id("id"), 10, 0, num(2), num(1)) },
		"split offset 1000":                    func(f *planv1.DataFile) { f.SplitOffsets = []int64{4, 1000} },
		"split offset 3":                       func(f *planv1.DataFile) { f.SplitOffsets = []int64{4, 3} },
		"sort order -1":                        func(f *planv1.DataFile) { f.SortOrderId = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			w, err := NewWriter(l)
			require.NoError(t, err)
			f := dataFile(l, "a")
			change(f)
			err = w.Add(f)
			require.ErrorIs(t, err, ErrRefused)
			require.ErrorContains(t, err, want)
			// The writer is as it was.
			require.NoError(t, w.Add(dataFile(l, "b")))
			p, err := w.Finish()
			require.NoError(t, err)
			require.Len(t, goEntries(t, 2, p), 1)
		})
	}
}

func TestWriter_RefusesAPathTwice(t *testing.T) { // C21
	l := layout(t, 2, nil)
	w, err := NewWriter(l)
	require.NoError(t, err)
	require.NoError(t, w.Add(dataFile(l, "a")))
	_, err = w.Finish()
	require.NoError(t, err)
	require.ErrorIs(t, w.Add(dataFile(l, "a")), ErrRefused, "in the next manifest of the same stage")
}

func TestWriter_KnowsWhichColumnsMayBeNull(t *testing.T) { // C29, V6
	l := layout(t, 2, map[string]string{"d": "none"})
	w, err := NewWriter(l)
	require.NoError(t, err)
	require.NoError(t, w.Add(dataFile(l, "a")))
	id := func(p string) int32 { return l.Schema.Lookup(p).Field.GetId() }
	require.Equal(t, []int32{id("body"), id("s.k")}, w.MayHaveNulls(), "d is known to have none, whatever its mode; elements are never known")
	f := dataFile(l, "b")
	f.Columns = nil
	require.NoError(t, w.Add(f))
	require.Contains(t, w.MayHaveNulls(), id("d"))
}

func TestWriter_CountsPartitions(t *testing.T) {
	l := layout(t, 2, nil)
	w, err := NewWriter(l)
	require.NoError(t, err)
	for i := range maxTuples + 2 {
		f := dataFile(l, strings.Repeat("x", i+1))
		f.Partition = []*planv1.Value{str(strings.Repeat("y", i%3)), num(int64(i % 4))}
		require.NoError(t, w.Add(f))
	}
	require.Len(t, w.Tuples(), 12)
}

func sampleManifest() Manifest {
	return Manifest{
		Path: "file:///t/m.avro", Length: 5, SpecID: 3, Content: ContentDeletes, SequenceNumber: 9, MinSequenceNumber: 4, SnapshotID: ptr(int64(66)),
		Files: Counts{ptr(int64(1)), ptr(int64(2)), ptr(int64(3))}, Rows: Counts{ptr(int64(10)), ptr(int64(20)), ptr(int64(30))},
		Partitions: []FieldSummary{{ContainsNull: true, Lower: []byte{}, Upper: []byte("z")}, {ContainsNaN: ptr(true)}}, Key: []byte{1},
	}
}

func TestList_RoundTripsAndIcebergGoReadsIt(t *testing.T) {
	for _, version := range []int{1, 2, 3} {
		in := sampleManifest()
		if version == 1 {
			in.Content, in.SequenceNumber, in.MinSequenceNumber = 0, 0, 0
		}
		raw, _, err := WriteList(ListHeader{Version: version, SnapshotID: 7, ParentID: ptr(int64(6)), SequenceNumber: 12}, []Manifest{in})
		require.NoError(t, err)
		out, err := ReadList(raw)
		require.NoError(t, err)
		require.Equal(t, []Manifest{in}, out)

		theirs, err := icebergo.ReadManifestList(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Len(t, theirs, 1)
		require.Equal(t, in.Path, theirs[0].FilePath())
		require.Equal(t, version, theirs[0].Version())
		require.EqualValues(t, 66, theirs[0].SnapshotID())
		require.EqualValues(t, 20, theirs[0].ExistingRows())
		require.Len(t, theirs[0].Partitions(), 2)
		require.NotNil(t, theirs[0].Partitions()[0].LowerBound, "a bound of no bytes is a bound")
		require.Nil(t, theirs[0].Partitions()[1].LowerBound)
	}
}

func TestList_NumbersRowsInVersion3(t *testing.T) { // C31
	data := sampleManifest()
	data.Content = ContentData
	numbered := data
	numbered.FirstRowID = ptr(int64(5))
	raw, ids, err := WriteList(ListHeader{Version: 3, SnapshotID: 7, SequenceNumber: 2, FirstRowID: 100}, []Manifest{data, sampleManifest(), numbered, data})
	require.NoError(t, err)
	require.EqualValues(t, 60, ids, "added and existing rows of the two that had none")
	out, err := ReadList(raw)
	require.NoError(t, err)
	require.EqualValues(t, 100, *out[0].FirstRowID)
	require.Nil(t, out[1].FirstRowID, "deletes have no row ids")
	require.EqualValues(t, 5, *out[2].FirstRowID)
	require.EqualValues(t, 130, *out[3].FirstRowID)
}

func TestList_RefusesWhatItCannotSay(t *testing.T) {
	m := sampleManifest()
	m.Files.Added = nil
	_, _, err := WriteList(ListHeader{Version: 2, SnapshotID: 7}, []Manifest{m})
	require.ErrorContains(t, err, "counts are not known")
	_, _, err = WriteList(ListHeader{Version: 1, SnapshotID: 7}, []Manifest{m})
	require.NoError(t, err, "version 1 lets them be absent")
	m.SnapshotID = nil
	_, _, err = WriteList(ListHeader{Version: 1, SnapshotID: 7}, []Manifest{m})
	require.ErrorContains(t, err, "not known")
}

// TestList_OfOtherWriters: no format-version in the header (DuckDB, X9), names of old releases, no ids, and counts left out.
func TestList_OfOtherWriters(t *testing.T) {
	in := sampleManifest()
	w, err := avro.NewWriter(listSchema(2), nil)
	require.NoError(t, err)
	row, err := appendManifest(w.Row(), 2, &in, nil)
	require.NoError(t, err)
	require.NoError(t, w.Done(row))
	raw, err := w.Bytes()
	require.NoError(t, err)
	out, err := ReadList(raw)
	require.NoError(t, err)
	require.Equal(t, []Manifest{in}, out, "sequence numbers included")

	old := `{"type":"record","name":"manifest_file","fields":[{"name":"manifest_path","type":"string"},{"name":"manifest_length","type":"long"},{"name":"partition_spec_id","type":"int"},
		{"name":"added_snapshot_id","type":["null","long"]},{"name":"added_data_files_count","type":["null","int"]}]}`
	w, err = avro.NewWriter(old, nil)
	require.NoError(t, err)
	row = avro.AppendLong(avro.AppendLong(avro.AppendString(w.Row(), "p"), 5), 0)
	row = avro.AppendLong(avro.AppendSome(avro.AppendNull(row)), 3)
	require.NoError(t, w.Done(row))
	raw, err = w.Bytes()
	require.NoError(t, err)
	out, err = ReadList(raw)
	require.NoError(t, err)
	require.Equal(t, []Manifest{{Path: "p", Length: 5, Files: Counts{Added: ptr(int64(3))}}}, out)
}

func TestEntries_ReadAndCounted(t *testing.T) {
	l := layout(t, 2, nil)
	p := write(t, l, dataFile(l, "a"), func() *planv1.DataFile { f := dataFile(l, "b"); f.Columns = f.Columns[:1]; return f }())
	var paths []string
	require.NoError(t, ReadEntries(p.Data, true, func(e *Entry) error {
		paths = append(paths, e.Path)
		require.EqualValues(t, StatusAdded, e.Status)
		require.Equal(t, "PARQUET", e.Format)
		require.EqualValues(t, 10, e.Records)
		require.EqualValues(t, 1000, e.Size)
		require.Equal(t, []int64{4, 500}, e.SplitOffsets)
		v, ok, err := e.Partition(1000, prim(planv1.TypeKind_TYPE_KIND_STRING))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "x", v.GetString_())
		_, ok, err = e.Partition(1234, prim(planv1.TypeKind_TYPE_KIND_STRING))
		require.NoError(t, err)
		require.False(t, ok)
		_, _, err = e.Partition(1000, prim(planv1.TypeKind_TYPE_KIND_INT32))
		require.Error(t, err)
		has, known := e.HasColumn(2)
		require.True(t, known)
		require.Equal(t, e.Path == "a", has)
		return nil
	}))
	require.Equal(t, []string{"a", "b"}, paths)
	files, rows, err := Count(p.Data)
	require.NoError(t, err)
	require.EqualValues(t, 2, *files.Added)
	require.EqualValues(t, 20, *rows.Added)
	require.Zero(t, *files.Deleted)
}

// FuzzRead: no bytes make the readers panic.
func FuzzRead(f *testing.F) {
	raw, _, err := WriteList(ListHeader{Version: 3, SnapshotID: 7}, []Manifest{sampleManifest()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	l := layout(f, 2, nil)
	f.Add(write(f, l, dataFile(l, "a")).Data)
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = ReadList(raw)
		_ = ReadEntries(raw, true, func(e *Entry) error {
			_, _ = e.HasColumn(1)
			_, _, _ = e.Partition(1000, prim(planv1.TypeKind_TYPE_KIND_UUID))
			return nil
		})
	})
}

// BenchmarkWriter is the sink's own share of staging: checks, encoding, compression.
func BenchmarkWriter(b *testing.B) {
	l := layout(b, 2, nil)
	files := make([]*planv1.DataFile, 100_000)
	for i := range files {
		files[i] = dataFile(l, fmt.Sprintf("file:///warehouse/t/data/job/0/0/attempt/0-0-attempt-%d.parquet", i))
		files[i].Partition = []*planv1.Value{str("x"), num(int64(i % 4))}
	}
	b.ReportAllocs()
	for b.Loop() {
		w, err := NewWriter(l)
		require.NoError(b, err)
		for _, f := range files {
			if err := w.Add(f); err != nil {
				b.Fatal(err)
			}
		}
		p, err := w.Finish()
		require.NoError(b, err)
		b.ReportMetric(float64(len(p.Data)), "bytes")
	}
}
