package duckdb

import (
	"context"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

type boundSource struct{ src *planv1.Source }

// BindSources creates a temporary view for each source.
func (i *Instance) BindSources(ctx context.Context, sources []*planv1.Source) error {
	return nil
}
