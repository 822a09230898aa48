package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Numbers in docs/semantics.md: S58.
func TestCommitQueue_InTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q commitQueue
		leave, err := q.enter(t.Context(), "a")
		require.NoError(t, err)
		other, err := q.enter(t.Context(), "b")
		require.NoError(t, err, "another table has a turn of its own")
		other()

		var order []int
		for i := range 3 {
			go func() {
				leave, err := q.enter(t.Context(), "a")
				require.NoError(t, err)
				order = append(order, i)
				leave()
			}()
			synctest.Wait()
		}
		cause := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err = q.enter(ctx, "a")
		require.ErrorIs(t, err, cause)
		require.Empty(t, order)
		leave()
		leave() // passing it on twice does no harm
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order)
		require.Empty(t, q.tables, "nothing is kept of a table that nobody commits to")
	})
}
