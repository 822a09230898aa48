package write

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// columnMetrics turns DuckDB's statistics of one file into typed ones, as far as each column's mode allows (X10).
func (p *plan) columnMetrics(f *written) []*planv1.ColumnMetrics {
	var out []*planv1.ColumnMetrics
	for _, l := range p.leaves {
		s := f.stats[l.key]
		if s == nil || l.mode.GetKind() < planv1.MetricsKind_METRICS_KIND_COUNTS || l.field.GetId() == 0 {
			continue
		}
		m := &planv1.ColumnMetrics{FieldId: l.field.GetId(), SizeBytes: known(s.size), ValueCount: known(s.values)}
		if !l.deep {
			m.NullCount = known(s.nulls)
		}
		m.NanCount = nanCount(l, s)
		m.Lower, m.Upper = bounds(l, s)
		out = append(out, m)
	}
	return out
}

func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func nanCount(l leaf, s *colStats) *int64 {
	switch {
	case !isFloat(l.field.GetType().GetKind()) || s.hasNaN == nil:
		return nil
	case !*s.hasNaN:
		return known(0)
	default:
		return known(s.nans)
	}
}
