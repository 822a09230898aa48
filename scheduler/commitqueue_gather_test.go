package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// endAfter ends the turn that runs after a while.
func (q *turns) endAfter(d time.Duration) {
	time.Sleep(d) // of the bubble's clock
	q.end <- struct{}{}
	synctest.Wait()
}

// Behind a shared turn those are waited for that are on their way, for each no longer than the last turn took.
func TestCommitQueue_GathersWhereManyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		first := q.expect("t")
		require.Len(t, q.tables, 1)
		q.commit(t.Context(), "alone", "k", "t")
		first()
		first()
		require.Equal(t, [][]string{{"alone"}}, q.turned(), "nobody waits before a turn was shared")
		q.commit(t.Context(), "a", "k", "t")
		q.commit(t.Context(), "b", "k", "t")
		q.endAfter(time.Second)
		require.Equal(t, []string{"a", "b"}, q.turned()[1])

		late, later, never := q.expect("t"), q.expect("t"), q.expect("t")
		q.commit(t.Context(), "c", "k", "t")
		q.endAfter(20 * time.Millisecond)
		require.Len(t, q.turned(), 2, "two come still")
		time.Sleep(10 * time.Millisecond)
		q.commit(t.Context(), "d", "k", "t")
		late()
		later()
		synctest.Wait()
		require.Len(t, q.turned(), 2)
		time.Sleep(19 * time.Millisecond)
		synctest.Wait()
		require.Len(t, q.turned(), 2, "another may come after that one")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"c", "d"}, q.turned()[2], "as long as the last turn took, and no longer")

		q.commit(t.Context(), "e", "k", "t")
		q.commit(t.Context(), "f", "k", "t")
		never()
		q.endAfter(time.Millisecond)
		require.Equal(t, []string{"e", "f"}, q.turned()[3], "nobody else comes")
		q.endAfter(time.Hour)
		require.Empty(t, q.tables, "nothing is kept of a table that nobody commits to")
	})
}

// However many come, one after another, the first does not wait for all of them.
func TestCommitQueue_GathersForNoLongerThanFourTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		never := q.expect("t")
		for _, name := range []string{"a", "b", "c"} {
			q.commit(t.Context(), name, "k", "t")
		}
		q.endAfter(time.Hour)
		q.commit(t.Context(), "0", "k", "t")
		q.endAfter(10 * time.Millisecond)
		for _, name := range []string{"1", "2", "3", "4"} {
			require.Len(t, q.turned(), 2)
			time.Sleep(9 * time.Millisecond)
			q.commit(t.Context(), name, "k", "t")
			synctest.Wait()
		}
		require.Len(t, q.turned(), 2)
		time.Sleep(4 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, q.turned()[2])
		q.endAfter(0)
		never()
		require.Empty(t, q.tables)
	})
}

// One that is waited for and does not come holds up the others for a bounded time.
func TestCommitQueue_GathersForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns(t)
		never := q.expect("t")
		for _, name := range []string{"a", "b", "c"} {
			q.commit(t.Context(), name, "k", "t")
		}
		q.endAfter(time.Hour)
		q.commit(t.Context(), "d", "k", "t")
		q.endAfter(time.Hour)
		require.Len(t, q.turned(), 2)
		time.Sleep(maxGather)
		synctest.Wait()
		require.Equal(t, [][]string{{"a"}, {"b", "c"}, {"d"}}, q.turned())
		q.commit(t.Context(), "e", "k", "t")
		q.endAfter(time.Hour)
		require.Len(t, q.turned(), 4, "the last turn was not shared")
		q.endAfter(time.Hour)
		never()
		require.Empty(t, q.tables)
	})
}
