package sinktest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// Connect starts a sink against the host's services and returns its client, already described.
type Connect func(t *testing.T, register func(grpc.ServiceRegistrar)) sinkv1.SinkClient

// Run runs the suite. Each case has a table of its own.
func Run(t *testing.T, connect Connect) {
	for name, check := range map[string]func(*bench){
		"DescribeIsStable": describeIsStable, "CreateTwice": createTwice, "MissingTable": missingTable, "StageTwice": stageTwice,
		"CommitTwice": commitTwice, "CommitConflict": commitConflict, "CommitLostReply": commitLostReply, "CommitFenced": commitFenced,
		"CommitAfterRecreate": commitAfterRecreate, "DamagedManifests": damagedManifests, "LookupUnknownMarker": lookupUnknown,
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHost("file:///warehouse/ns/t %41")
			check(&bench{T: t, host: h, sink: connect(t, h.Register), ref: &sinkv1.TableRef{Catalog: "c", Namespace: []string{"ns"}, Name: "t"}})
		})
	}
}

// bench is one case: a sink, its host and a table.
type bench struct {
	*testing.T
	host *Host
	sink sinkv1.SinkClient
	ref  *sinkv1.TableRef
}

func (b *bench) create() {
	b.Helper()
	_, err := b.sink.CreateTable(b.Context(), &sinkv1.CreateTableRequest{Lease: b.host.Lease, Table: b.ref, Definition: Definition()})
	require.NoError(b, err)
}

// Definition is the suite's table: an integer, and a list, whose element has an id too.
func Definition() *sinkv1.TableDefinition {
	return &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{
		{Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, Required: true},
		{Name: "tags", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{
			{Name: "element", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}},
		}}},
	}}}
}

func (b *bench) prepare() *planv1.WriteSpec {
	b.Helper()
	resp, err := b.sink.PrepareWrite(b.Context(), &sinkv1.PrepareWriteRequest{Lease: b.host.Lease, Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	require.NoError(b, err)
	spec := resp.GetSpec()
	require.NotEmpty(b, spec.GetTableUuid())
	require.NotEmpty(b, spec.GetDataLocation())
	seen := map[int32]bool{}
	fieldIDs(b, spec.GetSchema().GetFields(), seen)
	require.Len(b, seen, 3)
	return spec
}

func fieldIDs(b *bench, fields []*planv1.Field, seen map[int32]bool) {
	for _, f := range fields {
		require.False(b, f.GetId() <= 0 || seen[f.GetId()], "field %s has id %d", f.GetName(), f.GetId())
		seen[f.GetId()] = true
		fieldIDs(b, f.GetType().GetFields(), seen)
	}
}

// stream gives the messages of a Stage call for one job of two tasks with two files each.
func (b *bench) stream(spec *planv1.WriteSpec, job string) []*sinkv1.StageRequest {
	b.Helper()
	out := []*sinkv1.StageRequest{{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Lease: b.host.Lease, Table: b.ref, Spec: spec, JobId: job}}}}
	chunk := func(c *planv1.ManifestChunk) {
		out = append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
	}
	for task := range int32(2) {
		prefix := fmt.Sprintf("%s/%s/0/%d/a", spec.GetDataLocation(), job, task)
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: &planv1.ManifestHeader{
			JobId: job, Task: task, AttemptId: "a", TableUuid: spec.GetTableUuid(), SchemaId: spec.GetSchemaId(), SpecId: spec.GetSpecId(), Prefix: prefix,
		}}})
		sum := sha256.New()
		for n := range 2 {
			files := &planv1.DataFiles{Files: []*planv1.DataFile{{
				Path: fmt.Sprintf("%s/0-%d-a-%d.parquet", prefix, task, n), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 100,
			}}}
			raw, err := proto.Marshal(files)
			require.NoError(b, err)
			sum.Write(raw)
			chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: raw}})
		}
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: &planv1.ManifestTrailer{Files: 2, Rows: 20, Bytes: 200, Sha256: sum.Sum(nil)}}})
	}
	return append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{
		Manifests: 2, Totals: &sinkv1.Totals{Files: 4, Rows: 40, Bytes: 400},
	}}})
}

func (b *bench) send(msgs []*sinkv1.StageRequest) (*sinkv1.StageResponse, error) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	s, err := b.sink.Stage(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range msgs {
		if err := s.Send(m); err != nil {
			break // the reason comes with the reply
		}
	}
	return s.CloseAndRecv()
}

// unit stages a job.
func (b *bench) unit(spec *planv1.WriteSpec, job string) *sinkv1.Unit {
	b.Helper()
	resp, err := b.send(b.stream(spec, job))
	require.NoError(b, err)
	require.True(b, proto.Equal(&sinkv1.Totals{Files: 4, Rows: 40, Bytes: 400}, resp.GetTotals()))
	sum := sha256.Sum256([]byte(job))
	return &sinkv1.Unit{JobId: job, CommitKey: fmt.Sprintf("%x", sum), Marker: fmt.Sprintf("%x", sum)[:24], Refs: resp.GetRefs(), Totals: resp.GetTotals()}
}

func (b *bench) commit(spec *planv1.WriteSpec, units ...*sinkv1.Unit) *sinkv1.CommitResponse {
	b.Helper()
	resp, err := b.sink.Commit(b.Context(), &sinkv1.CommitRequest{
		Lease: b.host.Lease, Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Spec: spec, Units: units,
		MarkerProperty: "signet.landed.test", MaxAttempts: 4,
	})
	require.NoError(b, err, "Commit answers with an outcome, not with an error")
	return resp
}

func (b *bench) lookup(marker string) *sinkv1.LookupResponse {
	b.Helper()
	resp, err := b.sink.Lookup(b.Context(), &sinkv1.LookupRequest{Lease: b.host.Lease, Table: b.ref, Marker: marker, MarkerProperty: "signet.landed.test"})
	require.NoError(b, err)
	return resp
}

// files are the paths that a reader of the table finds; each may be there once.
func (b *bench) files(version string) map[string]bool {
	b.Helper()
	s, err := b.sink.PlanScan(b.Context(), &sinkv1.PlanScanRequest{Lease: b.host.Lease, Table: b.ref, Version: version})
	if status.Code(err) == codes.Unimplemented {
		b.Skip("the sink cannot plan scans")
	}
	require.NoError(b, err)
	found := map[string]bool{}
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(b, err)
		require.LessOrEqual(b, len(m.GetFiles()), 1000)
		for _, f := range m.GetFiles() {
			require.False(b, found[f.GetUri()], "%s is in the table twice", f.GetUri())
			require.EqualValues(b, 10, f.GetRecordCount())
			found[f.GetUri()] = true
		}
	}
}

func (b *bench) refused(err, kind error) {
	b.Helper()
	require.ErrorIs(b, sdk.FromStatus(err), kind)
}
