package delta_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const (
	benchFiles = 100_000
	benchTasks = 1000
)

// wideDefinition is a table of 16 columns, partitioned by the first.
func wideDefinition() *sinkv1.TableDefinition {
	fields := []*planv1.Field{field("ts", planv1.TypeKind_TYPE_KIND_INT32)}
	for i := range 5 {
		fields = append(fields, field(fmt.Sprint("a", i), planv1.TypeKind_TYPE_KIND_INT64), field(fmt.Sprint("s", i), planv1.TypeKind_TYPE_KIND_STRING), field(fmt.Sprint("d", i), planv1.TypeKind_TYPE_KIND_FLOAT64))
	}
	return &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: fields}, Partition: []*sinkv1.PartitionClause{{Column: "ts", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}}
}

func wideFile(spec *planv1.WriteSpec, k int) *planv1.DataFile {
	f := &planv1.DataFile{
		Path: fmt.Sprintf("%s/data/0190b2a4-7f0e-7000-8000-000000000000/3/%d/1/%06d.parquet", location, k/100, k%100), Format: planv1.FileFormat_FILE_FORMAT_PARQUET,
		RecordCount: 1000, SizeBytes: 4096, Partition: []*planv1.Value{integer(int64(k % 2000))},
	}
	for i, c := range spec.GetSchema().GetFields()[1:] {
		rows, nulls, size := int64(1000), int64(k%3), int64(8000+k)
		low, high := integer(int64(i*k)), integer(int64(i*k+1000))
		switch c.GetType().GetKind() {
		case planv1.TypeKind_TYPE_KIND_STRING:
			low, high = str(fmt.Sprintf("customer name %06d", k)), str(fmt.Sprintf("customer name %06d", k+1000))
		case planv1.TypeKind_TYPE_KIND_FLOAT64:
			low, high = &planv1.Value{Kind: &planv1.Value_Float64{Float64: float64(k) / 7}}, &planv1.Value{Kind: &planv1.Value_Float64{Float64: float64(k+1000) / 7}}
		}
		f.Columns = append(f.Columns, &planv1.ColumnMetrics{
			FieldId: c.GetId(), SizeBytes: &size, ValueCount: &rows, NullCount: &nulls, NanCount: new(int64), Lower: &planv1.Bound{Value: low}, Upper: &planv1.Bound{Value: high},
		})
	}
	return f
}

// wideManifests are the messages of a Stage call of all tasks.
func wideManifests(b *bench, spec *planv1.WriteSpec, job string) []*sinkv1.StageRequest {
	out := []*sinkv1.StageRequest{{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Lease: b.host.Lease, Table: b.ref, Spec: spec, JobId: job}}}}
	chunk := func(c *planv1.ManifestChunk) {
		out = append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
	}
	const each = benchFiles / benchTasks
	for task := range int32(benchTasks) {
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: &planv1.ManifestHeader{
			JobId: job, Task: task, AttemptId: "a", TableUuid: spec.GetTableUuid(), SchemaId: spec.GetSchemaId(), SpecId: spec.GetSpecId(),
		}}})
		files := &planv1.DataFiles{}
		for i := range each {
			files.Files = append(files.Files, wideFile(spec, int(task)*each+i))
		}
		raw, err := proto.Marshal(files)
		require.NoError(b, err)
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: raw}})
		sum := sha256.Sum256(raw)
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: &planv1.ManifestTrailer{Files: each, Rows: each * 1000, Bytes: each * 4096, Sha256: sum[:]}}})
	}
	return append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{
		Manifests: benchTasks, Totals: &sinkv1.Totals{Files: benchFiles, Rows: benchFiles * 1000, Bytes: benchFiles * 4096},
	}}})
}

func (b *bench) stageAll(messages []*sinkv1.StageRequest) *sinkv1.StageResponse {
	s, err := b.sink.Stage(b.Context())
	require.NoError(b, err)
	for _, m := range messages {
		require.NoError(b, s.Send(m))
	}
	resp, err := s.CloseAndRecv()
	require.NoError(b, err)
	return resp
}

func BenchmarkStage100000Files(b *testing.B) {
	t := newBench(b)
	t.create(wideDefinition())
	spec := t.prepare(appending())
	messages := wideManifests(t, spec, "job")
	b.ReportAllocs()
	for b.Loop() {
		t.stageAll(messages)
	}
}

func BenchmarkCommit100000Files(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		t := newBench(b)
		t.create(wideDefinition())
		spec := t.prepare(appending())
		staged := t.stageAll(wideManifests(t, spec, "job"))
		unit := &sinkv1.Unit{JobId: "job", CommitKey: "key", Marker: "0123456789abcdef01234567", Refs: staged.GetRefs(), Totals: staged.GetTotals()}
		b.StartTimer()
		t.land(spec, unit)
	}
}
