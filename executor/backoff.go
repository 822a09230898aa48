package executor

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles a pause up to a limit, with jitter so that executors do not come back in step.
type backoff struct{ min, max, last time.Duration }

func (b *backoff) reset() { b.last = 0 }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.min), b.max)
	return b.last/2 + rand.N(b.last/2+1) //nolint:gosec // spreading, not secrecy
}

// sleep waits; false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
