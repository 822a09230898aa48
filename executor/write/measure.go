package write

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// measure computes what the footers of copied files do not say: how many NaNs a column has, without which bounds mean little, and the bounds and NULLs
// of columns whose statistics are missing or not trusted. Only such columns are read.
func (p *plan) measure(ctx context.Context, inst *duckdb.Instance, files []*written) error {
	for _, f := range files {
		var leaves []leaf
		var places []int
		var sums []string
		for n, l := range p.leaves {
			if p.unmeasured(l, f.stats[l.key]) {
				places = append(places, n)
				leaves = append(leaves, l)
				sums = append(sums, measures(l)...)
			}
		}
		if len(leaves) == 0 {
			continue
		}
		if f.stored != nil {
			if err := sketch(f, places); err != nil {
				return err
			}
		}
		got, dest := make([]sql.NullString, len(sums)), make([]any, len(sums))
		for n := range got {
			dest[n] = &got[n]
		}
		if err := inst.Conn().QueryRowContext(ctx, "SELECT "+strings.Join(sums, ", ")+" FROM "+readFiles([]*written{f}, "")).Scan(dest...); err != nil {
			return fmt.Errorf("measure columns of copied row groups: %w", err)
		}
		for n, l := range leaves {
			s, row := f.stats[l.key], got[4*n:4*n+4]
			s.spliced, s.low, s.high = false, nil, nil
			s.nulls = number(row[0].String)
			s.min, s.max = text(row[1]), text(row[2])
			if isFloat(l.field.GetType().GetKind()) {
				s.nans = number(row[3].String)
				any := s.nans != 0
				s.hasNaN = &any
			}
		}
	}
	return nil
}

func (p *plan) unmeasured(l leaf, s *colStats) bool {
	if l.repeated || l.mode.GetKind() < planv1.MetricsKind_METRICS_KIND_COUNTS {
		return false
	}
	if isFloat(l.field.GetType().GetKind()) || s.nulls < 0 {
		return true
	}
	return !s.bounded && l.mode.GetKind() >= planv1.MetricsKind_METRICS_KIND_TRUNCATE
}

func text(s sql.NullString) *string {
	if !s.Valid {
		return nil
	}
	return &s.String
}

// measures are the NULLs, the least and the greatest value, and the NaNs of a column, as COPY's own statistics have them.
func measures(l leaf) []string {
	value, nans := l.expr, "NULL"
	switch l.field.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_FLOAT32, planv1.TypeKind_TYPE_KIND_FLOAT64:
		value, nans = "CASE WHEN isnan("+l.expr+") THEN NULL ELSE "+l.expr+" END", "CAST(count(*) FILTER (WHERE isnan("+l.expr+")) AS VARCHAR)"
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		value = "CAST(" + l.expr + " AS INTEGER)"
	}
	low, high := "min("+value+")", "max("+value+")"
	switch l.field.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_BINARY, planv1.TypeKind_TYPE_KIND_FIXED:
		low, high = "hex("+low+")", "hex("+high+")"
	}
	return []string{"CAST(count(*) - count(" + l.expr + ") AS VARCHAR)", "CAST(" + low + " AS VARCHAR)", "CAST(" + high + " AS VARCHAR)", nans}
}
