package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor"
)

func (c *cluster) answer(task *planv1.Task) {
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: task, Polled: true}}})
}

// An executor asks for as many tasks as it could run and has not asked for, and in a new session for all of them again.
func TestPoll_AsksForFreeSlots(t *testing.T) {
	c := join(t, func(cfg *executor.Config) { cfg.Slots = 2 })
	require.EqualValues(t, 2, next(t, c.polls, "poll"))
	c.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1)) // unasked: both that were asked for are still to come
	c.settle(t)
	require.Empty(t, c.polls)
	first := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.answer(first)
	require.Nil(t, statusOf(t, c.gateway, first).GetError())
	require.EqualValues(t, 1, next(t, c.polls, "poll"))

	// A task whose end is not acknowledged holds its slot.
	c.board.down(c.gateway)
	heir := newGateway(t, 2)
	heir.ackStatus = func(*executorv1.TaskStatus) bool { return false }
	c.board.up(t, heir)
	c.gateway = heir
	require.EqualValues(t, 2, next(t, c.polls, "poll"))
	second := exchangeTask("SELECT 1::BIGINT AS a", 1)
	second.Epoch = 2
	c.answer(second)
	require.Nil(t, statusOf(t, c.gateway, second).GetError())
	c.settle(t)
	require.Empty(t, c.polls)

	c.board.down(c.gateway)
	heir = newGateway(t, 3)
	heir.adopt = func(*executorv1.AttemptRef) bool { return true }
	c.board.up(t, heir)
	c.gateway = heir
	require.EqualValues(t, 1, next(t, c.polls, "poll"))
	require.EqualValues(t, 1, next(t, c.polls, "poll"), "once its end is acknowledged")
}

func TestPoll_NothingWhileDraining(t *testing.T) {
	c := join(t, oneSlot)
	require.EqualValues(t, 1, next(t, c.polls, "poll"))
	task := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.run(t, task)
	c.drain()
	last := exchangeTask("SELECT 1::BIGINT AS a", 1)
	c.answer(last)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, statusOf(t, c.gateway, last).GetError().GetClass())
	c.settle(t)
	require.Empty(t, c.polls)
}

// A drain that has a limit ends although somebody may still need what is here; a later one may set it.
func TestDrain_Limit(t *testing.T) {
	c := join(t, nil)
	c.run(t, exchangeTask("SELECT 1::BIGINT AS a", 1))
	c.drain()
	c.settle(t)
	select {
	case <-c.ended:
		t.Fatal("it has left with an output")
	default:
	}
	c.message(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: &executorv1.Drain{LimitMillis: 1}}})
	require.Equal(t, "drained", next(t, c.left, "leave"))
	next(t, c.ended, "end")
	require.NoError(t, c.stop())
}
