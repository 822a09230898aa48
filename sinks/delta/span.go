package delta

import (
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// outcomes is a set of the values that a predicate may have for some row.
type outcomes uint8

// The values of SQL's logic.
const (
	isTrueSome outcomes = 1 << iota
	isFalseSome
	isNullSome
)

const anyOutcome = isTrueSome | isFalseSome | isNullSome

func (o outcomes) has(v outcomes) bool { return o&v != 0 }

func (o outcomes) not() outcomes {
	out := o & isNullSome
	if o.has(isTrueSome) {
		out |= isFalseSome
	}
	if o.has(isFalseSome) {
		out |= isTrueSome
	}
	return out
}

// and joins every pair of values that two terms may have.
func (o outcomes) and(p outcomes) outcomes {
	var out outcomes
	if o.has(isFalseSome) || p.has(isFalseSome) {
		out |= isFalseSome
	}
	if o.has(isTrueSome) && p.has(isTrueSome) {
		out |= isTrueSome
	}
	if o.has(isNullSome) && p.has(isTrueSome|isNullSome) || p.has(isNullSome) && o.has(isTrueSome|isNullSome) {
		out |= isNullSome
	}
	return out
}

func (o outcomes) or(p outcomes) outcomes { return o.not().and(p.not()).not() }

// span is what is known of a column's values in some rows: which kinds of them may occur, and between which bounds the plain ones lie.
type span struct {
	null, nan, plain bool
	lower, upper     value.Value // included; NULL: no bound
}

func unknown() span { return span{null: true, nan: true, plain: true} }

// only is the span of one value.
func only(v value.Value) span {
	switch {
	case v.IsNull():
		return span{null: true}
	case v.IsNaN():
		return span{nan: true}
	}
	return span{plain: true, lower: v, upper: v}
}

// compared gives the outcomes of a comparison with one value. NaN is equal to itself and above all others.
func (s span) compared(op planv1.CompareOp, v value.Value) outcomes {
	var out outcomes
	if s.null {
		out |= isNullSome
	}
	if s.nan {
		sign := 1
		if v.IsNaN() {
			sign = 0
		}
		out |= exactly(op, sign)
	}
	if !s.plain {
		return out
	}
	lo, hi := -1, 1
	if !s.lower.IsNull() {
		lo = value.Compare(s.lower, v)
	}
	switch {
	case v.IsNaN():
		hi = -1
	case !s.upper.IsNull():
		hi = value.Compare(s.upper, v)
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

// exactly is the outcome for a value that compares with the constant as sign says.
func exactly(op planv1.CompareOp, sign int) outcomes {
	var yes bool
	switch op {
	case planv1.CompareOp_COMPARE_OP_EQ, planv1.CompareOp_COMPARE_OP_IN:
		yes = sign == 0
	case planv1.CompareOp_COMPARE_OP_NE:
		yes = sign != 0
	case planv1.CompareOp_COMPARE_OP_LT:
		yes = sign < 0
	case planv1.CompareOp_COMPARE_OP_LE:
		yes = sign <= 0
	case planv1.CompareOp_COMPARE_OP_GT:
		yes = sign > 0
	case planv1.CompareOp_COMPARE_OP_GE:
		yes = sign >= 0
	default:
		return anyOutcome
	}
	if yes {
		return isTrueSome
	}
	return isFalseSome
}

// in gives the outcomes of IN.
func (s span) in(values []value.Value) outcomes {
	if len(values) == 0 {
		return isFalseSome
	}
	var out outcomes
	sure := false // every value is one of the list
	for _, v := range values {
		o := s.compared(planv1.CompareOp_COMPARE_OP_EQ, v)
		out |= o
		sure = sure || !o.has(isFalseSome)
	}
	if sure {
		out &^= isFalseSome
	}
	return out
}

// startsWith gives the outcomes of a comparison with a prefix.
func (s span) startsWith(v value.Value) outcomes {
	var out outcomes
	if s.null {
		out |= isNullSome
	}
	if !s.plain {
		return out
	}
	prefix := v.Text()
	below := !s.upper.IsNull() && s.upper.Text() < prefix                                               // all of them
	above := !s.lower.IsNull() && s.lower.Text() > prefix && !strings.HasPrefix(s.lower.Text(), prefix) // all of them
	within := !s.lower.IsNull() && !s.upper.IsNull() && strings.HasPrefix(s.lower.Text(), prefix) && strings.HasPrefix(s.upper.Text(), prefix)
	if !below && !above {
		out |= isTrueSome
	}
	if !within {
		out |= isFalseSome
	}
	return out
}

func (s span) isNull() outcomes {
	var out outcomes
	if s.null {
		out |= isTrueSome
	}
	if s.nan || s.plain {
		out |= isFalseSome
	}
	return out
}
