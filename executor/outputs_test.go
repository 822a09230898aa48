package executor_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// S44, T9: what is named goes, what is not stays.
func TestFree_ByAttemptAndByJob(t *testing.T) {
	c := join(t, nil)
	var parts []*planv1.ExchangePart
	for _, job := range []string{"job", "job", "job", "other"} {
		task := exchangeTask("SELECT 1::BIGINT AS a", 1)
		task.JobId = job
		parts = append(parts, c.parts(task, c.run(t, task))...)
	}
	here := func() (out string) {
		for i, p := range parts {
			if fetchable(t, p) {
				out += strconv.Itoa(i)
			}
		}
		return out
	}
	require.Equal(t, "0123", here())
	c.free("other", parts[0].GetAttemptId()) // not of that job
	c.free("job", parts[1].GetAttemptId())
	eventually(t, "one is freed", func() bool { return here() == "023" })
	c.free("job")
	eventually(t, "the job is freed", func() bool { return here() == "3" })
	eventually(t, "its files are gone", func() bool {
		left, err := os.ReadDir(filepath.Join(c.dir, "outputs"))
		return err == nil && len(left) == 1 && left[0].Name() == parts[3].GetAttemptId()
	})
}

// S44: an attempt that is still at work when its job's data is freed leaves nothing.
func TestFree_WhileTheTaskWorks(t *testing.T) {
	c := join(t, oneSlot)
	release := c.block(t)
	task := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.launch(task)
	c.free("job")
	release()
	st := statusOf(t, c.gateway, task)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "nobody needs its output")
	eventually(t, "nothing is left", func() bool {
		left, _ := os.ReadDir(filepath.Join(c.dir, "outputs"))
		return len(left) == 0
	})
}

// S71: a new scheduler is told of the outputs; what it does not know goes, and the rest stays.
func TestReconnect_OutputsAreListedAndKeptIfKnown(t *testing.T) {
	c := join(t, nil)
	tasks, parts := []*planv1.Task{}, []*planv1.ExchangePart{}
	for range 3 {
		task := exchangeTask("SELECT 1::BIGINT AS a", 1)
		tasks, parts = append(tasks, task), append(parts, c.parts(task, c.run(t, task))...)
	}
	c.settle(t) // the acknowledgements are through
	c.board.down(c.gateway)
	heir := newGateway(t, 2)
	heir.adopt = func(ref *executorv1.AttemptRef) bool { return ref.GetAttemptId() == tasks[1].GetAttemptId() }
	c.board.up(t, heir)
	reg := next(t, heir.registers, "registration with the new scheduler")
	require.Empty(t, reg.GetAttempts())
	require.Len(t, reg.GetOutputs(), 3)
	require.Equal(t, c.address, reg.GetExchangeAddress())
	for _, ref := range reg.GetOutputs() {
		require.Equal(t, "job", ref.GetJobId())
		require.Equal(t, int32(1), ref.GetStage())
		require.Equal(t, uint64(1), ref.GetEpoch())
	}
	eventually(t, "unknown outputs are freed", func() bool { return !fetchable(t, parts[0]) && !fetchable(t, parts[2]) })
	require.True(t, fetchable(t, parts[1]))
}

// A success that nobody has acknowledged is taken back when its output is freed: nobody must count on it.
func TestReconnect_UnacknowledgedSuccessFailsWithItsOutput(t *testing.T) {
	c := &cluster{board: newSwitchboard(), gateway: newGateway(t, 1)}
	c.ackStatus = func(*executorv1.TaskStatus) bool { return false }
	c.board.up(t, c.gateway)
	c.process = start(t, c.board, nil)
	next(t, c.registers, "registration")
	task := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.run(t, task)
	c.board.down(c.gateway)
	heir := newGateway(t, 2)
	heir.adopt = func(*executorv1.AttemptRef) bool { return false }
	c.board.up(t, heir)
	require.Len(t, next(t, heir.registers, "registration").GetAttempts(), 1)
	eventually(t, "the success is taken back", func() bool {
		return statusOf(t, heir, task).GetError().GetClass() == planv1.ErrorClass_ERROR_CLASS_KILLED
	})
}
