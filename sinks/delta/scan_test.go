package delta_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/delta/log"
)

// log writes a version as another writer would.
func (b *bench) foreign(version int64, lines string) {
	b.host.Put(location+"/"+log.CommitName(version), []byte(lines))
}

const foreignTable = `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}
{"metaData":{"id":"1","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{}}}
`

func matched(files map[string]*sinkv1.ScanFile) (out []string) {
	for name, f := range files {
		if f.GetMatched() {
			out = append(out, name)
		}
	}
	return out
}

func names(files map[string]*sinkv1.ScanFile) (out []string) {
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestPlanScan_LeavesOutWhatTheFilterCannotTouch(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	bare := file("bare", 0, str("x"))
	bare.Columns = nil
	b.add(file("a", 0, str("x")), file("b", 10, str("y")), file("c", 20, &planv1.Value{}), bare)
	for name, tc := range map[string]struct {
		filter        *planv1.Predicate
		files, wholly []string
	}{
		"partition":       {compares(planv1.CompareOp_COMPARE_OP_EQ, 2, str("x")), []string{"a", "bare"}, []string{"a", "bare"}},
		"no partition":    {compares(planv1.CompareOp_COMPARE_OP_NE, 2, str("x")), []string{"b"}, []string{"b"}},
		"statistics":      {compares(planv1.CompareOp_COMPARE_OP_LT, 1, integer(10)), []string{"a", "bare"}, []string{"a"}},
		"within a file":   {compares(planv1.CompareOp_COMPARE_OP_LT, 1, integer(15)), []string{"a", "b", "bare"}, []string{"a"}},
		"NULL":            {&planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: 2}}}, []string{"c"}, []string{"c"}},
		"NULL statistics": {&planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: 1}}}, []string{"bare"}, nil},
		"in":              {compares(planv1.CompareOp_COMPARE_OP_IN, 1, integer(3), integer(25)), []string{"a", "bare", "c"}, nil},
		"prefix":          {compares(planv1.CompareOp_COMPARE_OP_STARTS_WITH, 2, str("y")), []string{"b"}, []string{"b"}},
		"not": {
			&planv1.Predicate{Kind: &planv1.Predicate_Not{Not: compares(planv1.CompareOp_COMPARE_OP_EQ, 2, str("x"))}},
			[]string{"b"},
			[]string{"b"},
		},
		"or": {&planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: []*planv1.Predicate{
			compares(planv1.CompareOp_COMPARE_OP_EQ, 2, str("y")), compares(planv1.CompareOp_COMPARE_OP_GE, 1, integer(25)),
		}}}}, []string{"b", "bare", "c"}, []string{"b"}},
		"and": {&planv1.Predicate{Kind: &planv1.Predicate_All{All: &planv1.Predicates{Terms: []*planv1.Predicate{
			compares(planv1.CompareOp_COMPARE_OP_EQ, 2, str("x")), compares(planv1.CompareOp_COMPARE_OP_GE, 1, integer(25)),
		}}}}, []string{"bare"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			first, files, err := b.scan(&sinkv1.PlanScanRequest{Filter: tc.filter})
			require.NoError(t, err)
			require.EqualValues(t, 4, first.GetTotalFiles())
			require.Equal(t, tc.files, names(files))
			require.ElementsMatch(t, tc.wholly, matched(files))
		})
	}
	_, _, err := b.scan(&sinkv1.PlanScanRequest{Filter: compares(planv1.CompareOp_COMPARE_OP_EQ, 9, integer(1))})
	require.ErrorContains(t, err, "condition does not fit the table")
}

func TestPlanScan_TimeTravel(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0))
	b.add(file("b", 0))
	at := func(req *sinkv1.PlanScanRequest) []string {
		_, files, err := b.scan(req)
		require.NoError(t, err)
		return names(files)
	}
	require.Equal(t, []string{"a"}, at(&sinkv1.PlanScanRequest{Version: "1"}))
	require.Equal(t, []string{"a", "b"}, at(&sinkv1.PlanScanRequest{Version: "2"}))
	now := time.Now().Add(time.Hour).UnixMilli()
	require.Equal(t, []string{"a", "b"}, at(&sinkv1.PlanScanRequest{AsOfMillis: &now}))
	for says, req := range map[string]*sinkv1.PlanScanRequest{
		"no such version": {Version: "7"}, "is not a whole number": {Version: "x"}, "no branches": {Ref: "b"}, "no such version of the": {AsOfMillis: new(int64)},
	} {
		_, _, err := b.scan(req)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, sdk.ErrPermanent)
	}
}

// Deletion vectors come as files have them, wherever they lie. The example of the UUID is that of the protocol's text.
func TestPlanScan_DeletionVectors(t *testing.T) {
	b := newBench(t)
	add := func(name, vector string) string {
		return `{"add":{"path":"` + name + `","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":10}","deletionVector":` + vector + "}}\n"
	}
	b.foreign(0, foreignTable+
		add("u", `{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}`)+
		add("p", `{"storageType":"p","pathOrInlineDv":"file:///elsewhere/x.bin","offset":1,"sizeInBytes":40,"cardinality":6}`)+
		add("i", `{"storageType":"i","pathOrInlineDv":"wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L","sizeInBytes":40,"cardinality":6}`))
	_, files, err := b.scan(&sinkv1.PlanScanRequest{})
	require.NoError(t, err)
	one := func(name string) *planv1.DeleteFile {
		require.Len(t, files[name].GetDeletes(), 1)
		d := files[name].GetDeletes()[0]
		require.Equal(t, planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, d.GetContent())
		require.EqualValues(t, 6, d.GetRecordCount())
		return d
	}
	u := one("u")
	require.Equal(t, location+"/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin", u.GetPath())
	require.EqualValues(t, 4, u.GetContentOffset())
	require.EqualValues(t, 48, u.GetContentSize())
	require.Equal(t, "file:///elsewhere/x.bin", one("p").GetPath())
	inline := one("i").GetInline()
	require.Len(t, inline, 48)
	require.EqualValues(t, 40, binary.BigEndian.Uint32(inline))
	require.Equal(t, []byte{0x64, 0x39, 0xd3, 0xd0}, inline[4:8], "as the text begins")
	require.Equal(t, crc32.ChecksumIEEE(inline[4:44]), binary.BigEndian.Uint32(inline[44:]))

	for _, vector := range []string{
		`{"storageType":"u","pathOrInlineDv":"short","offset":1,"sizeInBytes":40,"cardinality":6}`,
		`{"storageType":"i","pathOrInlineDv":"~~~~~","sizeInBytes":4,"cardinality":6}`, `{"storageType":"i","pathOrInlineDv":"0000","sizeInBytes":4,"cardinality":6}`,
	} {
		bad := newBench(t)
		bad.foreign(0, foreignTable+add("f", vector))
		_, _, err := bad.scan(&sinkv1.PlanScanRequest{})
		require.ErrorContains(t, err, "data file f")
		require.ErrorIs(t, err, sdk.ErrPermanent)
	}
}

// X13: what a table asks of writers and the sink cannot do is refused by feature and column; a table that only could ask for it is written.
func TestX13Features(t *testing.T) {
	column := func(metadata string) string {
		text, err := json.Marshal(`{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":` + metadata + `}]}`)
		require.NoError(t, err)
		return string(text)
	}
	table := func(writer int, metadata, configuration string) string {
		return `{"protocol":{"minReaderVersion":1,"minWriterVersion":` + string(rune('0'+writer)) + `}}
{"metaData":{"id":"1","format":{"provider":"parquet","options":{}},"schemaString":` + column(metadata) + `,"partitionColumns":[],"configuration":` + configuration + "}}\n"
	}
	for says, lines := range map[string]string{
		"generatedColumns (column id": table(4, `{"delta.generationExpression":"1"}`, `{}`),
		"checkConstraints":            table(3, `{}`, `{"delta.constraints.c":"id > 1"}`),
		"columnMapping":               table(5, `{}`, `{"delta.columnMapping.mode":"name"}`),
	} {
		b := newBench(t)
		b.foreign(0, lines)
		_, err := b.tryPrepare(appending())
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, sdk.ErrPermanent)
	}
	b := newBench(t)
	b.foreign(0, table(4, `{"comment":"c","x":1.50}`, `{}`))
	b.add(file("a", 0))
	for _, a := range b.actions(1) {
		require.Nil(t, a.Metadata)
	}
}

// Columns by which others cluster the rows have statistics, however many come before them.
func TestClusteredColumnsHaveStatistics(t *testing.T) {
	b := newBench(t)
	d := definition(false)
	d.Properties = map[string]string{"delta.dataSkippingNumIndexedCols": "0"}
	b.create(d)
	require.Empty(t, b.prepare(appending()).GetFiles().GetMetrics())
	b.foreign(1, `{"domainMetadata":{"domain":"delta.clustering","configuration":"{\"clusteringColumns\":[[\"id\"]]}","removed":false}}`)
	require.Len(t, b.prepare(appending()).GetFiles().GetMetrics(), 1)
	b.add(file("a", 7))
	require.Contains(t, *b.actions(2)[2].Add.Stats, `"minValues":{"id":7}`)
	spec := b.prepare(&sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REPLACE, Definition: table(field("other", planv1.TypeKind_TYPE_KIND_DATE))})
	b.land(spec, b.unit(spec, nil))
	b.restart()
	require.Len(t, b.prepare(appending()).GetFiles().GetMetrics(), 1, "of the new column: nothing is clustered any more")
}

// Of a file without statistics nobody knows the rows: the count is 0, as the scheduler and executors take it, and nothing is left out.
func TestPlanScan_WithoutStatistics(t *testing.T) {
	b := newBench(t)
	b.foreign(0, foreignTable+`{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}`+"\n")
	_, files, err := b.scan(&sinkv1.PlanScanRequest{Filter: compares(planv1.CompareOp_COMPARE_OP_EQ, 1, integer(1))})
	require.NoError(t, err)
	require.Zero(t, files["x"].GetRecordCount())
	require.False(t, files["x"].GetMatched())
}
