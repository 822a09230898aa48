package sinktest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const (
	committed      = sinkv1.Outcome_OUTCOME_COMMITTED
	already        = sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED
	markerProperty = "signet.landed.conformance"
	rowsPerFile    = 10
	bytesPerFile   = 100
	chunkFiles     = 500 // files in one chunk of a manifest
)

func typ(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

// definition is the suite's ordinary table: an integer, and a list, whose element has an id too.
func (b *bench) definition() *sinkv1.TableDefinition {
	fields := []*planv1.Field{{Name: "id", Type: typ(planv1.TypeKind_TYPE_KIND_INT64), Required: true}}
	if b.opts.Without["list"] == "" {
		fields = append(fields, &planv1.Field{Name: "tags", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{
			{Name: "element", Type: typ(planv1.TypeKind_TYPE_KIND_STRING)},
		}}})
	}
	return &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: fields}, Properties: b.opts.Properties}
}

func (b *bench) tryCreate(d *sinkv1.TableDefinition) error {
	_, err := b.sink.CreateTable(b.call(), &sinkv1.CreateTableRequest{Lease: b.host.grant(defining), Table: b.ref, Definition: d})
	return err
}

// create makes the ordinary table and prepares a write to it.
func (b *bench) create() *planv1.WriteSpec {
	b.needs(sinkv1.Capability_CAPABILITY_CREATE_TABLE)
	b.ok(b.tryCreate(b.definition()), "CreateTable")
	return b.prepare()
}

func (b *bench) tryPrepare() (*planv1.WriteSpec, error) {
	resp, err := b.sink.PrepareWrite(b.call(), &sinkv1.PrepareWriteRequest{
		Lease: b.host.grant(reading), Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND,
	})
	return resp.GetSpec(), err
}

func (b *bench) prepare() *planv1.WriteSpec {
	spec, err := b.tryPrepare()
	b.ok(err, "PrepareWrite")
	return spec
}

// job is one job's task manifests.
type job struct {
	id    string
	tasks [][]*planv1.DataFile
}

// newJob makes a job of so many tasks with so many files each.
func newJob(spec *planv1.WriteSpec, id string, tasks, files int) *job {
	j := &job{id: id}
	for task := range tasks {
		all := make([]*planv1.DataFile, files)
		for n := range all {
			all[n] = dataFile(j.path(spec, task, n))
		}
		j.tasks = append(j.tasks, all)
	}
	return j
}

func dataFile(path string) *planv1.DataFile {
	return &planv1.DataFile{Path: path, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: rowsPerFile, SizeBytes: bytesPerFile}
}

func (j *job) prefix(spec *planv1.WriteSpec, task int) string {
	return fmt.Sprintf("%s/%s/0/%d/a", spec.GetDataLocation(), j.id, task)
}

func (j *job) path(spec *planv1.WriteSpec, task, n int) string {
	return fmt.Sprintf("%s/0-%d-a-%d.parquet", j.prefix(spec, task), task, n)
}

func (j *job) totals() *sinkv1.Totals {
	t := &sinkv1.Totals{}
	for _, files := range j.tasks {
		for _, f := range files {
			t.Files, t.Rows, t.Bytes = t.Files+1, t.Rows+f.GetRecordCount(), t.Bytes+f.GetSizeBytes()
		}
	}
	return t
}

// marker is the commit key's short hash, as the table records it.
func (j *job) marker() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(j.id)))[:24] }

// stream gives the messages of a Stage call.
func (b *bench) stream(spec *planv1.WriteSpec, j *job) []*sinkv1.StageRequest {
	out := []*sinkv1.StageRequest{{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{
		Lease: b.host.grant(staging), Table: b.ref, Spec: spec, JobId: j.id,
	}}}}
	chunk := func(c *planv1.ManifestChunk) {
		out = append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
	}
	for task, files := range j.tasks {
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Header{Header: &planv1.ManifestHeader{
			JobId: j.id, Task: int32(task), AttemptId: "a", TableUuid: spec.GetTableUuid(), SchemaId: spec.GetSchemaId(), SpecId: spec.GetSpecId(), //nolint:gosec // few tasks
			Prefix: j.prefix(spec, task),
		}}})
		sum, trailer := sha256.New(), &planv1.ManifestTrailer{}
		size := chunkFiles
		if len(files) <= chunkFiles { // small ones have several chunks too, so that one can be lost
			size = max(1, len(files)/2)
		}
		for len(files) > 0 {
			n := min(size, len(files))
			raw, err := proto.Marshal(&planv1.DataFiles{Files: files[:n]})
			b.ok(err, "encode a manifest")
			for _, f := range files[:n] {
				trailer.Files, trailer.Rows, trailer.Bytes = trailer.Files+1, trailer.Rows+f.GetRecordCount(), trailer.Bytes+f.GetSizeBytes()
			}
			sum.Write(raw)
			chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Files{Files: raw}})
			files = files[n:]
		}
		trailer.Sha256 = sum.Sum(nil)
		chunk(&planv1.ManifestChunk{Part: &planv1.ManifestChunk_Trailer{Trailer: trailer}})
	}
	return append(out, &sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{
		Manifests: int64(len(j.tasks)), Totals: j.totals(),
	}}})
}

func (b *bench) send(msgs []*sinkv1.StageRequest) (*sinkv1.StageResponse, error) {
	ctx, cancel := context.WithCancel(b.call())
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

// stage stages a job and gives its share of a commit.
func (b *bench) stage(spec *planv1.WriteSpec, j *job) *sinkv1.Unit {
	resp, err := b.send(b.stream(spec, j))
	b.ok(err, "Stage")
	return b.unit(j, resp)
}

func (b *bench) unit(j *job, resp *sinkv1.StageResponse) *sinkv1.Unit {
	b.that(proto.Equal(j.totals(), resp.GetTotals()), "Stage must count %v; it answers %v", j.totals(), resp.GetTotals())
	for _, ref := range resp.GetRefs() {
		for _, uri := range ref.GetObjects() {
			b.that(b.host.Body(uri) != nil, "a staged reference names %s, which does not exist", uri)
		}
	}
	return &sinkv1.Unit{
		JobId: j.id, CommitKey: fmt.Sprintf("%x", sha256.Sum256([]byte(j.id))), Marker: j.marker(), Refs: resp.GetRefs(), Totals: resp.GetTotals(),
	}
}

func (b *bench) request(spec *planv1.WriteSpec, units ...*sinkv1.Unit) *sinkv1.CommitRequest {
	markers := make([]string, len(units))
	for i, u := range units {
		markers[i] = u.GetMarker()
	}
	return &sinkv1.CommitRequest{
		Lease: b.host.grant(committing, markers...), Table: b.ref, Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, Spec: spec, Units: units,
		MarkerProperty: markerProperty, MaxAttempts: 4,
	}
}

func (b *bench) commit(spec *planv1.WriteSpec, units ...*sinkv1.Unit) *sinkv1.CommitResponse {
	return b.send1(b.request(spec, units...))
}

func (b *bench) send1(req *sinkv1.CommitRequest) *sinkv1.CommitResponse {
	resp, err := b.sink.Commit(b.call(), req)
	if err != nil {
		b.fail("Commit answers with an error in place of an outcome: %s", said(err))
	}
	return resp
}

// land commits a job, which must work.
func (b *bench) land(spec *planv1.WriteSpec, j *job) *sinkv1.CommitResponse {
	r := b.commit(spec, b.stage(spec, j))
	b.outcome(r, committed, "a commit that nothing stands against")
	b.that(r.GetVersion() != "", "Commit must say which version it made")
	return r
}

func (b *bench) outcome(r *sinkv1.CommitResponse, want sinkv1.Outcome, of string) {
	b.that(r.GetOutcome() == want, "%s must be answered %s; it is %s: %s", of, short(want), short(r.GetOutcome()), r.GetMessage())
}

func (b *bench) lookup(marker string) *sinkv1.LookupResponse {
	resp, err := b.sink.Lookup(b.call(), &sinkv1.LookupRequest{Lease: b.host.grant(reading), Table: b.ref, Marker: marker, MarkerProperty: markerProperty})
	b.ok(err, "Lookup")
	return resp
}

// scan gives what a reader of the table finds: files by URI, and the first message.
func (b *bench) scan(edit ...func(*sinkv1.PlanScanRequest)) (map[string]*sinkv1.ScanFile, *sinkv1.PlanScanResponse) {
	req := &sinkv1.PlanScanRequest{Lease: b.host.grant(reading), Table: b.ref}
	for _, e := range edit {
		e(req)
	}
	s, err := b.sink.PlanScan(b.call(), req)
	b.ok(err, "PlanScan")
	found, first := map[string]*sinkv1.ScanFile{}, (*sinkv1.PlanScanResponse)(nil)
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			b.that(first != nil, "PlanScan must send one message at least")
			return found, first
		}
		b.ok(err, "PlanScan")
		if first == nil {
			first = m
		}
		b.that(len(m.GetFiles()) <= 1000, "a message of PlanScan holds at most 1,000 files; this one has %d", len(m.GetFiles()))
		for _, f := range m.GetFiles() {
			b.that(found[f.GetUri()] == nil, "%s is in the table twice", f.GetUri())
			found[f.GetUri()] = f
		}
	}
}

// holds compares the table's files with those of jobs. A sink that cannot plan scans is believed.
func (b *bench) holds(jobs ...*job) { b.holdsAt("", jobs...) }

func (b *bench) holdsAt(version string, jobs ...*job) {
	if !b.has(sinkv1.Capability_CAPABILITY_PLAN_SCAN) {
		return
	}
	found, _ := b.scan(func(r *sinkv1.PlanScanRequest) { r.Version = version })
	at, want := "", 0
	if version != "" {
		at = " at version " + version
	}
	for _, j := range jobs {
		for _, files := range j.tasks {
			want += len(files)
			for _, f := range files {
				got := found[f.GetPath()]
				b.that(got != nil, "PlanScan%s does not find %s of job %s", at, f.GetPath(), j.id)
				b.that(got.GetRecordCount() == f.GetRecordCount(), "%s has %d rows; PlanScan%s says %d", f.GetPath(), f.GetRecordCount(), at, got.GetRecordCount())
			}
		}
	}
	b.that(len(found) == want, "PlanScan%s must find %d files; it finds %d, so that some are of no commit", at, want, len(found))
}

func short(o sinkv1.Outcome) string { return o.String()[len("OUTCOME_"):] }
