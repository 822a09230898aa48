package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/manifest"
	"github.com/signet-io/signet/test/harness"
)

// session is an external write: this test is the other engine.
type session struct {
	t    *testing.T
	ctx  context.Context
	api  schedulerv1.SchedulerClient
	job  string
	spec *planv1.WriteSpec
}

func begin(t *testing.T, c *harness.Cluster, table string, tasks int32) *session {
	t.Helper()
	s := &session{t: t, ctx: harness.Context(t), api: c.Client().Raw()}
	r, err := s.api.BeginWrite(s.ctx, &schedulerv1.BeginWriteRequest{Table: table, Tasks: tasks})
	require.NoError(t, err)
	s.job, s.spec = r.GetJobId(), r.GetSpec()
	return s
}

// attempt begins an attempt of a task and writes its only file, with the given ids. It returns the manifest that tells the truth about it.
func (s *session) attempt(task int32, ids ...int64) (*planv1.ManifestHeader, *planv1.DataFile) {
	s.t.Helper()
	a, err := s.api.BeginAttempt(s.ctx, &schedulerv1.BeginAttemptRequest{JobId: s.job, Task: task})
	require.NoError(s.t, err)
	dir := strings.TrimPrefix(a.GetPrefix(), "file://")
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	name := strings.Join([]string{strconv.Itoa(int(a.GetStage())), strconv.Itoa(int(task)), a.GetAttemptId(), "0"}, "-") + ".parquet"
	size := writeIDs(s.t, filepath.Join(dir, name), s.spec.GetSchema().GetFields()[0].GetId(), ids)
	h := &planv1.ManifestHeader{
		JobId: s.job, Stage: a.GetStage(), Task: task, AttemptId: a.GetAttemptId(), Epoch: a.GetEpoch(), TableUuid: s.spec.GetTableUuid(),
		SchemaId: s.spec.GetSchemaId(), SpecId: s.spec.GetSpecId(), Prefix: a.GetPrefix(),
	}
	return h, &planv1.DataFile{Path: a.GetPrefix() + "/" + name, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: int64(len(ids)), SizeBytes: size}
}

// writeIDs writes a Parquet file of one BIGINT column with a field id.
func writeIDs(t *testing.T, path string, fieldID int32, ids []int64) int64 {
	t.Helper()
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(ids, nil)
	schema := arrow.NewSchema([]arrow.Field{{
		Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": strconv.Itoa(int(fieldID))}),
	}}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, int64(len(ids)))
	defer rec.Release()
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, nil, pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	st, err := os.Stat(path)
	require.NoError(t, err)
	return st.Size()
}

// report sends a manifest.
func (s *session) report(chunks []*planv1.ManifestChunk) *schedulerv1.AcceptManifestResponse {
	s.t.Helper()
	stream, err := s.api.AcceptManifest(s.ctx)
	require.NoError(s.t, err)
	for _, c := range chunks {
		if stream.Send(&schedulerv1.AcceptManifestRequest{Chunk: c}) != nil {
			break // refused already; the answer says why
		}
	}
	r, err := stream.CloseAndRecv()
	if err != nil {
		return &schedulerv1.AcceptManifestResponse{Reason: err.Error()}
	}
	return r
}

func encode(t *testing.T, h *planv1.ManifestHeader, files ...*planv1.DataFile) []*planv1.ManifestChunk {
	t.Helper()
	chunks, err := manifest.Encode(h, files)
	require.NoError(t, err)
	return chunks
}

// S66: a manifest that lies is refused with the reason, and nothing of it is committed; the true one lands.
func TestSessions_ManifestsThatLie(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.x; CREATE TABLE lake.x.t (id BIGINT)")
	elsewhere := filepath.Join(c.Dir, "elsewhere.parquet")
	writeIDs(t, elsewhere, 1, []int64{9})
	type lie struct {
		reason string // part of what the refusal says
		tell   func(h *planv1.ManifestHeader, d *planv1.DataFile)
		spoil  func([]*planv1.ManifestChunk) []*planv1.ManifestChunk
	}
	for name, l := range map[string]lie{
		"another job": {reason: "job", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) { h.JobId = "01900000-0000-7000-8000-000000000000" }},
		"another attempt": {reason: "attempt", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) {
			h.AttemptId = "00000000-0000-4000-8000-000000000000"
		}},
		"another epoch": {reason: "epoch", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) { h.Epoch++ }},
		"another table": {reason: "table", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) {
			h.TableUuid = "00000000-0000-4000-8000-000000000000"
		}},
		"another schema":   {reason: "schema", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) { h.SchemaId++ }},
		"another spec":     {reason: "spec", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) { h.SpecId++ }},
		"another prefix":   {reason: "prefix", tell: func(h *planv1.ManifestHeader, _ *planv1.DataFile) { h.Prefix = "file://" + c.Dir }},
		"a path elsewhere": {reason: "path", tell: func(_ *planv1.ManifestHeader, d *planv1.DataFile) { d.Path = "file://" + elsewhere }},
		"a path with ..":   {reason: "path", tell: func(h *planv1.ManifestHeader, d *planv1.DataFile) { d.Path = h.GetPrefix() + "/../x.parquet" }},
		"a sibling's path": {reason: "path", tell: func(h *planv1.ManifestHeader, d *planv1.DataFile) { d.Path = h.GetPrefix() + "0/x.parquet" }},
		"a file not there": {reason: "parquet", tell: func(_ *planv1.ManifestHeader, d *planv1.DataFile) {
			d.Path = strings.TrimSuffix(d.Path, "0.parquet") + "1.parquet"
		}},
		"another size":        {reason: "bytes", tell: func(_ *planv1.ManifestHeader, d *planv1.DataFile) { d.SizeBytes++ }},
		"a partition value":   {reason: "partition", tell: func(_ *planv1.ManifestHeader, d *planv1.DataFile) { d.Partition = []*planv1.Value{{}} }},
		"totals that differ":  {reason: "totals", spoil: trailer(func(tr *planv1.ManifestTrailer) { tr.Rows++ })},
		"another digest":      {reason: "digest", spoil: trailer(func(tr *planv1.ManifestTrailer) { tr.Sha256[0] ^= 1 })},
		"no trailer":          {reason: "trailer", spoil: func(c []*planv1.ManifestChunk) []*planv1.ManifestChunk { return c[:2] }},
		"files before header": {reason: "header", spoil: func(c []*planv1.ManifestChunk) []*planv1.ManifestChunk { return c[1:] }},
		"chunk twice": {spoil: func(c []*planv1.ManifestChunk) []*planv1.ManifestChunk {
			return []*planv1.ManifestChunk{c[0], c[1], c[1], c[2]}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, c, "lake.x.t", 1)
			header, file := s.attempt(0, 1, 2, 3)
			if l.tell != nil {
				l.tell(header, file)
			}
			chunks := encode(t, header, file)
			if l.spoil != nil {
				chunks = l.spoil(chunks)
			}
			r := s.report(chunks)
			require.False(t, r.GetAccepted())
			require.NotEmpty(t, r.GetReason())
			require.Contains(t, strings.ToLower(r.GetReason()), l.reason)
			_, err := s.api.AbortWrite(s.ctx, &schedulerv1.AbortWriteRequest{JobId: s.job})
			require.NoError(t, err)
		})
	}
	require.Zero(t, c.Table("x", "t").Snapshots)
	s := begin(t, c, "lake.x.t", 1)
	header, file := s.attempt(0, 1, 2, 3)
	r := s.report(encode(t, header, file))
	require.True(t, r.GetAccepted(), r.GetReason())
	end, err := s.api.FinishWrite(s.ctx, &schedulerv1.FinishWriteRequest{JobId: s.job})
	require.NoError(t, err)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, end.GetJob().GetState(), end.GetJob().GetError())
	require.Equal(t, [][]string{{"1"}, {"2"}, {"3"}}, c.SQL("SELECT id FROM lake.x.t ORDER BY id"))
	c.NoOrphans("x", "t")
}

func trailer(f func(*planv1.ManifestTrailer)) func([]*planv1.ManifestChunk) []*planv1.ManifestChunk {
	return func(chunks []*planv1.ManifestChunk) []*planv1.ManifestChunk {
		f(chunks[len(chunks)-1].GetTrailer())
		return chunks
	}
}

// An external write lands once however many tasks it has, and an aborted one not at all.
func TestSessions_LandOnceOrNotAtAll(t *testing.T) {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.x; CREATE TABLE lake.x.t (id BIGINT)")
	s := begin(t, c, "lake.x.t", 3)
	for task := range int32(3) {
		h, f := s.attempt(task, int64(task)*10, int64(task)*10+1)
		r := s.report(encode(t, h, f))
		require.True(t, r.GetAccepted(), r.GetReason())
	}
	_, err := s.api.FinishWrite(s.ctx, &schedulerv1.FinishWriteRequest{JobId: s.job})
	require.NoError(t, err)
	_, err = s.api.FinishWrite(s.ctx, &schedulerv1.FinishWriteRequest{JobId: s.job})
	require.NoError(t, err, "asking again is no second commit")
	require.Equal(t, []string{"6", "63"}, c.SQL("SELECT count(*), sum(id) FROM lake.x.t")[0])

	gone := begin(t, c, "lake.x.t", 1)
	h, f := gone.attempt(0, 99)
	require.True(t, gone.report(encode(t, h, f)).GetAccepted())
	_, err = gone.api.AbortWrite(gone.ctx, &schedulerv1.AbortWriteRequest{JobId: gone.job})
	require.NoError(t, err)
	tab := c.Table("x", "t")
	require.Equal(t, 1, tab.Snapshots)
	c.NoOrphans("x", "t")
}
