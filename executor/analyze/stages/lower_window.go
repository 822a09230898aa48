package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// lowerWindow brings the rows of a partition together, if all window functions agree on a part of it.
func (p *planner) lowerWindow(n *window, need idset) (*lowered, error) {
	var items []item
	for _, it := range n.items {
		if need[it.id] {
			items = append(items, it)
		}
	}
	low, err := p.lower(n.in, need.plus(refs(exprsOf(items)...)))
	if err != nil || len(items) == 0 {
		return low, err
	}
	keys := p.commonPartition(items)
	f := low.frags[0]
	switch {
	case low.isWhole():
		return one(windowed(f, items)), nil
	case len(keys) > 0 && len(low.frags) == 1 && f.together(keys):
		w := windowed(f, items)
		w.parted = f.parted
		return one(w), nil
	}
	hashes := len(keys) > 0
	if hashes {
		if hashes, err = p.canHash(low, keys); err != nil {
			return nil, err
		}
	}
	if !hashes {
		p.because("a window function without a common PARTITION BY needs all rows in one task")
		w, err := p.wholeOf(low)
		if err != nil {
			return nil, err
		}
		return one(windowed(w, items)), nil
	}
	r, err := p.emit(low, f.cols, hashed, keys)
	if err != nil {
		return nil, err
	}
	w := windowed(r, items)
	w.parted = partedBy(keys)
	return one(w), nil
}

func windowed(f *frag, items []item) *frag {
	s := selection{items: append(references(f.cols), namedItems(items)...)}
	w := f.over(s, append(slices.Clone(f.cols), ids(items)...), "window")
	w.parted, w.alts = nil, nil
	w.floats = f.floats
	for _, it := range items {
		o, _ := it.expr.(*ast.Object)
		if rank := slices.Contains(ranks, o.Str("function_name")); !rank && !slices.Contains(counting, o.Str("function_name")) {
			w.floats = w.floats.plus(setOf(it.id))
		}
		w.shaky = w.shaky || !stableWindow(o)
	}
	return w
}

// ranks are window functions that give rows of the same order the same value.
var ranks = []string{"rank", "dense_rank", "rank_dense", "percent_rank", "cume_dist"}

// stableWindow reports that rows which ORDER BY does not tell apart get the same value, whichever comes first.
func stableWindow(o *ast.Object) bool {
	name := o.Str("function_name")
	frames := o.Str("start") + " " + o.Str("end")
	return slices.Contains(ranks, name) ||
		o.Str("type") == "WINDOW_AGGREGATE" && !slices.Contains(ordered, name) && !strings.Contains(frames, "ROWS") && !strings.Contains(frames, "EXPR")
}

// commonPartition are the PARTITION BY expressions that all window functions have. Functions that look at the order of rows, but do not say which, have none:
// one task gives them the order of the input.
func (p *planner) commonPartition(items []item) []item {
	var keys []item
	for i, it := range items {
		o, _ := it.expr.(*ast.Object)
		if len(o.List("orders")) == 0 && (o.Str("type") != "WINDOW_AGGREGATE" || slices.Contains(ordered, o.Str("function_name"))) {
			return nil
		}
		parts := o.List("partitions")
		if i == 0 {
			for _, e := range parts {
				id, plain := columnOf(e)
				if !plain {
					id = p.fresh("key")
				}
				keys = append(keys, item{id, e})
			}
			continue
		}
		keys = slices.DeleteFunc(keys, func(k item) bool {
			return !slices.ContainsFunc(parts, func(e ast.Value) bool { return form(e) == form(k.expr) })
		})
	}
	return keys
}
