package write

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
	"github.com/signet-io/signet/executor/transform"
)

// route finds the partition of each row group whose statistics prove that it has one: the transforms other than bucket keep the order of values, so that a
// transform that is equal at both bounds is equal between them. They are computed by the very SQL that routes rows.
func (s *splicer) route(ctx context.Context, in *splice.Input, l *splice.Layout, f *planv1.PinnedFile, verdicts []verdict) error {
	if len(s.p.keys) == 0 {
		return nil
	}
	for n := range verdicts {
		if verdicts[n].copied() {
			verdicts[n].partition = make([]*planv1.Value, len(s.p.keys))
		}
	}
	for k := range s.p.keys {
		if at, constant := s.constants[s.p.spec.GetPartition()[k].GetSourceId()]; constant {
			for n := range verdicts {
				if verdicts[n].copied() {
					verdicts[n].partition[k] = f.GetConstants()[at]
				}
			}
			continue
		}
		if err := s.routeBy(ctx, k, in, l, verdicts); err != nil {
			return err
		}
	}
	return nil
}

// routeBatch is how many row groups are looked at by one query.
const routeBatch = 2000

func (s *splicer) routeBy(ctx context.Context, k int, in *splice.Input, l *splice.Layout, verdicts []verdict) error {
	key, pf := s.p.keys[k], s.p.spec.GetPartition()[k]
	if key.Void {
		for n := range verdicts {
			if verdicts[n].copied() {
				verdicts[n].partition[k] = &planv1.Value{}
			}
		}
		return nil
	}
	leaf := l.LeafOf(pf.GetSourceId())
	var ask []*verdict
	var bounds []*splice.Range
	for n := range verdicts {
		v := &verdicts[n]
		if !v.copied() {
			continue
		}
		r, null, reason := provable(in, v.group, leaf, pf, v.rows)
		switch {
		case reason != "":
			v.reason = fmt.Sprintf("partition field %q: %s", pf.GetName(), reason)
		case null:
			v.partition[k] = &planv1.Value{}
		default:
			ask, bounds = append(ask, v), append(bounds, r)
		}
	}
	for start := 0; start < len(ask); start += routeBatch {
		end := min(start+routeBatch, len(ask))
		if err := s.routeRows(ctx, k, leaf.Field.GetType(), ask[start:end], bounds[start:end]); err != nil {
			return err
		}
	}
	return nil
}

// provable says what the statistics of a row group tell about a partition field: bounds, nothing but NULL, or a reason why nothing.
func provable(in *splice.Input, group int, leaf *splice.Leaf, pf *planv1.PartitionField, rows int64) (r *splice.Range, null bool, reason string) {
	if leaf == nil {
		return nil, false, "its column is not one of the file's"
	}
	if isFloat(leaf.Field.GetType().GetKind()) {
		return nil, false, "statistics do not say whether there are NaNs"
	}
	r = in.Range(leaf, group)
	switch {
	case r == nil || r.Nulls < 0 || r.Low == nil && r.Nulls != rows:
		return nil, false, "the row group has no statistics of its column"
	case r.Nulls == rows && leaf.Field.GetRequired():
		return nil, false, "it is required, and the row group has no value of it"
	case r.Nulls == rows:
		return nil, true, ""
	case r.Nulls > 0:
		return nil, false, "the row group has NULLs and other values"
	case pf.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_BUCKET && splice.Compare(r.Low, r.High) != 0:
		return nil, false, "the row group has several values, which may be in several buckets"
	}
	return r, false, ""
}

// routeRows computes the transform of both bounds of row groups.
func (s *splicer) routeRows(ctx context.Context, k int, t *planv1.Type, ask []*verdict, bounds []*splice.Range) error {
	pf := s.p.spec.GetPartition()[k]
	typ, err := duckdb.SQLType(t)
	if err != nil {
		return err
	}
	low, err := transform.New(pf.GetTransform(), pf.GetParam(), t, "lo")
	if err != nil {
		return err
	}
	high, err := transform.New(pf.GetTransform(), pf.GetParam(), t, "hi")
	if err != nil {
		return err
	}
	rows := make([]string, len(ask))
	for n, r := range bounds {
		lo, err := literal(r.Low, t)
		if err != nil {
			return err
		}
		hi, err := literal(r.High, t)
		if err != nil {
			return err
		}
		rows[n] = fmt.Sprintf("(%d, %s, %s)", n, lo, hi)
	}
	q := fmt.Sprintf("SELECT n, CAST(TRY(%s) AS VARCHAR), CAST(TRY(%s) AS VARCHAR) FROM (SELECT n, CAST(lo AS %s) AS lo, CAST(hi AS %s) AS hi FROM (VALUES %s) AS v(n, lo, hi))",
		low.SQL, high.SQL, typ, typ, strings.Join(rows, ", "))
	res, err := s.inst.Conn().QueryContext(ctx, q)
	if err != nil {
		return fmt.Errorf("partition field %q: bounds of row groups: %w", pf.GetName(), err)
	}
	defer res.Close()
	for res.Next() {
		var n int
		var lo, hi sql.NullString
		if err := res.Scan(&n, &lo, &hi); err != nil {
			return err
		}
		v := ask[n]
		if !lo.Valid || !hi.Valid || lo.String != hi.String {
			v.reason = fmt.Sprintf("partition field %q: the row group may have rows of several partitions", pf.GetName())
			continue
		}
		if v.partition[k], err = s.p.keys[k].Parse(lo.String); err != nil {
			return fmt.Errorf("partition field %q: %w", pf.GetName(), err)
		}
	}
	return res.Err()
}
