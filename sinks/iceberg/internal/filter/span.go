package filter

import (
	"bytes"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// span is what is known of a column's values in some rows: which kinds of them may occur, and between which bounds the numbers, strings and so on lie.
type span struct {
	null, nan, plain bool          // may occur
	lower, upper     *planv1.Value // of the plain ones, included; nil: no bound
	open             bool          // upper stands for every value that begins with it
	bucket           func(*planv1.Value) bool
}

func unknown() span { return span{null: true, nan: true, plain: true} }

// meet joins two true statements about the same rows.
func (s span) meet(o span) span {
	out := span{null: s.null && o.null, nan: s.nan && o.nan, plain: s.plain && o.plain, lower: s.lower, upper: s.upper, open: s.open, bucket: s.bucket}
	if o.lower != nil && (s.lower == nil || compare(o.lower, s.lower) > 0) {
		out.lower = o.lower
	}
	switch {
	case o.upper == nil:
	case s.upper == nil, !s.open && !o.open && compare(o.upper, s.upper) < 0, s.open && !o.open && beyond(s, o.upper) >= 0, s.open && o.open && hasPrefix(o.upper, s.upper):
		out.upper, out.open = o.upper, o.open
	}
	if o.bucket != nil {
		if prev := out.bucket; prev != nil {
			out.bucket = func(v *planv1.Value) bool { return prev(v) && o.bucket(v) }
		} else {
			out.bucket = o.bucket
		}
	}
	return out
}

// compare orders values as SQL does: NaN is equal to itself and above everything, the two zeros are equal.
func compare(a, b *planv1.Value) int {
	x, y := value.IsNaN(a), value.IsNaN(b)
	switch {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	return value.Compare(value.PlusZero(a), value.PlusZero(b))
}

func hasPrefix(v, prefix *planv1.Value) bool {
	if p, ok := prefix.GetKind().(*planv1.Value_String_); ok {
		return strings.HasPrefix(v.GetString_(), p.String_)
	}
	return bytes.HasPrefix(v.GetBinary(), prefix.GetBinary())
}

// below orders the lower bound against v; without one it is below everything.
func below(s span, v *planv1.Value) int {
	if s.lower == nil {
		return -1
	}
	return compare(s.lower, v)
}

// beyond orders the upper bound against v; without one it is above everything but NaN.
func beyond(s span, v *planv1.Value) int {
	switch {
	case value.IsNaN(v):
		return -1
	case s.upper == nil, s.open && hasPrefix(v, s.upper):
		return 1
	}
	return compare(s.upper, v)
}

// outcomes of a comparison with one value.
func (s span) compared(op planv1.CompareOp, v *planv1.Value) Outcomes {
	var out Outcomes
	if s.null {
		out |= Null
	}
	if s.nan { // compares as one value that is above all others
		c := 1
		if value.IsNaN(v) {
			c = 0
		}
		out |= exactly(op, c)
	}
	if !s.plain {
		return out
	}
	lo, hi := below(s, v), beyond(s, v)
	if s.bucket != nil && !value.IsNaN(v) && !s.bucket(v) {
		switch op {
		case planv1.CompareOp_COMPARE_OP_EQ:
			return out | False
		case planv1.CompareOp_COMPARE_OP_NE:
			return out | True
		}
	}
	// Every sign that a value between the bounds may have against v.
	if lo < 0 {
		out |= exactly(op, -1)
	}
	if lo <= 0 && hi >= 0 {
		out |= exactly(op, 0)
	}
	if hi > 0 {
		out |= exactly(op, 1)
	}
	return out
}

// exactly is the outcome for a value that compares with the constant as c says.
func exactly(op planv1.CompareOp, c int) Outcomes {
	var yes bool
	switch op {
	case planv1.CompareOp_COMPARE_OP_EQ:
		yes = c == 0
	case planv1.CompareOp_COMPARE_OP_NE:
		yes = c != 0
	case planv1.CompareOp_COMPARE_OP_LT:
		yes = c < 0
	case planv1.CompareOp_COMPARE_OP_LE:
		yes = c <= 0
	case planv1.CompareOp_COMPARE_OP_GT:
		yes = c > 0
	case planv1.CompareOp_COMPARE_OP_GE:
		yes = c >= 0
	default:
		return anything
	}
	if yes {
		return True
	}
	return False
}

func (s span) startsWith(p *planv1.Value) Outcomes {
	var out Outcomes
	if s.null {
		out |= Null
	}
	if !s.plain {
		return out
	}
	prefix := span{lower: p, upper: p, open: true}
	// Some value with the prefix lies between the bounds unless all are below or above.
	if (s.lower == nil || beyond(prefix, s.lower) >= 0) && (s.upper == nil || compare(s.upper, p) >= 0 || s.open && hasPrefix(p, s.upper)) {
		out |= True
	}
	if s.lower == nil || s.upper == nil || !hasPrefix(s.lower, p) || !hasPrefix(s.upper, p) {
		out |= False
	}
	return out
}

func (s span) isNull() Outcomes {
	var out Outcomes
	if s.null {
		out |= True
	}
	if s.nan || s.plain {
		out |= False
	}
	return out
}
