package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/test/harness"
)

// rogue is an executor that does not tell the truth. It says of every query that it gives one column id BIGINT.
type rogue struct {
	t        *testing.T
	ctx      context.Context
	api      executorv1.ExecutorGatewayClient
	stream   grpc.BidiStreamingClient[executorv1.SessionRequest, executorv1.SessionResponse]
	launched chan *planv1.Task
	sending  sync.Mutex
}

func joinRogue(t *testing.T, c *harness.Cluster) *rogue {
	t.Helper()
	conn, err := grpc.NewClient(c.Address, append(rpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(harness.Context(t))
	t.Cleanup(func() {
		cancel()
		require.NoError(t, conn.Close())
	})
	r := &rogue{t: t, ctx: ctx, api: executorv1.NewExecutorGatewayClient(conn), launched: make(chan *planv1.Task, 64)}
	r.stream, err = r.api.Session(ctx)
	require.NoError(t, err)
	r.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Register{Register: &executorv1.Register{
		ExecutorId: uuid.NewString(), Host: "rogue", Slots: 1, MemoryBytes: 1 << 30, Version: "dev", Pid: int32(os.Getpid()), //nolint:gosec // a pid fits
	}}})
	first, err := r.stream.Recv()
	require.NoError(t, err)
	require.NotNil(t, first.GetRegistered())
	go r.heartbeats(time.Duration(first.GetRegistered().GetHeartbeatMillis()) * time.Millisecond / 2)
	go r.serve()
	return r
}

func (r *rogue) send(m *executorv1.SessionRequest) {
	r.sending.Lock()
	defer r.sending.Unlock()
	_ = r.stream.Send(m) // the session may have ended with the test
}

func (r *rogue) heartbeats(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Heartbeat{Heartbeat: &executorv1.Heartbeat{}}})
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *rogue) serve() {
	for {
		m, err := r.stream.Recv()
		if err != nil {
			return
		}
		switch {
		case m.GetAnalyze() != nil:
			id := &planv1.Column{Name: "id", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, EngineType: "BIGINT"}
			r.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Analyzed{Analyzed: &executorv1.AnalyzeResult{
				RequestId: m.GetAnalyze().GetRequestId(), Sql: "SELECT 1 AS id", Columns: []*planv1.Column{id},
			}}})
		case m.GetLaunch() != nil:
			r.launched <- m.GetLaunch().GetTask()
		case m.GetCancel() != nil:
			r.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: &executorv1.TaskStatus{
				Attempt: m.GetCancel().GetAttempt(), Error: &planv1.Error{Class: planv1.ErrorClass_ERROR_CLASS_KILLED, Message: "cancelled"},
			}}})
		}
	}
}

// next is the next task that it gets.
func (r *rogue) next() *planv1.Task {
	r.t.Helper()
	select {
	case task := <-r.launched:
		return task
	case <-time.After(harness.Patience):
		r.t.Fatal("no task comes")
		return nil
	}
}

// truth writes the task's file and describes it rightly.
func (r *rogue) truth(task *planv1.Task, ids ...int64) (*planv1.ManifestHeader, *planv1.DataFile) {
	r.t.Helper()
	w := task.GetWrite()
	dir := strings.TrimPrefix(w.GetPrefix(), "file://")
	require.NoError(r.t, os.MkdirAll(dir, 0o755))
	name := fmt.Sprintf("%d-%d-%s-0.parquet", task.GetStage(), task.GetTask(), task.GetAttemptId())
	size := writeIDs(r.t, filepath.Join(dir, name), w.GetSpec().GetSchema().GetFields()[0].GetId(), ids)
	return &planv1.ManifestHeader{
		JobId: task.GetJobId(), Stage: task.GetStage(), Task: task.GetTask(), AttemptId: task.GetAttemptId(), Epoch: task.GetEpoch(),
		TableUuid: w.GetSpec().GetTableUuid(), SchemaId: w.GetSpec().GetSchemaId(), SpecId: w.GetSpec().GetSpecId(), Prefix: w.GetPrefix(),
	}, &planv1.DataFile{Path: w.GetPrefix() + "/" + name, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: int64(len(ids)), SizeBytes: size}
}

func (r *rogue) report(chunks []*planv1.ManifestChunk) (accepted bool, reason string) {
	r.t.Helper()
	st, err := r.api.ReportManifest(r.ctx)
	require.NoError(r.t, err)
	for _, c := range chunks {
		if st.Send(&executorv1.ReportManifestRequest{Chunk: c}) != nil {
			break // refused already; the answer says why
		}
	}
	a, err := st.CloseAndRecv()
	if err != nil {
		return false, err.Error()
	}
	return a.GetAccepted(), a.GetReason()
}

// S66, by an executor: each lie is refused with the reason, the job fails with it when nobody does the work, and the table is as before.
func TestRogue_LiesAreRefused(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT); INSERT INTO lake.h.t VALUES (7)")
	h := &held{Cluster: c, t: t}
	before := c.Table("h", "t")
	committed := before.Files[0]
	st, err := os.Stat(committed)
	require.NoError(t, err)
	c.Executors[0].Terminate(t)
	r := joinRogue(t, c)

	for name, lie := range map[string]func(*planv1.ManifestHeader, *planv1.DataFile) []*planv1.DataFile{
		"a file of another job": func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile {
			f.Path, f.RecordCount, f.SizeBytes = "file://"+committed, 1, st.Size()
			return nil
		},
		"a path outside of the table": func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile {
			f.Path = "file:///etc/passwd"
			return nil
		},
		"the same path twice": func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile {
			return []*planv1.DataFile{f, proto.CloneOf(f)}
		},
		"another table": func(m *planv1.ManifestHeader, _ *planv1.DataFile) []*planv1.DataFile {
			m.TableUuid = uuid.NewString()
			return nil
		},
		"another schema": func(m *planv1.ManifestHeader, _ *planv1.DataFile) []*planv1.DataFile { m.SchemaId = 77; return nil },
		"another spec":   func(m *planv1.ManifestHeader, _ *planv1.DataFile) []*planv1.DataFile { m.SpecId = 77; return nil },
		"an old epoch":   func(m *planv1.ManifestHeader, _ *planv1.DataFile) []*planv1.DataFile { m.Epoch--; return nil },
		"another size":   func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile { f.SizeBytes--; return nil },
		"a partition": func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile {
			f.Partition = []*planv1.Value{{}}
			return nil
		},
		"a file that is not there": func(_ *planv1.ManifestHeader, f *planv1.DataFile) []*planv1.DataFile {
			f.Path = strings.TrimSuffix(f.GetPath(), "0.parquet") + "9.parquet"
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.Use(t)
			r.t = t
			id := h.submit("")
			for range 3 { // as many losses as limits.task_losses fail the job
				header, file := r.truth(r.next(), 1, 2, 3)
				files := []*planv1.DataFile{file}
				if l := lie(header, file); l != nil {
					files = l
				}
				accepted, reason := r.report(encode(t, header, files...))
				require.False(t, accepted)
				require.NotEmpty(t, reason)
			}
			job := h.end(id)
			require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, job.GetState())
			t.Logf("%s", job.GetError().GetMessage())
			require.Equal(t, before.MetadataLocation, c.Table("h", "t").MetadataLocation)
		})
	}

	r.t = t
	// The honest report of the same process is taken, and repeated it changes nothing.
	id := h.submit("")
	header, file := r.truth(r.next(), 1, 2, 3)
	chunks := encode(t, header, file)
	for range 3 {
		accepted, reason := r.report(chunks)
		require.True(t, accepted, reason)
	}
	require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, h.end(id).GetState())
	accepted, reason := r.report(chunks)
	require.True(t, accepted, "a late repetition: %s", reason)
	tab := c.Table("h", "t")
	require.Len(t, idsOf(t, tab), 4)
	require.Equal(t, before.Snapshots+1, tab.Snapshots)
	h.requireSwept()
}

// A task whose executor does nothing can be cancelled, and a status that makes no sense ends nothing.
func TestRogue_DoesNothing(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{})
	c.SQL("CREATE SCHEMA lake.h; CREATE TABLE lake.h.t (id BIGINT)")
	h := &held{Cluster: c, t: t}
	r := joinRogue(t, c)
	id := h.submit("")
	task := r.next()
	for _, st := range []*executorv1.TaskStatus{
		{},
		{Attempt: &executorv1.AttemptRef{}},
		{Attempt: &executorv1.AttemptRef{JobId: id, AttemptId: uuid.NewString()}},
		{Attempt: &executorv1.AttemptRef{JobId: uuid.NewString(), AttemptId: task.GetAttemptId(), Epoch: 1}, Rows: 5},
	} {
		r.send(&executorv1.SessionRequest{Message: &executorv1.SessionRequest_Status{Status: st}})
	}
	r.send(&executorv1.SessionRequest{})
	require.Equal(t, schedulerv1.JobState_JOB_STATE_RUNNING, h.job(id).GetState())
	cancelled, message, err := c.Client().Cancel(r.ctx, id)
	require.NoError(t, err)
	require.True(t, cancelled, message)
	require.Equal(t, schedulerv1.JobState_JOB_STATE_CANCELLED, h.end(id).GetState())
	require.Zero(t, c.Table("h", "t").Snapshots)
	require.False(t, c.Scheduler.Ended())
}
