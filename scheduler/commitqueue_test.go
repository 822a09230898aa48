package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// turns is a queue whose turns a test ends.
type turns struct {
	commitQueue
	t    *testing.T
	mine sync.Mutex
	took [][]string
	end  chan struct{}
}

// turned are the jobs of each turn so far.
func (q *turns) turned() [][]string {
	q.mine.Lock()
	defer q.mine.Unlock()
	return slices.Clone(q.took)
}

func (q *turns) forget() {
	q.mine.Lock()
	defer q.mine.Unlock()
	q.took = nil
}

func newTurns(t *testing.T) *turns {
	q := &turns{t: t, end: make(chan struct{})}
	q.spawn = func(f func()) { go f() }
	q.run = func(turn []*queuedCommit) {
		var names []string
		for _, c := range turn {
			names = append(names, c.w.job.id)
		}
		q.mine.Lock()
		q.took = append(q.took, names)
		q.mine.Unlock()
		<-q.end
		for _, c := range turn {
			c.finish(nil)
		}
	}
	return q
}

func (q *turns) commit(ctx context.Context, name, key, table string) <-chan error {
	out := make(chan error, 1)
	c := &queuedCommit{w: &writeState{job: &job{id: name}}, key: key, ctx: ctx, done: make(chan struct{}), bytes: 1}
	go func() { out <- q.commitQueue.commit(c, table) }()
	synctest.Wait()
	return out
}

// Numbers in docs/semantics.md: S58.
func TestCommitQueue_InTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		a := q.commit(t.Context(), "a", "", "t")
		q.commit(t.Context(), "elsewhere", "", "u")
		require.Equal(t, [][]string{{"a"}, {"elsewhere"}}, q.turned(), "another table has a turn of its own")
		q.forget()
		b := q.commit(t.Context(), "b", "", "t")
		cause := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := q.commit(ctx, "gone", "", "t")
		c := q.commit(t.Context(), "c", "", "t")
		cancel(cause)
		synctest.Wait()
		require.ErrorIs(t, <-gone, cause)
		require.Empty(t, q.turned())
		for range 4 {
			q.end <- struct{}{}
			synctest.Wait()
		}
		for _, out := range []<-chan error{a, b, c} {
			require.NoError(t, <-out)
		}
		require.Equal(t, [][]string{{"b"}, {"c"}}, q.turned())
		require.Empty(t, q.tables, "nothing is kept of a table that nobody commits to")
	})
}

func TestCommitQueue_TurnsAreSharedByThoseThatMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		for _, c := range [][2]string{{"first", "k"}, {"a", "k"}, {"b", "k"}, {"alone", ""}, {"other", "l"}, {"c", "k"}, {"alone too", ""}, {"other too", "l"}} {
			q.commit(t.Context(), c[0], c[1], "t")
		}
		for range 5 {
			q.end <- struct{}{}
			synctest.Wait()
		}
		require.Equal(t, [][]string{{"first"}, {"a", "b", "c"}, {"alone"}, {"other", "other too"}, {"alone too"}}, q.turned(), "and nobody waits for those who came after him and may not share")
		require.Empty(t, q.tables)
	})
}

func TestCommitQueue_GroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		q.commit(t.Context(), "first", "k", "t")
		for range maxGroup + 3 {
			q.commit(t.Context(), "job", "k", "t")
		}
		for range 3 {
			q.end <- struct{}{}
			synctest.Wait()
		}
		require.Len(t, q.turned()[1], maxGroup)
		require.Len(t, q.turned()[2], 3)
	})
}

// A job whose unit a group has leaves at once, since the group decides by its coordinator; a job's own call is waited for.
func TestCommitQueue_CancelDuringTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		cause := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		first := q.commit(t.Context(), "first", "k", "t")
		a, b := q.commit(ctx, "a", "k", "t"), q.commit(t.Context(), "b", "k", "t")
		q.end <- struct{}{}
		synctest.Wait()
		require.NoError(t, <-first)
		cancel(cause)
		synctest.Wait()
		require.ErrorIs(t, <-a, cause)
		q.end <- struct{}{}
		require.NoError(t, <-b)

		var taken *queuedCommit
		q.run = func(turn []*queuedCommit) {
			taken = turn[0]
			require.True(t, taken.begin())
			<-q.end
			taken.finish(nil)
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		alone := q.commit(ctx, "alone", "", "t")
		cancel(cause)
		synctest.Wait()
		require.Empty(t, alone, "its call ends first")
		q.end <- struct{}{}
		require.NoError(t, <-alone)
		require.False(t, (&queuedCommit{gone: true}).begin())
	})
}
