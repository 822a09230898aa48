package iceberg

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/plugins/sdk"
)

// job drives the sink as the scheduler does.
type job struct {
	t      testing.TB
	h      *testHost
	c      sinkv1.SinkClient
	id     string
	spec   *planv1.WriteSpec
	mode   sinkv1.WriteMode
	refs   []*sinkv1.StagedRef
	totals *sinkv1.Totals

	replaced []*planv1.ReplacedFile // by the first task

	lastPath string // of the file written last
}

func newJob(t testing.TB, h *testHost, c sinkv1.SinkClient) *job {
	t.Helper()
	resp, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND})
	require.NoError(t, err)
	return &job{t: t, h: h, c: c, id: uuid.NewString(), spec: resp.GetSpec(), mode: sinkv1.WriteMode_WRITE_MODE_APPEND}
}

func newCreateJob(t testing.TB, h *testHost, c sinkv1.SinkClient, def *sinkv1.TableDefinition) *job {
	t.Helper()
	resp, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: def})
	require.NoError(t, err)
	return &job{t: t, h: h, c: c, id: uuid.NewString(), spec: resp.GetSpec(), mode: sinkv1.WriteMode_WRITE_MODE_CREATE}
}

func (j *job) header(task int32) *planv1.ManifestHeader {
	return &planv1.ManifestHeader{JobId: j.id, Task: task, AttemptId: uuid.NewString(), TableUuid: j.spec.GetTableUuid(), SchemaId: j.spec.GetSchemaId(), SpecId: j.spec.GetSpecId()}
}

// stage stages the files as one task manifest per group.
func (j *job) stage(groups ...[]*planv1.DataFile) error {
	st, err := j.c.Stage(j.t.Context())
	require.NoError(j.t, err)
	send := func(r *sinkv1.StageRequest) { _ = st.Send(r) } // an early end shows in CloseAndRecv
	send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Table: j.h.ref(), Spec: j.spec, JobId: j.id}}})
	totals := &sinkv1.Totals{}
	if len(groups) == 0 && j.replaced != nil {
		groups = [][]*planv1.DataFile{nil}
	}
	for i, g := range groups {
		var replaced []*planv1.ReplacedFile
		if i == 0 {
			replaced = j.replaced
		}
		for _, r := range replaced {
			totals.ReplacedFiles++
			totals.DeletedRows += r.GetDeletedRows()
			totals.UpdatedRows += r.GetUpdatedRows()
		}
		chunks, err := manifest.Encode(j.header(int32(i)), g, replaced...)
		require.NoError(j.t, err)
		for _, c := range chunks {
			send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Manifest{Manifest: c}})
		}
		for _, f := range g {
			n := manifest.CountsOf(f)
			totals.Files++
			totals.Rows += n.Rows
			totals.Bytes += n.Bytes
			totals.DeletedRows += n.Deleted
			totals.UpdatedRows += n.Updated
		}
	}
	send(&sinkv1.StageRequest{Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{Manifests: int64(len(groups)), Totals: totals}}})
	resp, err := st.CloseAndRecv()
	if err != nil {
		return err
	}
	j.refs, j.totals = resp.GetRefs(), resp.GetTotals()
	return nil
}

func (j *job) marker() string {
	sum := sha256.Sum256([]byte(j.id))
	return hex.EncodeToString(sum[:12])
}

func (j *job) unit() *sinkv1.Unit {
	return &sinkv1.Unit{JobId: j.id, CommitKey: j.id, Marker: j.marker(), Refs: j.refs, Totals: j.totals}
}

func (j *job) request(units ...*sinkv1.Unit) *sinkv1.CommitRequest {
	if units == nil {
		units = []*sinkv1.Unit{j.unit()}
	}
	return &sinkv1.CommitRequest{Table: j.h.ref(), Mode: j.mode, Spec: j.spec, Units: units, MarkerProperty: testProperty}
}

func (j *job) commit() *sinkv1.CommitResponse {
	j.t.Helper()
	resp, err := j.c.Commit(j.t.Context(), j.request())
	require.NoError(j.t, err)
	return resp
}

// land stages and commits and wants it to land.
func (j *job) land(groups ...[]*planv1.DataFile) *sinkv1.CommitResponse {
	j.t.Helper()
	require.NoError(j.t, j.stage(groups...))
	resp := j.commit()
	require.Equal(j.t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	return resp
}

// manyFiles are files whose manifest is too large for a reference: their names do not compress.
func (j *job) manyFiles(n int) (files []*planv1.DataFile) {
	for i := range n {
		f := j.plainFile(i, 1)
		f.Path += uuid.NewString()
		files = append(files, f)
	}
	return files
}

// plainFile is a file of an unpartitioned table, without the bytes.
func (j *job) plainFile(n int, rows int64) *planv1.DataFile {
	return &planv1.DataFile{
		Path: fmt.Sprintf("%s/%s/0/0/a/0-0-a-%d.parquet", j.spec.GetDataLocation(), j.id, n), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: rows, SizeBytes: 1000 + rows,
	}
}

func field(name string, kind planv1.TypeKind) *planv1.Field {
	return &planv1.Field{Name: name, Type: &planv1.Type{Kind: kind}}
}

func required(f *planv1.Field) *planv1.Field { f.Required = true; return f }

func createTable(t testing.TB, h *testHost, c sinkv1.SinkClient, def *sinkv1.TableDefinition) *sinkv1.CreateTableResponse {
	t.Helper()
	resp, err := c.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Table: h.ref(), Definition: def})
	require.NoError(t, err)
	return resp
}

func simple(props map[string]string) *sinkv1.TableDefinition {
	return &sinkv1.TableDefinition{
		Schema:     &planv1.Schema{Fields: []*planv1.Field{field("id", planv1.TypeKind_TYPE_KIND_INT64), field("name", planv1.TypeKind_TYPE_KIND_STRING)}},
		Properties: props,
	}
}

// alter changes the table behind the sink's back.
func (h *testHost) alter(updates ...map[string]any) {
	h.t.Helper()
	raw, err := json.Marshal(updates)
	require.NoError(h.t, err)
	var parsed icetable.Updates
	require.NoError(h.t, json.Unmarshal(raw, &parsed))
	_, _, err = h.cat.CommitTable(h.t.Context(), h.ident, nil, parsed)
	require.NoError(h.t, err)
}

// alterSchema makes these the current columns, as JSON fields.
func (h *testHost) alterSchema(fields ...string) {
	h.t.Helper()
	schema := json.RawMessage(`{"type":"struct","schema-id":0,"fields":[` + strings.Join(fields, ",") + `]}`)
	h.alter(map[string]any{"action": "add-schema", "schema": schema}, map[string]any{"action": "set-current-schema", "schema-id": -1})
}

func (h *testHost) setProperties(kv ...string) {
	h.t.Helper()
	props := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		props[kv[i]] = kv[i+1]
	}
	h.alter(map[string]any{"action": "set-properties", "updates": props})
}

// rewriteMetadata replaces the table's metadata.json by one that no iceberg-go API would make.
func (h *testHost) rewriteMetadata(change func(map[string]any)) {
	h.t.Helper()
	location := h.table().MetadataLocation()
	raw, err := os.ReadFile(h.path(location))
	require.NoError(h.t, err)
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(h.t, dec.Decode(&doc))
	change(doc)
	raw, err = json.Marshal(doc)
	require.NoError(h.t, err)
	require.NoError(h.t, os.WriteFile(h.path(location), raw, 0o600))
}

// refused wants a refusal that says so.
func refused(t testing.TB, err error, kind hostv1.RefusalKind, words ...string) {
	t.Helper()
	require.Error(t, err)
	r := new(sdk.RefusalError)
	require.ErrorAs(t, sdk.FromStatus(err), &r)
	require.Equal(t, kind, r.Kind, err)
	for _, w := range words {
		require.ErrorContains(t, err, w)
	}
}
