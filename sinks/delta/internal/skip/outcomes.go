package skip

import (
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// outcomes is a set of the values that a predicate may have for some row.
type outcomes uint8

const (
	isTrue outcomes = 1 << iota
	isFalse
	isNull
)

func (o outcomes) not() outcomes {
	out := o & isNull
	if o&isTrue != 0 {
		out |= isFalse
	}
	if o&isFalse != 0 {
		out |= isTrue
	}
	return out
}

// and gives what each pair of values may come to.
func (o outcomes) and(p outcomes) outcomes {
	out := (o | p) & isFalse
	out |= o & p & isTrue
	if (o&isNull != 0 && p&(isTrue|isNull) != 0) || (p&isNull != 0 && o&(isTrue|isNull) != 0) {
		out |= isNull
	}
	return out
}

func (o outcomes) or(p outcomes) outcomes { return o.not().and(p.not()).not() }

// span is what is known of a column's values in a file: whether NULLs and others may occur, and between which bounds the others lie. A bound that is NULL is none.
type span struct {
	nulls, others bool
	lower, upper  value.Value
}

func unknown() span { return span{nulls: true, others: true} }

func (s span) isNull() outcomes {
	var out outcomes
	if s.nulls {
		out |= isTrue
	}
	if s.others {
		out |= isFalse
	}
	return out
}

func (s span) compared(op planv1.CompareOp, v value.Value) outcomes {
	var out outcomes
	if s.nulls {
		out |= isNull
	}
	if !s.others {
		return out
	}
	least, greatest := -1, 1 // how the bounds compare with v
	if !s.lower.IsNull() {
		least = value.Compare(s.lower, v)
	}
	if !s.upper.IsNull() {
		greatest = value.Compare(s.upper, v)
	}
	for sign := least; sign <= greatest; sign++ { // every sign that a value between them may have
		if holds(op, sign) {
			out |= isTrue
		} else {
			out |= isFalse
		}
	}
	return out
}

// holds reports whether op is true of a value that compares with another as sign says.
func holds(op planv1.CompareOp, sign int) bool {
	switch op {
	case planv1.CompareOp_COMPARE_OP_EQ:
		return sign == 0
	case planv1.CompareOp_COMPARE_OP_NE:
		return sign != 0
	case planv1.CompareOp_COMPARE_OP_LT:
		return sign < 0
	case planv1.CompareOp_COMPARE_OP_LE:
		return sign <= 0
	case planv1.CompareOp_COMPARE_OP_GT:
		return sign > 0
	}
	return sign >= 0
}

func (s span) in(values []value.Value) outcomes {
	if len(values) == 0 {
		return isFalse
	}
	var out outcomes
	sure := false // every value that is not NULL is one of the list
	for _, v := range values {
		o := s.compared(planv1.CompareOp_COMPARE_OP_EQ, v)
		out |= o
		sure = sure || o&isFalse == 0
	}
	if sure {
		out &^= isFalse
	}
	return out
}

func (s span) startsWith(prefix string) outcomes {
	var out outcomes
	if s.nulls {
		out |= isNull
	}
	if !s.others {
		return out
	}
	lower, upper := s.lower.Text(), s.upper.Text()
	hasLower, hasUpper := !s.lower.IsNull(), !s.upper.IsNull()
	// Some value with the prefix lies between the bounds unless all are below or above them.
	if (!hasLower || lower <= prefix || strings.HasPrefix(lower, prefix)) && (!hasUpper || upper >= prefix) {
		out |= isTrue
	}
	if !hasLower || !hasUpper || !strings.HasPrefix(lower, prefix) || !strings.HasPrefix(upper, prefix) {
		out |= isFalse
	}
	return out
}
