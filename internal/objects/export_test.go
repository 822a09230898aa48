package objects

import (
	"context"
	"time"
)

// Waits makes a client wait for nothing, and gives what it would have waited at least.
func Waits(c Client) *[]time.Duration {
	var out []time.Duration
	c.(*s3Client).pause = func(ctx context.Context, _ int, least time.Duration) error {
		out = append(out, least)
		return ctx.Err()
	}
	return &out
}

// WithoutQuery is withoutQuery.
var WithoutQuery = withoutQuery
