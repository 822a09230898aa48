package signed

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry bounds how often something is tried, and the pauses between.
type Retry struct {
	Tries    int           // 8
	Denied   int           // of Tries those with new signatures because the store denied the old ones; 3
	Min, Max time.Duration // 100 ms, 10 s
}

// Or fills in what is not set.
func (r Retry) Or() Retry {
	if r.Tries <= 0 {
		r.Tries = 8
	}
	if r.Denied <= 0 {
		r.Denied = 3
	}
	if r.Min <= 0 {
		r.Min = 100 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = 10 * time.Second
	}
	return r
}

// Do calls f until it succeeds, until it fails for good, or until it has been tried often enough. renew: the store has denied the request before, so
// that its signature may have run out.
func (r Retry) Do(ctx context.Context, f func(renew bool) error) error {
	r = r.Or()
	renew, denied := false, 0
	for try, pause := 1, r.Min; ; try, pause = try+1, min(2*pause, r.Max) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := f(renew)
		if err == nil || ctx.Err() != nil || try >= r.Tries {
			return err
		}
		renew = errors.Is(err, ErrDenied)
		if renew {
			denied++
		}
		if renew && denied >= r.Denied || !renew && !Again(err) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1)) //nolint:gosec // spreading, not secrecy
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
