package executor_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/internal/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func one(t *testing.T, change func(*executor.Config)) (*gateway, *process) {
	t.Helper()
	board, g := newSwitchboard(), newGateway(t, 1)
	board.up(t, g)
	p := start(t, board, change)
	next(t, g.registers, "registration")
	return g, p
}

func TestExecutor_WriteTaskIsReported(t *testing.T) {
	g, p := one(t, nil)
	task := writeTask(t, 1, "SELECT unnest([1, 2, 3])")
	g.launch(task)
	r := next(t, g.manifests, "manifest")
	require.True(t, r.Done())
	h := r.Header()
	require.Equal(t, task.GetJobId(), h.GetJobId())
	require.Equal(t, task.GetAttemptId(), h.GetAttemptId())
	require.Equal(t, uint64(1), h.GetEpoch())
	require.Equal(t, task.GetWrite().GetSpec().GetTableUuid(), h.GetTableUuid())
	require.Equal(t, int32(3), h.GetSchemaId())
	require.Equal(t, int32(4), h.GetSpecId())
	require.Equal(t, task.GetWrite().GetPrefix(), h.GetPrefix())
	files, err := r.Files()
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, int64(3), files[0].GetRecordCount())
	require.FileExists(t, strings.TrimPrefix(files[0].GetPath(), "file://"))
	require.NoError(t, p.stop())
	next(t, g.left, "leave")
	require.Empty(t, g.statuses, "the manifest is the report")
}

// S71, T5: the same manifest comes again until there is an answer.
func TestExecutor_RepeatsManifestUntilAcknowledged(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	var tries atomic.Int32
	g.onManifest = func(*manifest.Reader) (*executorv1.ReportManifestResponse, error) {
		if tries.Add(1) < 4 {
			return nil, status.Error(codes.Unavailable, "the answer is lost")
		}
		return &executorv1.ReportManifestResponse{Accepted: true}, nil
	}
	board.up(t, g)
	p := start(t, board, nil)
	next(t, g.registers, "registration")
	g.launch(writeTask(t, 1, "SELECT 1"))
	var sums [][]byte
	for range 4 {
		sums = append(sums, next(t, g.manifests, "manifest").Trailer().GetSha256())
	}
	for _, s := range sums[1:] {
		require.Equal(t, sums[0], s)
	}
	require.NoError(t, p.stop())
	require.Equal(t, int32(4), tries.Load())
}

// T5: a status is repeated with the heartbeats until it is acknowledged.
func TestExecutor_RepeatsStatusUntilAcknowledged(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	var n atomic.Int32
	g.ackStatus = func(*executorv1.TaskStatus) bool { return n.Add(1) >= 3 }
	board.up(t, g)
	p := start(t, board, nil)
	next(t, g.registers, "registration")
	g.launch(writeTask(t, 1, "SELECT 'abc'"))
	for range 3 {
		st := next(t, g.statuses, "status")
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass())
		require.Contains(t, st.GetError().GetMessage(), `column "x": value abc does not fit BIGINT`)
	}
	require.NoError(t, p.stop())
	require.Equal(t, int32(3), n.Load(), "nothing is repeated after the acknowledgement")
}

// S71: the scheduler dies with a manifest unacknowledged and comes back with a new epoch.
func TestExecutor_NewEpochAdoptsUnacknowledgedAttempt(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	reached := make(chan struct{}, 100)
	g.onManifest = func(*manifest.Reader) (*executorv1.ReportManifestResponse, error) {
		reached <- struct{}{}
		return nil, status.Error(codes.Unavailable, "dying")
	}
	board.up(t, g)
	p := start(t, board, nil)
	next(t, g.registers, "registration")
	task := writeTask(t, 1, "SELECT 1")
	g.launch(task)
	next(t, reached, "report")
	board.down(g)

	g2 := newGateway(t, 2)
	var registered atomic.Bool
	g2.onManifest = func(*manifest.Reader) (*executorv1.ReportManifestResponse, error) {
		if !registered.Load() { // a report may come before the session
			return nil, status.Error(codes.Unavailable, "starting")
		}
		return &executorv1.ReportManifestResponse{Accepted: true}, nil
	}
	board.up(t, g2)
	reg := next(t, g2.registers, "registration with the new scheduler")
	registered.Store(true)
	require.Equal(t, uint64(1), reg.GetKnownEpoch())
	require.Len(t, reg.GetAttempts(), 1)
	require.Equal(t, task.GetAttemptId(), reg.GetAttempts()[0].GetAttemptId())
	r := next(t, g2.manifests, "manifest for the new scheduler")
	require.Equal(t, uint64(1), r.Header().GetEpoch(), "the attempt keeps the epoch of its launch")
	require.NoError(t, p.stop())
}

// S71, S61: one that has reported is not deleted when the new scheduler does not adopt it: it may be committed.
func TestExecutor_ReportedFilesSurviveRefusal(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	reached := make(chan struct{}, 100)
	g.onManifest = func(*manifest.Reader) (*executorv1.ReportManifestResponse, error) {
		reached <- struct{}{}
		return nil, status.Error(codes.Unavailable, "accepted and committed, but the answer is lost")
	}
	board.up(t, g)
	p := start(t, board, nil)
	next(t, g.registers, "registration")
	task := writeTask(t, 1, "SELECT 1")
	g.launch(task)
	next(t, reached, "report")
	board.down(g)

	g2 := newGateway(t, 2)
	g2.adopt = func(*executorv1.AttemptRef) bool { return false }
	g2.onManifest = func(*manifest.Reader) (*executorv1.ReportManifestResponse, error) {
		return &executorv1.ReportManifestResponse{Reason: "the job has ended"}, nil
	}
	board.up(t, g2)
	next(t, g2.manifests, "the report goes on")
	require.NoError(t, p.stop())
	files, err := os.ReadDir(dir(task))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// S71: a running attempt that the new scheduler does not know is dropped, with its files.
func TestExecutor_NewEpochDropsUnknownAttempt(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 1)
	board.up(t, g)
	p := start(t, board, nil)
	next(t, g.registers, "registration")
	task := writeTask(t, 1, endless)
	g.launch(task)
	awaitRunning(t, g, 1)
	board.down(g)

	g2 := newGateway(t, 2)
	g2.adopt = func(*executorv1.AttemptRef) bool { return false }
	board.up(t, g2)
	st := next(t, g2.statuses, "status of the dropped attempt")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, st.GetError().GetClass())
	require.NoDirExists(t, dir(task))
	require.NoError(t, p.stop())
}

// S65
func TestExecutor_RefusesOlderEpoch(t *testing.T) {
	board, g := newSwitchboard(), newGateway(t, 5)
	board.up(t, g)
	start(t, board, nil)
	next(t, g.beats, "heartbeat")
	board.down(g)
	zombie := newGateway(t, 4)
	board.up(t, zombie)
	for range 3 { // it comes back, and leaves each time
		require.Equal(t, uint64(5), next(t, zombie.registers, "registration").GetKnownEpoch())
	}
	board.down(zombie)
	heir := newGateway(t, 6)
	board.up(t, heir)
	next(t, heir.registers, "registration")
	heir.launch(writeTask(t, 6, "SELECT 1"))
	next(t, heir.manifests, "manifest")
}

// S65
func TestExecutor_RefusesAttemptOfAnotherEpoch(t *testing.T) {
	g, _ := one(t, nil)
	task := writeTask(t, 7, "SELECT 1")
	g.launch(task)
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_INTERNAL, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "epoch 7")
	require.NoDirExists(t, dir(task))
}

func TestExecutor_RefusesForeignPrefix(t *testing.T) {
	g, _ := one(t, nil)
	for _, prefix := range []string{"", "file:///etc", "s3://b/x", "file:///a/../b"} {
		task := writeTask(t, 1, "SELECT 1")
		task.GetWrite().Prefix = prefix
		g.launch(task)
		require.NotNil(t, statusOf(t, g, task).GetError(), prefix)
	}
	task, other := writeTask(t, 1, "SELECT 1"), writeTask(t, 1, "SELECT 1")
	task.GetWrite().Prefix = other.GetWrite().GetPrefix()
	g.launch(task)
	require.Contains(t, statusOf(t, g, task).GetError().GetMessage(), "is not that of attempt")
}

// statusOf is the next status of one attempt: those of others may come again until they are acknowledged.
func statusOf(t testing.TB, g *gateway, task *planv1.Task) *executorv1.TaskStatus {
	t.Helper()
	for {
		if st := next(t, g.statuses, "status"); st.GetAttempt().GetAttemptId() == task.GetAttemptId() {
			return st
		}
	}
}

func awaitRunning(t testing.TB, g *gateway, n int32) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case b := <-g.beats:
			if b.GetRunning() == n {
				return
			}
		case <-deadline:
			t.Fatalf("no heartbeat with %d running attempts", n)
		}
	}
}

func TestExecutor_CancelStopsQueryAndCleansUp(t *testing.T) {
	g, _ := one(t, nil)
	task := writeTask(t, 1, endless)
	g.launch(task)
	awaitRunning(t, g, 1)
	ref := &executorv1.AttemptRef{AttemptId: task.GetAttemptId()}
	g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{Attempt: ref, Reason: "the user pressed Ctrl-C"}}})
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "the user pressed Ctrl-C")
	require.NoDirExists(t, dir(task))
	awaitRunning(t, g, 0)
}

// Analyses do not wait for slots, and slots bound the tasks.
func TestExecutor_AnalyzesBesideFullSlots(t *testing.T) {
	g, _ := one(t, nil)
	var tasks []*planv1.Task
	for range 3 {
		tasks = append(tasks, writeTask(t, 1, endless))
		g.launch(tasks[len(tasks)-1])
	}
	awaitRunning(t, g, 2)
	g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: &executorv1.Analyze{RequestId: "r1", Sql: "SELECT 1 AS a"}}})
	res := next(t, g.analyzed, "analysis")
	require.Equal(t, "r1", res.GetRequestId())
	require.Nil(t, res.GetError())
	require.Len(t, res.GetColumns(), 1)
	for _, task := range tasks {
		g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{
			Attempt: &executorv1.AttemptRef{AttemptId: task.GetAttemptId()}, Reason: "enough",
		}}})
	}
	for range 3 {
		next(t, g.statuses, "status")
	}
}

func TestExecutor_ResultTaskPushesArrow(t *testing.T) {
	g, _ := one(t, nil)
	task := &planv1.Task{JobId: "j", AttemptId: "a-1", Epoch: 1, Sql: "SELECT i FROM range(5000) t(i)", Work: &planv1.Task_Result{Result: &planv1.ResultTask{}}}
	g.launch(task)
	o := next(t, g.outputs, "output")
	require.Equal(t, int64(5000), o.rows)
	r, err := ipc.NewReader(bytes.NewReader(o.data))
	require.NoError(t, err)
	var rows int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	require.Equal(t, int64(5000), rows)
	st := next(t, g.statuses, "status")
	require.Nil(t, st.GetError())
	require.Equal(t, int64(5000), st.GetRows())
	require.Equal(t, int64(len(o.data)), st.GetBytes())
}

// S70
func TestExecutor_TaskSeesNothingElse(t *testing.T) {
	g, _ := one(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("canary"), 0o600))
	for _, sql := range []string{
		"SELECT content FROM read_text('" + secret + "')", "SELECT * FROM read_csv('" + secret + "')", "SELECT * FROM glob('" + filepath.Dir(secret) + "/*')",
		"SELECT getenv('HOME')", "SELECT * FROM query('SELECT * FROM read_text(''" + secret + "'')')",
	} {
		g.launch(writeTask(t, 1, sql))
		st := next(t, g.statuses, "status")
		require.Equal(t, planv1.ErrorClass_ERROR_CLASS_USER, st.GetError().GetClass(), sql)
		require.NotContains(t, st.GetError().GetMessage(), "canary")
	}
}

// S72
func TestExecutor_SweepEndsAttemptAndRemovesFiles(t *testing.T) {
	g, _ := one(t, nil)
	task := writeTask(t, 1, "SELECT 1")
	g.launch(task)
	next(t, g.manifests, "manifest")
	require.DirExists(t, dir(task))
	ref := &executorv1.AttemptRef{JobId: task.GetJobId(), Stage: 1, Task: 2, AttemptId: task.GetAttemptId(), Epoch: 1}
	sweep := func(prefix string) {
		g.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Sweep{Sweep: &executorv1.SweepPrefix{Attempt: ref, Prefix: prefix}}})
	}
	sweep(strings.TrimSuffix(task.GetWrite().GetPrefix(), "/"+task.GetAttemptId())) // not the attempt's own: refused, without a word to the scheduler
	sweep(task.GetWrite().GetPrefix())
	st := next(t, g.statuses, "confirmation")
	require.Equal(t, task.GetAttemptId(), st.GetAttempt().GetAttemptId())
	require.NoDirExists(t, dir(task))

	running := writeTask(t, 1, endless)
	g.launch(running)
	awaitRunning(t, g, 1)
	ref = &executorv1.AttemptRef{JobId: running.GetJobId(), Stage: 1, Task: 2, AttemptId: running.GetAttemptId(), Epoch: 1}
	sweep(running.GetWrite().GetPrefix())
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, next(t, g.statuses, "end of the attempt").GetError().GetClass())
}

func TestExecutor_StopCancelsWhatDoesNotFinish(t *testing.T) {
	g, p := one(t, func(c *executor.Config) { c.Drain = 50 * time.Millisecond })
	task := writeTask(t, 1, endless)
	g.launch(task)
	awaitRunning(t, g, 1)
	require.NoError(t, p.stop())
	require.Contains(t, next(t, g.statuses, "status").GetError().GetMessage(), "stopping")
	require.NoDirExists(t, dir(task))
}

func TestExecutor_StopsWithoutScheduler(t *testing.T) {
	board := newSwitchboard()
	p := start(t, board, nil)
	begin := time.Now()
	require.NoError(t, p.stop())
	require.Less(t, time.Since(begin), time.Second)
}

func TestExecutor_SendsJoinToken(t *testing.T) {
	g, _ := one(t, func(c *executor.Config) { c.Token, c.Scheduler = "s3cret", "127.0.0.1:1" })
	require.Equal(t, "Bearer s3cret", next(t, g.tokens, "token"))
}

func TestNew_RefusesTokenInPlainText(t *testing.T) {
	_, err := executor.New(executor.Config{Scheduler: "scheduler.example.org:443", Token: "s3cret", Scratch: t.TempDir(), MemoryBytes: 1 << 30, Slots: 1})
	require.ErrorContains(t, err, "plain text")
	require.NotContains(t, err.Error(), "s3cret")
}

func TestNew_RefusesTooLittleMemory(t *testing.T) {
	_, err := executor.New(executor.Config{Scheduler: "localhost:1", Scratch: t.TempDir(), MemoryBytes: 1 << 20, Slots: 2})
	require.ErrorContains(t, err, "memory")
}

func TestExecutor_FullScratchNamesItAndBytes(t *testing.T) {
	g, _ := one(t, func(c *executor.Config) { c.MinFreeBytes = 1 << 62 })
	g.launch(writeTask(t, 1, "SELECT 1"))
	st := next(t, g.statuses, "status")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "bytes free")
	require.Contains(t, st.GetError().GetMessage(), "4611686018427387904 needed")
}

// Scratch of a killed process is removed at the next start; of a living one never.
func TestNew_SweepsDeadScratch(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, "signet-dead")
	require.NoError(t, os.Mkdir(dead, 0o700))
	require.NoError(t, os.WriteFile(dead+".lock", nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "x.parquet"), nil, 0o600))
	other := filepath.Join(parent, "data") // not ours
	require.NoError(t, os.Mkdir(other, 0o700))
	cfg := executor.Config{Scheduler: "localhost:1", Scratch: parent, MemoryBytes: 1 << 30, Slots: 1}
	first, err := executor.New(cfg)
	require.NoError(t, err)
	require.NoDirExists(t, dead)
	second, err := executor.New(cfg)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(parent, "signet-"+first.ID()), "a living executor keeps its scratch")
	for _, e := range []*executor.Executor{first, second} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, e.Run(ctx))
	}
	names, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, names, 1)
}
