package filter

// Outcomes is a set of the values that a predicate may have for some row.
type Outcomes uint8

// The values of SQL's logic.
const (
	True Outcomes = 1 << iota
	False
	Null
)

const anything = True | False | Null

var each = []Outcomes{True, False, Null}

func (o Outcomes) has(v Outcomes) bool { return o&v != 0 }

func (o Outcomes) not() Outcomes {
	out := o & Null
	if o.has(True) {
		out |= False
	}
	if o.has(False) {
		out |= True
	}
	return out
}

// combine applies a connective to every pair of values that two terms may have.
func combine(a, b Outcomes, op func(x, y Outcomes) Outcomes) Outcomes {
	var out Outcomes
	for _, x := range each {
		for _, y := range each {
			if a.has(x) && b.has(y) {
				out |= op(x, y)
			}
		}
	}
	return out
}

func and(x, y Outcomes) Outcomes {
	switch {
	case x == False || y == False:
		return False
	case x == Null || y == Null:
		return Null
	}
	return True
}

func or(x, y Outcomes) Outcomes { return combine(x.not(), y.not(), and).not() }
