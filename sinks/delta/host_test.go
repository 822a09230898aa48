package delta_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
	"github.com/signet-io/signet/plugins/sinktest"
	"github.com/signet-io/signet/sinks/delta"
	"github.com/signet-io/signet/sinks/delta/log"
)

const location = "file:///warehouse/ns/t %41"

// bench is a sink, its host and a table.
type bench struct {
	testing.TB
	host *sinktest.Host
	sink sinkv1.SinkClient
	ref  *sinkv1.TableRef
	jobs int
}

func newBench(t testing.TB) *bench {
	h := sinktest.NewHost(location)
	return &bench{TB: t, host: h, sink: sdktest.NewTestConn(t, delta.New(), h.Register), ref: &sinkv1.TableRef{Catalog: "c", Namespace: []string{"ns"}, Name: "t"}}
}

// restart is the same table with a sink that remembers nothing.
func (b *bench) restart() {
	b.sink = sdktest.NewTestConn(b.TB, delta.New(), b.host.Register)
}

func field(name string, kind planv1.TypeKind) *planv1.Field {
	return &planv1.Field{Name: name, Type: &planv1.Type{Kind: kind}}
}

// definition is a table of an integer and a text, partitioned by p, a text, if it is said so.
func definition(partitioned bool) *sinkv1.TableDefinition {
	d := &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{
		field("id", planv1.TypeKind_TYPE_KIND_INT64), field("p", planv1.TypeKind_TYPE_KIND_STRING),
	}}}
	if partitioned {
		d.Partition = []*sinkv1.PartitionClause{{Column: "p", Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}
	}
	return d
}

func (b *bench) tryCreate(d *sinkv1.TableDefinition) error {
	_, err := b.sink.CreateTable(b.Context(), &sinkv1.CreateTableRequest{Lease: b.host.Lease, Table: b.ref, Definition: d})
	return sdk.FromStatus(err)
}

func (b *bench) create(d *sinkv1.TableDefinition) {
	b.Helper()
	require.NoError(b, b.tryCreate(d))
}

func (b *bench) tryPrepare(req *sinkv1.PrepareWriteRequest) (*planv1.WriteSpec, error) {
	req.Lease, req.Table = b.host.Lease, b.ref
	resp, err := b.sink.PrepareWrite(b.Context(), req)
	return resp.GetSpec(), sdk.FromStatus(err)
}

func (b *bench) prepare(req *sinkv1.PrepareWriteRequest) *planv1.WriteSpec {
	b.Helper()
	spec, err := b.tryPrepare(req)
	require.NoError(b, err)
	return spec
}

func appending() *sinkv1.PrepareWriteRequest {
	return &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_APPEND}
}

func overwriting(scope *planv1.Scope) *sinkv1.PrepareWriteRequest {
	return &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: scope}
}

func integer(i int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: i}} }

func str(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }

// file is a data file of 10 rows with ids from low on.
func file(name string, low int64, partition ...*planv1.Value) *planv1.DataFile {
	count := func(n int64) *int64 { return &n }
	return &planv1.DataFile{
		Path: location + "/" + name, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 100, Partition: partition,
		Columns: []*planv1.ColumnMetrics{{
			FieldId: 1, ValueCount: count(10), NullCount: count(0), Lower: &planv1.Bound{Value: integer(low), Exact: true}, Upper: &planv1.Bound{Value: integer(low + 9), Exact: true},
		}},
	}
}

func (b *bench) tryStage(spec *planv1.WriteSpec, job string, files []*planv1.DataFile, replaced ...*planv1.ReplacedFile) (*sinkv1.StageResponse, error) {
	s, err := b.sink.Stage(b.Context())
	require.NoError(b, err)
	send := func(m *sinkv1.StageRequest) { _ = s.Send(m) } // the reason comes with the answer
	chunk := func(c *planv1.ManifestChunk) {
		send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
	}
	send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Lease: b.host.Lease, Table: b.ref, Spec: spec, JobId: job}}})
	chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: &planv1.ManifestHeader{
		JobId: job, AttemptId: "a", TableUuid: spec.GetTableUuid(), SchemaId: spec.GetSchemaId(), SpecId: spec.GetSpecId(),
	}}})
	raw, err := proto.Marshal(&planv1.DataFiles{Files: files, Replaced: replaced})
	require.NoError(b, err)
	chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: raw}})
	sum := sha256.Sum256(raw)
	t := &sinkv1.Totals{Files: int64(len(files)), ReplacedFiles: int64(len(replaced))}
	for _, f := range files {
		t.Rows, t.Bytes = t.Rows+f.GetRecordCount(), t.Bytes+f.GetSizeBytes()
	}
	for _, f := range replaced {
		t.DeletedRows, t.UpdatedRows = t.DeletedRows+f.GetDeletedRows(), t.UpdatedRows+f.GetUpdatedRows()
	}
	chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: &planv1.ManifestTrailer{
		Files: t.Files, Rows: t.Rows, Bytes: t.Bytes, Sha256: sum[:], ReplacedFiles: t.ReplacedFiles, DeletedRows: t.DeletedRows, UpdatedRows: t.UpdatedRows,
	}}})
	send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{Manifests: 1, Totals: t}}})
	return s.CloseAndRecv()
}

func (b *bench) unit(spec *planv1.WriteSpec, files []*planv1.DataFile, replaced ...*planv1.ReplacedFile) *sinkv1.Unit {
	b.Helper()
	b.jobs++
	job := fmt.Sprint("job", b.jobs)
	resp, err := b.tryStage(spec, job, files, replaced...)
	require.NoError(b, err)
	sum := sha256.Sum256([]byte(job))
	return &sinkv1.Unit{JobId: job, CommitKey: fmt.Sprintf("%x", sum), Marker: fmt.Sprintf("%x", sum)[:24], Refs: resp.GetRefs(), Totals: resp.GetTotals()}
}

func modeOf(spec *planv1.WriteSpec) sinkv1.WriteMode {
	for m := range sinkv1.WriteMode_name {
		if strings.Contains(string(spec.GetSinkState()), fmt.Sprintf(`{"mode":%d,`, m)) {
			return sinkv1.WriteMode(m)
		}
	}
	return 0
}

func (b *bench) commit(spec *planv1.WriteSpec, units ...*sinkv1.Unit) *sinkv1.CommitResponse {
	b.Helper()
	resp, err := b.sink.Commit(b.Context(), &sinkv1.CommitRequest{
		Lease: b.host.Lease, Table: b.ref, Mode: modeOf(spec), Spec: spec, Units: units, MarkerProperty: "signet.landed.test", MaxAttempts: 4,
	})
	require.NoError(b, err)
	return resp
}

// land commits, and it has to land.
func (b *bench) land(spec *planv1.WriteSpec, units ...*sinkv1.Unit) *sinkv1.CommitResponse {
	b.Helper()
	r := b.commit(spec, units...)
	require.Equal(b, sinkv1.Outcome_OUTCOME_COMMITTED, r.GetOutcome(), r.GetMessage())
	return r
}

// add appends files.
func (b *bench) add(files ...*planv1.DataFile) *sinkv1.CommitResponse {
	b.Helper()
	spec := b.prepare(appending())
	return b.land(spec, b.unit(spec, files))
}

func (b *bench) scan(req *sinkv1.PlanScanRequest) (first *sinkv1.PlanScanResponse, files map[string]*sinkv1.ScanFile, err error) {
	req.Lease, req.Table = b.host.Lease, b.ref
	s, err := b.sink.PlanScan(b.Context(), req)
	require.NoError(b, err)
	files = map[string]*sinkv1.ScanFile{}
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return first, files, nil
		}
		if err != nil {
			return nil, nil, sdk.FromStatus(err)
		}
		if first == nil {
			first = m
		}
		for _, f := range m.GetFiles() {
			files[strings.TrimPrefix(f.GetUri(), location+"/")] = f
		}
	}
}

// names are the files that a reader finds.
func (b *bench) names() []string {
	b.Helper()
	_, files, err := b.scan(&sinkv1.PlanScanRequest{})
	require.NoError(b, err)
	var out []string
	for name := range files {
		out = append(out, name)
	}
	return out
}

// actions are those of a version.
func (b *bench) actions(version int64) []log.Action {
	b.Helper()
	actions, err := log.ParseCommit(b.host.Body(location + "/" + log.CommitName(version)))
	require.NoError(b, err)
	return actions
}
