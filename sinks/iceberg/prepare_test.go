package iceberg

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

func prepare(t testing.TB, h *testHost, c sinkv1.SinkClient) (*planv1.WriteSpec, error) {
	t.Helper()
	resp, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	return resp.GetSpec(), err
}

func TestPrepareWrite_SaysHowFilesHaveToLook(t *testing.T) { // I1
	h := newHost(t, "spec")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{
		Schema:    &planv1.Schema{Fields: []*planv1.Field{required(field("id", kLong)), field("ts", kTS), field("s", kStr)}},
		Partition: []*sinkv1.PartitionClause{clause("ts", tDay), clause("s", tBucket, 8)},
		Sort:      []*sinkv1.SortClause{{Column: "s", Descending: true}},
	})
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	require.Equal(t, h.table().Metadata().TableUUID().String(), w.GetTableUuid())
	require.Equal(t, h.location()+"/data", w.GetDataLocation())
	require.EqualValues(t, 2, w.GetFormatVersion())
	require.Empty(t, w.GetBaseVersion())
	require.Empty(t, w.GetWarnings())
	require.True(t, w.GetSchema().GetFields()[0].GetRequired())
	require.EqualValues(t, 3, w.GetSchema().GetFields()[2].GetId())
	require.Equal(t, []string{"ts_day", "s_bucket"}, []string{w.GetPartition()[0].GetName(), w.GetPartition()[1].GetName()})
	require.Equal(t, kDate, w.GetPartition()[0].GetResultType().GetKind())
	require.EqualValues(t, 2, w.GetPartition()[0].GetSourceId())
	require.EqualValues(t, 1001, w.GetPartition()[1].GetFieldId())
	require.EqualValues(t, 8, w.GetPartition()[1].GetParam())
	require.EqualValues(t, 1, w.GetSortOrderId())
	require.True(t, w.GetSort()[0].GetDescending())
	require.EqualValues(t, 512<<20, w.GetFiles().GetTargetFileSizeBytes())
	require.Equal(t, "zstd", w.GetFiles().GetCodec())
	require.EqualValues(t, 16, w.GetFiles().GetMetrics()[1].GetLength())

	// Another writer's columns and ids are what counts next time.
	h.alterSchema(`{"id":1,"name":"key","required":true,"type":"long"}`, `{"id":2,"name":"ts","required":false,"type":"timestamp"}`,
		`{"id":3,"name":"s","required":false,"type":"string"}`, `{"id":9,"name":"new","required":false,"type":{"type":"list","element-id":10,"element-required":false,"element":"int"}}`)
	w, err = prepare(t, h, c)
	require.NoError(t, err)
	require.EqualValues(t, 1, w.GetSchemaId())
	require.Equal(t, "key", w.GetSchema().GetFields()[0].GetName())
	require.EqualValues(t, 10, w.GetSchema().GetFields()[3].GetType().GetFields()[0].GetId())
}

func TestPrepareWrite_HonoursProperties(t *testing.T) {
	h := newHost(t, "props")
	c := h.client(New())
	createTable(t, h, c, simple(map[string]string{
		propTargetFileSize: "1048576", propCodec: "GZIP", propCodecLevel: "9", propRowGroupBytes: "1000000", propRowGroupRows: "5000", propPageVersion: "v2",
		propDataPath: "file:///elsewhere/", propManifestSize: "100", propDistribution: "HASH",
	}))
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	require.Empty(t, w.GetWarnings())
	f := w.GetFiles()
	require.Equal(t, []any{int64(1048576), "gzip", int32(9), int64(1000000), int64(5000), "V2"},
		[]any{f.GetTargetFileSizeBytes(), f.GetCodec(), f.GetCodecLevel(), f.GetRowGroupBytes(), f.GetRowGroupRows(), f.GetParquetVersion()})
	require.Equal(t, "file:///elsewhere", w.GetDataLocation())
	require.Equal(t, "hash", w.GetDistribution())
}

func TestPrepareWrite_NamesWhatItCannotHonour(t *testing.T) {
	h := newHost(t, "warn")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	bad := map[string]string{
		propTargetFileSize: "lots", propCodec: "lzo", propCodecLevel: "99", propPageVersion: "v7", propFormat: "orc", propDistribution: "sorted",
		"write.object-storage.enabled": "true", "write.metadata.path": "file:///m", "write.parquet.bloom-filter-enabled.column.id": "true", "write.parquet.page-size-bytes": "5",
		"commit.manifest.min-count-to-merge": "few", "commit.retry.num-retries": "3", "write.parquet.made-up": "1", propMetricsDefault: "sometimes", propMetricsColumn + "nope": "full",
	}
	silent := map[string]string{
		"write.spark.accept-any-schema": "true", "write.spark.fanout.enabled": "true", "write.delete.mode": "copy-on-write", "owner": "me", "history.expire.max-snapshot-age-ms": "5",
		"read.split.target-size": "1", "write.metadata.delete-after-commit.enabled": "true", "write.summary.partition-limit": "0",
		"write.parquet.bloom-filter-enabled.column.name": "false", "commit.manifest-merge.enabled": "true", "write.wap.enabled": "true",
	}
	var kv []string
	for _, m := range []map[string]string{bad, silent} {
		for k, v := range m {
			kv = append(kv, k, v)
		}
	}
	h.setProperties(kv...)
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	for k, v := range bad {
		want := "table property " + k + "=" + v + " is not honoured: "
		require.True(t, slices.ContainsFunc(w.GetWarnings(), func(s string) bool { return strings.HasPrefix(s, want) }), "no warning of %s in %q", k, w.GetWarnings())
	}
	require.Len(t, w.GetWarnings(), len(bad))
	require.Equal(t, "zstd", w.GetFiles().GetCodec())
	require.EqualValues(t, defaultTargetFileSize, w.GetFiles().GetTargetFileSizeBytes())
}

func TestPrepareWrite_MetricsModes(t *testing.T) { // X10
	h := newHost(t, "modes")
	c := h.client(New())
	str, body := &planv1.Type{Kind: kStr}, field("body", kStr)
	createTable(t, h, c, &sinkv1.TableDefinition{
		Schema: &planv1.Schema{Fields: []*planv1.Field{
			field("id", kLong), body,
			{Name: "s", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{{Name: "k", Type: str}, {Name: "j", Type: str}}}},
			{Name: "m", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{{Type: str}, {Type: str}}}},
			{Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Type: str}}}},
		}},
		Sort:       []*sinkv1.SortClause{{Column: "id"}},
		Properties: map[string]string{propMetricsDefault: "none", propMetricsColumn + "body": "counts", propMetricsColumn + "s.k": "full", propMetricsColumn + "m.key": "truncate(5)", propMetricsColumn + "l.element": "counts"},
	})
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	require.Empty(t, w.GetWarnings())
	require.Equal(t, map[string]string{
		"id": "TRUNCATE 16", "body": "COUNTS 0", "s.k": "FULL 0", "s.j": "NONE 0", "m.key": "COUNTS 0", "m.value": "NONE 0", "l.element": "COUNTS 0",
	}, modes(t, w), "a sorted column keeps its bounds; elements have none")

	wide := newHost(t, "wide")
	c = wide.client(New())
	var fields []*planv1.Field
	for i := range 150 {
		fields = append(fields, field(fmt.Sprintf("c%03d", i), kLong))
	}
	fields[3] = &planv1.Field{Name: "c003", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("in", kLong)}}}
	createTable(t, wide, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: fields}})
	w, err = prepare(t, wide, c)
	require.NoError(t, err)
	got := modes(t, w)
	require.Len(t, got, 100, "max-inferred-column-defaults")
	require.Contains(t, got, "c100")
	require.NotContains(t, got, "c101")
	require.NotContains(t, got, "c003.in", "a level's own columns come first")
	wide.setProperties(propMetricsMax, "5")
	w, err = prepare(t, wide, c)
	require.NoError(t, err)
	require.Len(t, modes(t, w), 5)
	wide.setProperties(propMetricsDefault, "counts")
	w, err = prepare(t, wide, c)
	require.NoError(t, err)
	require.Len(t, modes(t, w), 150, "an explicit default has no limit")
}

func modes(t *testing.T, w *planv1.WriteSpec) map[string]string {
	t.Helper()
	schema, err := meta.NewSchema(0, w.GetSchema().GetFields())
	require.NoError(t, err)
	out := map[string]string{}
	for id, m := range w.GetFiles().GetMetrics() {
		out[schema.Node(id).Path] = fmt.Sprint(m.GetKind().String()[len("METRICS_KIND_"):], " ", m.GetLength())
	}
	return out
}

func TestPrepareWrite_RefusesByName(t *testing.T) {
	h := newHost(t, "gone")
	c := h.client(New())
	_, err := prepare(t, h, c)
	refused(t, err, sdk.NotFound, "c.n.gone")
	createTable(t, h, c, simple(nil))
	_, err = c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref()})
	refused(t, err, sdk.Permanent, "WRITE_MODE_UNSPECIFIED")

	for want, change := range map[string]func(map[string]any){
		"it is encrypted":                                func(m map[string]any) { m["properties"] = map[string]any{"encryption.key-id": "k"} },
		"format version 9":                               func(m map[string]any) { m["format-version"] = 9 },
		"column name: type variant":                      func(m map[string]any) { setColumnType(m, "variant") },
		"type timestamp_ns needs table format version 3": func(m map[string]any) { setColumnType(m, "timestamp_ns") },
		"has been dropped from the schema": func(m map[string]any) { // C27
			m["partition-specs"] = []any{map[string]any{"spec-id": 0, "fields": []any{map[string]any{"source-id": 77, "field-id": 1000, "name": "was", "transform": "identity"}}}}
		},
		`transform "zorder"`: func(m map[string]any) {
			m["partition-specs"] = []any{map[string]any{"spec-id": 0, "fields": []any{map[string]any{"source-id": 1, "field-id": 1000, "name": "z", "transform": "zorder"}}}}
		},
		"several source columns": func(m map[string]any) {
			m["partition-specs"] = []any{map[string]any{"spec-id": 0, "fields": []any{map[string]any{"source-ids": []int{1, 2}, "field-id": 1000, "name": "z", "transform": "bucket[4]"}}}}
		},
	} {
		t.Run(want, func(t *testing.T) {
			h := newHost(t, "odd")
			c := h.client(New())
			createTable(t, h, c, simple(nil))
			h.rewriteMetadata(change)
			raw := &rawHost{t: t, h: h}
			_, err := New().prepare(t.Context(), raw, &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
			refused(t, err, sdk.Permanent, want, "c.n.odd")
		})
	}
}

func setColumnType(m map[string]any, typ string) {
	schema := m["schemas"].([]any)[0].(map[string]any)
	schema["fields"].([]any)[1].(map[string]any)["type"] = typ
}

func TestPrepareWrite_UnusableSortOrderIsAWarning(t *testing.T) {
	h := newHost(t, "sorted")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Sort: []*sinkv1.SortClause{{Column: "name"}}})
	h.rewriteMetadata(func(m map[string]any) {
		m["sort-orders"].([]any)[0].(map[string]any)["fields"].([]any)[0].(map[string]any)["transform"] = "zorder"
	})
	w, err := New().prepare(t.Context(), &rawHost{t: t, h: h}, &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	require.NoError(t, err)
	require.Zero(t, w.GetSpec().GetSortOrderId())
	require.Contains(t, w.GetSpec().GetWarnings()[0], "sort order 1 is not honoured")
}

func TestPrepareWrite_NanosecondsInVersion3(t *testing.T) {
	h := newHost(t, "nanos")
	c := h.client(New())
	nanos := field("t", planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS)
	_, err := c.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Table: h.ref(), Definition: &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{nanos}}}})
	refused(t, err, sdk.Permanent, "column t", "'format-version' to 3")
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{nanos}}, Properties: map[string]string{"format-version": "3"}})
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	require.Equal(t, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, w.GetSchema().GetFields()[0].GetType().GetKind())
}
