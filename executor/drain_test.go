package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
)

// What runs ends, nothing new begins, what was left is served until it is freed; then the executor leaves by itself.
func TestDrain_FinishesServesAndLeaves(t *testing.T) {
	c := join(t, oneSlot)
	first := exchangeTask("SELECT 1::BIGINT AS a", 1)
	parts := c.parts(first, c.run(t, first))
	release := c.block(t)
	running := exchangeTask("SELECT 2::BIGINT AS a", 1)
	c.launch(running)
	c.drain()
	c.drain() // again does no harm
	late := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.launch(late)
	st := statusOf(t, c.gateway, late)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, st.GetError().GetClass())
	require.Contains(t, st.GetError().GetMessage(), "no new tasks")
	release()
	st = statusOf(t, c.gateway, running)
	require.Nil(t, st.GetError())
	parts = append(parts, c.parts(running, st)...)
	require.True(t, fetchable(t, parts[0]))
	require.True(t, fetchable(t, parts[1]))
	require.Empty(t, c.left)
	c.free("job", parts[0].GetAttemptId())
	eventually(t, "freed", func() bool { return !fetchable(t, parts[0]) })
	require.True(t, fetchable(t, parts[1]), "somebody may need it")
	select {
	case <-c.ended:
		t.Fatal("it has left with an output")
	default:
	}
	c.free("job")
	require.Equal(t, "drained", next(t, c.left, "leave"))
	next(t, c.ended, "end")
	require.NoError(t, c.stop())
}

func TestDrain_IdleExecutorLeavesAtOnce(t *testing.T) {
	c := join(t, nil)
	c.drain()
	require.Equal(t, "drained", next(t, c.left, "leave"))
	next(t, c.ended, "end")
	require.NoError(t, c.stop())
}

// A drain outlives the scheduler that asked for it: the next one hears that it gets no tasks run here.
func TestDrain_NewSchedulerIsTold(t *testing.T) {
	c := join(t, nil)
	c.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1))
	c.drain()
	c.settle(t)
	c.board.down(c.gateway)
	heir := newGateway(t, 2)
	c.board.up(t, heir)
	require.Len(t, next(t, heir.registers, "registration").GetOutputs(), 1)
	require.Equal(t, "drained", next(t, heir.left, "leave"))
	c.gateway = heir
	c.free("job")
	next(t, c.ended, "end")
}

// A stop ends a drain that takes too long.
func TestDrain_StopBoundsIt(t *testing.T) {
	c := join(t, nil)
	c.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1))
	c.drain()
	c.settle(t)
	require.NoError(t, c.stop())
	require.Equal(t, "drained", next(t, c.left, "leave"))
}

// A stop gives others the time to fetch what is here, and not more.
func TestStop_ServesOutputsForAWhile(t *testing.T) {
	c := join(t, func(cfg *executor.Config) { cfg.Drain = patience })
	task := exchangeTask("SELECT 1::BIGINT AS a", 1)
	parts := c.parts(task, c.run(t, task))
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop() }()
	require.Equal(t, "stopped", next(t, c.left, "leave"))
	require.True(t, fetchable(t, parts[0]))
	c.free("job")
	require.NoError(t, next(t, stopped, "end"))

	c = join(t, nil)
	c.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1))
	require.NoError(t, c.stop())
}
