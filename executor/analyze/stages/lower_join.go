package stages

import (
	"slices"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// leaves takes a tree of inner joins apart.
func leaves(r relation) (rels []relation, conds []ast.Value) {
	switch n := r.(type) {
	case *join:
		if n.kind == "INNER" {
			l, lc := leaves(n.left)
			r, rc := leaves(n.right)
			return append(l, r...), append(append(lc, rc...), n.conds...)
		}
	case *filter:
		if l, lc := leaves(n.in); len(l) > 1 {
			return l, append(lc, n.conds...)
		}
	}
	return []relation{r}, nil
}

// leaf is one side of an inner join.
type leaf struct {
	low  *lowered
	cols idset
}

// lowerInner joins in an order of its own: the largest side first, then what is connected to it. Sides that are whole, or small, are read by every task; the
// others meet by hash.
func (p *planner) lowerInner(j *join, conds []ast.Value, need idset) (*lowered, error) {
	rels, more := leaves(j)
	conds = append(slices.Clone(conds), more...)
	for _, c := range conds {
		conds = append(conds, implied(c)...)
	}
	var rest []ast.Value
	local := make([][]ast.Value, len(rels))
	for _, c := range conds {
		at := slices.IndexFunc(rels, func(r relation) bool { return len(refs(c)) > 0 && setOf(r.columns()...).has(refs(c)) })
		if at >= 0 {
			local[at] = append(local[at], c)
		} else {
			rest = append(rest, c)
		}
	}
	own := need.plus(refs(rest...))
	var open []*leaf
	for i, r := range rels {
		cols := setOf(r.columns()...)
		if len(local[i]) > 0 {
			r = &filter{r, local[i]}
		}
		low, err := p.lower(r, own)
		if err != nil {
			return nil, err
		}
		open = append(open, &leaf{low, cols})
	}
	return p.joinAll(open, rest, need)
}

func (p *planner) joinAll(open []*leaf, conds []ast.Value, need idset) (*lowered, error) {
	cur := start(open)
	open = slices.DeleteFunc(open, func(l *leaf) bool { return l == cur })
	cur, conds, err := p.settle(cur, conds)
	if err != nil {
		return nil, err
	}
	for len(open) > 0 {
		next, keyed := p.choose(cur, open, conds)
		open = slices.DeleteFunc(open, func(l *leaf) bool { return l == next })
		on, later := applicable(conds, cur.cols.plus(next.cols))
		if keyed {
			cur, err = p.hashInner(cur, next, on, need.plus(refs(later...)))
		} else {
			cur, err = p.attach(cur, next, on)
		}
		if err != nil {
			return nil, err
		}
		conds = later
	}
	if len(conds) > 0 {
		return p.filtered(cur.low, conds)
	}
	return cur.low, nil
}

// settle applies what can be applied to one side alone: conditions without columns.
func (p *planner) settle(l *leaf, conds []ast.Value) (*leaf, []ast.Value, error) {
	on, later := applicable(conds, l.cols)
	if len(on) == 0 {
		return l, conds, nil
	}
	low, err := p.filtered(l.low, on)
	return &leaf{low, l.cols}, later, err
}

func applicable(conds []ast.Value, cols idset) (now, later []ast.Value) {
	for _, c := range conds {
		if cols.has(refs(c)) {
			now = append(now, c)
		} else {
			later = append(later, c)
		}
	}
	return now, later
}

// start is the largest side of which tasks can share the rows.
func start(open []*leaf) *leaf {
	best := open[0]
	for _, l := range open[1:] {
		if best.low.isWhole() && !l.low.isWhole() || best.low.isWhole() == l.low.isWhole() && l.low.bytes() > best.low.bytes() {
			best = l
		}
	}
	return best
}

// choose picks the next side to join: whole and small ones that an equality connects first, because most of those only take rows away or widen them; then those that
// can be hashed; then what other conditions connect, which may multiply rows; then the rest. A small side that is equated to a large one as well waits for that: the
// customers of an order are one, those of a supplier's nation are many. keyed: by hash.
func (p *planner) choose(cur *leaf, open []*leaf, conds []ast.Value) (next *leaf, keyed bool) {
	connected := func(l *leaf, equal bool) bool {
		return slices.ContainsFunc(conds, func(c ast.Value) bool {
			r := refs(c)
			return r.meets(l.cols) && r.meets(cur.cols) && cur.cols.plus(l.cols).has(r) && (!equal || equates(c, cur.cols, l.cols))
		})
	}
	waits := func(l *leaf) bool {
		return slices.ContainsFunc(open, func(o *leaf) bool {
			return !p.small(o.low) && slices.ContainsFunc(conds, func(c ast.Value) bool { return equates(c, l.cols, o.cols) })
		})
	}
	for _, l := range open {
		if p.small(l.low) && connected(l, true) && !waits(l) {
			return l, false
		}
	}
	for _, l := range open {
		if p.small(l.low) || cur.low.isWhole() {
			continue
		}
		if len(p.keyPairs(cur.low, l.low, cur.cols, l.cols, conds)) > 0 {
			return l, true
		}
	}
	for _, few := range []bool{true, false} {
		for _, l := range open {
			if connected(l, false) && (!few || p.small(l.low)) {
				return l, false
			}
		}
	}
	return open[0], false
}

// equates reports that a condition is an equality of something of one side with something of the other.
func equates(c ast.Value, left, right idset) bool {
	o, ok := c.(*ast.Object)
	if !ok || o.Str("class") != "COMPARISON" || o.Str("type") != "COMPARE_EQUAL" && o.Str("type") != "COMPARE_NOT_DISTINCT_FROM" {
		return false
	}
	a, b := refs(o.Get("left")), refs(o.Get("right"))
	return len(a) > 0 && len(b) > 0 && (left.has(a) && right.has(b) || left.has(b) && right.has(a))
}

// small sides are read by every task.
func (p *planner) small(l *lowered) bool {
	return l.isWhole() || len(l.frags) == 1 && l.frags[0].onlySources() && l.frags[0].bytes <= p.opts.WholeBytes
}

// attach joins a side that every task reads whole.
func (p *planner) attach(cur, next *leaf, on []ast.Value) (*leaf, error) {
	low, err := p.beside("INNER", cur.low, next.low, on)
	return &leaf{low, cur.cols.plus(next.cols)}, err
}

// beside joins each fragment of the left with all rows of the right.
func (p *planner) beside(kind string, left, right *lowered, on []ast.Value) (*lowered, error) {
	out := &lowered{}
	for _, l := range left.frags {
		f := *l
		w, err := p.wholeBeside(&f, right)
		if err != nil {
			return nil, err
		}
		r, err := p.joinFrags(&f, kind, f.ref(), w, on)
		if err != nil {
			return nil, err
		}
		r.parted, r.alts = l.parted, l.alts
		if f.split() && !w.split() && len(w.in) > 0 {
			r.ops = withOp(l.ops, "broadcast join")
		}
		out.frags = append(out.frags, r)
	}
	return out, nil
}

// joinFrags joins two tables in one fragment, whose inputs f has already.
func (p *planner) joinFrags(f *frag, kind string, left ast.Value, right *frag, on []ast.Value) (*frag, error) {
	cols := f.cols
	if kind != "SEMI" && kind != "ANTI" {
		cols = append(slices.Clone(f.cols), right.cols...)
	}
	out := &frag{cols: cols, in: f.in, bytes: max(f.bytes, right.bytes), ops: withOp(f.ops, "join"), shaky: f.shaky || right.shaky, floats: f.floats.plus(right.floats)}
	conds := make([]ast.Value, len(on))
	for i, c := range on {
		e, err := p.placed(out, c)
		if err != nil {
			return nil, err
		}
		conds[i] = e
	}
	// DuckDB 1.5.6 fails inside when it reorders an ANTI JOIN with the joins around it; a SELECT of its own keeps it apart.
	if kind == "ANTI" {
		left = derived(selection{items: references(f.cols), from: left}.node())
	}
	out.table = joined(kind, left, right.ref(), and(conds))
	if kind == "ANTI" {
		out.table = derived(selection{items: references(out.cols), from: out.table}.node())
	}
	return out, nil
}

// lowerOuter lowers the joins that are no inner ones. The rows of the left side may be shared among tasks, except in a FULL JOIN.
func (p *planner) lowerOuter(j *join, need idset) (*lowered, error) {
	right := setOf(j.right.columns()...)
	var on, down []ast.Value
	for _, c := range j.conds {
		if r := refs(c); j.kind != "FULL" && len(r) > 0 && right.has(r) {
			down = append(down, c)
		} else {
			on = append(on, c)
		}
	}
	r := j.right
	if len(down) > 0 {
		r = &filter{r, down}
	}
	need = need.plus(refs(on...))
	left, err := p.lower(j.left, need)
	if err != nil {
		return nil, err
	}
	low, err := p.lower(r, need)
	if err != nil {
		return nil, err
	}
	if j.kind != "FULL" && p.small(low) {
		return p.beside(j.kind, left, low, on)
	}
	if !left.isWhole() || !low.isWhole() {
		lc, rc := setOf(j.left.columns()...), right
		if keys := p.keyPairs(left, low, lc, rc, on); len(keys) > 0 {
			return p.hashJoin(j.kind, left, low, keys, on, need)
		}
	}
	if j.kind == "FULL" && !left.isWhole() {
		p.because("a FULL JOIN without equal columns needs all rows in one task")
		w, err := p.wholeOf(left)
		if err != nil {
			return nil, err
		}
		left = one(w)
	}
	return p.beside(j.kind, left, low, on)
}
