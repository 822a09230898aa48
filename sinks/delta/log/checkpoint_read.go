package log

import (
	"context"
	"errors"
)

// errCheckpoint is wrapped by errors of a checkpoint's content: an older one, or commits, may give the same table.
var errCheckpoint = errors.New("checkpoint")

func (r *replay) checkpoint(ctx context.Context, store Store, c *checkpoint) error {
	return errCheckpoint
}
