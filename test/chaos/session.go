package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/manifest"
)

const (
	sessionTasks = 2
	sessionRows  = 5 // of each task
	callLimit    = 20 * time.Second
)

// call repeats f until it has an answer. A scheduler that is away is waited for.
func (u *user) call(what string, f func(context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(u.ctx, callLimit)
		err := f(ctx)
		cancel()
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Unavailable, codes.DeadlineExceeded: // Canceled is the session's own end
			if u.ctx.Err() != nil {
				return err
			}
			u.l.note(u.st, "%s: %v", what, err)
			pause(u.ctx, 100*time.Millisecond)
		default:
			return err
		}
	}
}

// session writes as another engine would: each task's file, its manifest, and the end.
func (u *user) session() {
	api := u.cl.Raw()
	var begun *schedulerv1.BeginWriteResponse
	err := u.call("begin", func(ctx context.Context) (err error) {
		begun, err = api.BeginWrite(ctx, &schedulerv1.BeginWriteRequest{Table: "lake.c." + u.st.table, Tasks: sessionTasks, IdempotencyKey: u.st.key()})
		return err
	})
	if err != nil {
		u.l.note(u.st, "begin: %v", err) // its job, if there is one, must have failed
		return
	}
	id := begun.GetJobId()
	u.submitted(id, begun.GetExisting())
	for task := range int32(sessionTasks) {
		if begun.GetSpec() == nil {
			break
		}
		if err := u.task(begun, task); err != nil {
			u.l.note(u.st, "task %d: %v", task, err)
		}
	}
	err = u.call("finish", func(ctx context.Context) error {
		r, err := api.FinishWrite(ctx, &schedulerv1.FinishWriteRequest{JobId: id})
		u.l.note(u.st, "finish: %v %v", r.GetJob().GetState(), err)
		return err
	})
	if err != nil {
		u.l.note(u.st, "finish: %v", err)
		_ = u.call("abort", func(ctx context.Context) error { // it may have ended
			_, err := api.AbortWrite(ctx, &schedulerv1.AbortWriteRequest{JobId: id})
			u.l.note(u.st, "abort: %v", err)
			return err
		})
	}
	u.follow(id)
}

// task writes one, with a new attempt where the last one was refused.
func (u *user) task(s *schedulerv1.BeginWriteResponse, task int32) error {
	api, reason := u.cl.Raw(), ""
	for range 5 {
		var a *schedulerv1.BeginAttemptResponse
		err := u.call("begin attempt", func(ctx context.Context) (err error) {
			a, err = api.BeginAttempt(ctx, &schedulerv1.BeginAttemptRequest{JobId: s.GetJobId(), Task: task})
			return err
		})
		if err != nil {
			return err
		}
		var ids []int64
		for i := range int64(sessionRows) {
			ids = append(ids, int64(task)*sessionRows+i)
		}
		file, err := u.write(s.GetSpec(), a, task, ids)
		if err != nil {
			return err
		}
		spec := s.GetSpec()
		chunks, err := manifest.Encode(&planv1.ManifestHeader{
			JobId: s.GetJobId(), Stage: a.GetStage(), Task: task, AttemptId: a.GetAttemptId(), Epoch: a.GetEpoch(), TableUuid: spec.GetTableUuid(),
			SchemaId: spec.GetSchemaId(), SpecId: spec.GetSpecId(), Prefix: a.GetPrefix(),
		}, []*planv1.DataFile{file})
		if err != nil {
			return err
		}
		var r *schedulerv1.AcceptManifestResponse
		err = u.call("accept", func(ctx context.Context) error {
			stream, err := api.AcceptManifest(ctx)
			for n := 0; err == nil && n < len(chunks); n++ {
				err = stream.Send(&schedulerv1.AcceptManifestRequest{Chunk: chunks[n]})
			}
			if stream != nil {
				r, err = stream.CloseAndRecv() // it says more than the error of Send
			}
			return err
		})
		if err != nil {
			return err
		}
		if r.GetAccepted() {
			return nil
		}
		reason = r.GetReason()
		u.l.note(u.st, "task %d refused: %s", task, reason)
	}
	return fmt.Errorf("refused: %s", reason)
}

// write makes the file of an attempt.
func (u *user) write(spec *planv1.WriteSpec, a *schedulerv1.BeginAttemptResponse, task int32, ids []int64) (*planv1.DataFile, error) {
	var fields []arrow.Field
	for _, f := range spec.GetSchema().GetFields() {
		fields = append(fields, arrow.Field{Name: f.GetName(), Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": strconv.Itoa(int(f.GetId()))})})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(int64(u.st.n)) //nolint:forcetypeassert // of the schema above
		b.Field(1).(*array.Int64Builder).Append(id)            //nolint:forcetypeassert // of the schema above
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	dir := strings.TrimPrefix(a.GetPrefix(), "file://")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d-%d-%s-0.parquet", a.GetStage(), task, a.GetAttemptId())
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	w, err := pqarrow.NewFileWriter(rec.Schema(), f, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	return &planv1.DataFile{Path: a.GetPrefix() + "/" + name, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: rec.NumRows(), SizeBytes: info.Size()}, nil
}
