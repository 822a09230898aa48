package executor_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/internal/exchangeclient"
)

// cluster is one executor and its scheduler.
type cluster struct {
	*gateway
	*process
	board   *switchboard
	address string // of its exchange
}

func join(t testing.TB, change func(*executor.Config)) *cluster {
	t.Helper()
	c := &cluster{board: newSwitchboard(), gateway: newGateway(t, 1)}
	c.board.up(t, c.gateway)
	c.process = start(t, c.board, func(cfg *executor.Config) {
		cfg.Drain = 50 * time.Millisecond // few tests free what they leave
		if change != nil {
			change(cfg)
		}
	})
	c.address = next(t, c.registers, "registration").GetExchangeAddress()
	require.NotEmpty(t, c.address)
	return c
}

func exchangeTask(sql string, partitions int32, sources ...*planv1.Source) *planv1.Task {
	ex := &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Partitions: 1, Ticket: "ticket"}
	if partitions > 1 {
		ex.Kind, ex.Partitions, ex.Keys = planv1.ExchangeKind_EXCHANGE_KIND_HASH, partitions, []int32{0}
	}
	return &planv1.Task{JobId: "job", Stage: 1, AttemptId: uuid.NewString(), Epoch: 1, Sql: sql, Sources: sources, Work: &planv1.Task_Exchange{Exchange: ex}}
}

var oneColumn = []*planv1.Column{{Name: "a", EngineType: "BIGINT"}}

// parts are those of a task's output that c has reported.
func (c *cluster) parts(task *planv1.Task, st *executorv1.TaskStatus) []*planv1.ExchangePart {
	var out []*planv1.ExchangePart
	for _, p := range st.GetOutput().GetPartitions() {
		out = append(out, &planv1.ExchangePart{
			Task: task.GetTask(), AttemptId: task.GetAttemptId(), Partition: p.GetPartition(), ExecutorId: c.ID(), Address: c.address, Ticket: "ticket",
			Rows: p.GetRows(), Bytes: p.GetBytes(), Sha256: p.GetSha256(),
		})
	}
	return out
}

// run launches a task and answers its end, which must be a success.
func (c *cluster) run(t testing.TB, task *planv1.Task) *executorv1.TaskStatus {
	t.Helper()
	c.launch(task)
	st := statusOf(t, c.gateway, task)
	require.Nil(t, st.GetError(), "%v", st.GetError())
	return st
}

func source(view string, parts []*planv1.ExchangePart) *planv1.Source {
	return &planv1.Source{View: view, Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{Stage: 1, Columns: oneColumn, Parts: parts}}}
}

func resultTask(sql string, sources ...*planv1.Source) *planv1.Task {
	return &planv1.Task{JobId: "job", Stage: 2, AttemptId: uuid.NewString(), Epoch: 1, Sql: sql, Sources: sources, Work: &planv1.Task_Result{Result: &planv1.ResultTask{}}}
}

// numbers are the BIGINTs of a pushed result.
func numbers(t testing.TB, o output) []int64 {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(o.data))
	require.NoError(t, err)
	var out []int64
	for r.Next() {
		out = append(out, r.RecordBatch().Column(0).(*array.Int64).Int64Values()...)
	}
	require.NoError(t, r.Err())
	return out
}

func (c *cluster) free(job string, attempts ...string) {
	c.t.Helper()
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Free{Free: &executorv1.FreeOutputs{JobId: job, AttemptIds: attempts}}})
}

func (c *cluster) drain() {
	c.t.Helper()
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: &executorv1.Drain{Reason: "maintenance"}}})
}

// settle returns when the executor has dealt with all that it was sent before.
func (c *cluster) settle(t testing.TB) {
	t.Helper()
	id := uuid.NewString()
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: &executorv1.Analyze{RequestId: id, Sql: "SELECT 1"}}})
	require.Equal(t, id, next(t, c.analyzed, "analysis").GetRequestId())
}

// block fills the executor's only slot until the function it answers is called.
func (c *cluster) block(t testing.TB) (release func()) {
	t.Helper()
	task := writeTask(t, 1, endless)
	c.launch(task)
	awaitRunning(t, c.gateway, 1)
	return func() {
		c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Cancel{Cancel: &executorv1.CancelTask{Attempt: &executorv1.AttemptRef{AttemptId: task.GetAttemptId()}, Reason: "enough"}}})
	}
}

func oneSlot(c *executor.Config) { c.Slots = 1 }

// fetchable tells whether a part can be had now.
func fetchable(t testing.TB, p *planv1.ExchangePart) bool {
	t.Helper()
	d := exchangeclient.NewDialer(exchangeclient.Config{Tries: 1, MinPause: time.Millisecond})
	defer d.Close()
	var out bytes.Buffer
	err := exchangeclient.Fetch(t.Context(), d, p, &out)
	return err == nil
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, 2*time.Millisecond, what)
}
