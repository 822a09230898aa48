package signed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/signed"
)

func TestRetry_Bounds(t *testing.T) {
	quick := signed.Retry{Min: time.Microsecond, Max: time.Microsecond}
	odd := errors.New("odd")
	for name, row := range map[string]struct {
		err  error
		want int
	}{
		"success":                      {nil, 1},
		"what no trying mends":         {odd, 1},
		"network":                      {&signed.Error{Err: signed.ErrNetwork}, 8},
		"denied, with signatures anew": {&signed.Error{Err: signed.ErrDenied}, 3},
	} {
		n := 0
		err := quick.Do(t.Context(), func(renew bool) error {
			require.Equal(t, n > 0 && errors.Is(row.err, signed.ErrDenied), renew, "%s, try %d", name, n)
			n++
			return row.err
		})
		require.Equal(t, row.err, err, name)
		require.Equal(t, row.want, n, name)
	}
}

func TestRetry_TriesNothingAfterTheEnd(t *testing.T) {
	over := errors.New("the attempt is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	err := signed.Retry{}.Do(ctx, func(bool) error {
		t.Error("tried")
		return nil
	})
	require.ErrorIs(t, err, over)
}
