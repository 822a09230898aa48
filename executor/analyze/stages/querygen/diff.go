package querygen

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Diff compares two results; empty: they are the same. Unordered ones are compared as multisets. Floating-point numbers may differ in their last digits,
// because sums of them depend on the order of rows.
func Diff(want, got [][]any, isOrdered bool) string {
	if len(want) != len(got) {
		return fmt.Sprintf("want %d rows, got %d\nwant:\n%s\ngot:\n%s", len(want), len(got), show(want), show(got))
	}
	if !isOrdered {
		want, got = sortedRows(want), sortedRows(got)
	}
	for i := range want {
		for c := range want[i] {
			if !same(want[i][c], got[i][c]) {
				return fmt.Sprintf("row %d, column %d: want %v, got %v\nwant:\n%s\ngot:\n%s", i, c, want[i], got[i], show(want), show(got))
			}
		}
	}
	return ""
}

const tolerance = 1e-9

func same(a, b any) bool {
	x, ok := a.(float64)
	y, ok2 := b.(float64)
	if !ok || !ok2 {
		return a == b
	}
	if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return math.IsNaN(x) && math.IsNaN(y) || x == y
	}
	return math.Abs(x-y) <= tolerance*max(1, math.Abs(x), math.Abs(y))
}

// sortedRows sorts by everything but floating-point numbers first, then by those.
func sortedRows(rows [][]any) [][]any {
	out := slices.Clone(rows)
	slices.SortFunc(out, func(a, b []any) int {
		for c := range a {
			if isFloat(a[c]) && isFloat(b[c]) {
				continue
			}
			if d := strings.Compare(key(a[c]), key(b[c])); d != 0 {
				return d
			}
		}
		for c := range a {
			x, ok := a[c].(float64)
			y, ok2 := b[c].(float64)
			if ok && ok2 && !same(x, y) {
				switch {
				case math.IsNaN(x):
					return 1
				case math.IsNaN(y), x < y:
					return -1
				default:
					return 1
				}
			}
		}
		return 0
	})
	return out
}

func isFloat(v any) bool {
	_, ok := v.(float64)
	return ok
}

func key(v any) string {
	if isFloat(v) {
		return "float"
	}
	return fmt.Sprintf("%T %v", v, v)
}

func show(rows [][]any) string {
	var b strings.Builder
	for i, r := range rows {
		if i == 12 {
			fmt.Fprintf(&b, "  and %d more\n", len(rows)-i)
			break
		}
		fmt.Fprintf(&b, "  %v\n", r)
	}
	return b.String()
}
