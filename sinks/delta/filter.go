package delta

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/internal/skip"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/transaction"
)

func (p *plan) filter(pred *planv1.Predicate) (*skip.Filter, error) {
	f, err := newFilter(p.schema, p.columns, pred)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transaction.ErrInvalid, err)
	}
	return f, nil
}

// newFilter reads a predicate over a table's columns, by the ids that schemaOf gives them.
func newFilter(s *schema.Schema, parts partition.Columns, pred *planv1.Predicate) (*skip.Filter, error) {
	return skip.New(s, parts, pred, valueOf)
}
