package log

import (
	"context"
	"time"
)

func versionAt(ctx context.Context, store Store, at time.Time) (int64, error) {
	return 0, ErrNoVersion
}
