package stages

import (
	"slices"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// lowerUnion puts the rows of two sides one behind the other, under common names and types.
func (p *planner) lowerUnion(n *union, need idset) (*lowered, error) {
	l, r, err := p.aligned(n, need)
	if err != nil {
		return nil, err
	}
	// What one task computes anyway, it computes together.
	out, at := &lowered{}, -1
	for _, f := range append(slices.Clone(l.frags), r.frags...) {
		switch {
		case f.split():
			out.frags = append(out.frags, f)
		case at < 0:
			at = len(out.frags)
			out.frags = append(out.frags, f)
		default:
			both, err := p.unionWhole("UNION", true, out.frags[at], f)
			if err != nil {
				return nil, err
			}
			out.frags[at] = both.frags[0]
		}
	}
	return out, nil
}

func (p *planner) unionWhole(op string, all bool, l, r *frag) (*lowered, error) {
	in, ok := merge(l.in, r.in)
	if !ok {
		return nil, unstaged("its parts read one source in different ways")
	}
	node := setOperation(op, all, selection{items: references(l.cols), from: l.ref()}.node(), selection{items: references(l.cols), from: r.ref()}.node())
	return one(&frag{
		table: derived(node), cols: l.cols, in: in, bytes: l.bytes + r.bytes, ops: withOp(l.ops, "union"), floats: l.floats.plus(r.floats), shaky: l.shaky || r.shaky,
	}), nil
}

// aligned lowers both sides and gives them the result's names and types.
func (p *planner) aligned(n *union, need idset) (l, r *lowered, err error) {
	var cols [3][]string
	for i, id := range n.ids {
		if need[id] {
			cols[0], cols[1], cols[2] = append(cols[0], id), append(cols[1], n.left[i]), append(cols[2], n.right[i])
		}
	}
	if len(cols[0]) == 0 {
		cols[0], cols[1], cols[2] = n.ids[:1], n.left[:1], n.right[:1]
	}
	if l, err = p.lower(n.l, setOf(cols[1]...)); err != nil {
		return nil, nil, err
	}
	if r, err = p.lower(n.r, setOf(cols[2]...)); err != nil {
		return nil, nil, err
	}
	types, err := p.unionTypes(l.frags[0], r.frags[0], cols[1], cols[2])
	if err != nil {
		return nil, nil, err
	}
	if l, err = p.alignSide(l, cols[1], cols[0], types); err != nil {
		return nil, nil, err
	}
	r, err = p.alignSide(r, cols[2], cols[0], types)
	return l, r, err
}

func (p *planner) unionTypes(l, r *frag, left, right []string) ([]string, error) {
	items := func(names []string) []ast.Value {
		out := make([]ast.Value, len(names))
		for i, n := range names {
			out[i] = column(n)
		}
		return out
	}
	node := setOperation("UNION", true, selection{items: items(left), from: l.ref()}.node(), selection{items: items(right), from: r.ref()}.node())
	sql, err := p.render(node)
	if err != nil {
		return nil, err
	}
	cols, err := p.describe(sql)
	if err != nil {
		return nil, err
	}
	types := make([]string, len(cols))
	for i, c := range cols {
		types[i] = c.GetEngineType()
	}
	return types, nil
}

func (p *planner) alignSide(low *lowered, from, to, types []string) (*lowered, error) {
	items := make([]item, len(from))
	for i := range from {
		e, err := p.castTo(column(from[i]), types[i])
		if err != nil {
			return nil, err
		}
		items[i] = item{to[i], e}
		p.typed[to[i]] = types[i]
	}
	out := &lowered{}
	for _, f := range low.frags {
		c := f.over(selection{items: namedItems(items)}, to, "")
		c.plain, c.parted, c.floats = false, nil, floatsOf(items, f.floats)
		out.frags = append(out.frags, c)
	}
	return out, nil
}

// lowerSetop brings equal rows of both sides together by hashing all columns.
func (p *planner) lowerSetop(n *setop) (*lowered, error) {
	l, r, err := p.aligned(&n.union, setOf(n.ids...))
	if err != nil {
		return nil, err
	}
	hashes := !slices.ContainsFunc(n.ids, func(id string) bool { return !hashable(p.typed[id]) })
	if hashes && (!l.isWhole() || !r.isWhole()) {
		keys := columnsOf(nameItems(n.ids))
		lf, err := p.emit(l, n.ids, hashed, keys)
		if err != nil {
			return nil, err
		}
		rf, err := p.emit(r, n.ids, hashed, keys)
		if err != nil {
			return nil, err
		}
		return p.unionHashed(n, lf, rf)
	}
	p.because("%s needs all rows in one task", n.kind)
	lf, err := p.wholeOf(l)
	if err != nil {
		return nil, err
	}
	rf, err := p.wholeOf(r)
	if err != nil {
		return nil, err
	}
	return p.unionWhole(n.kind, n.all, lf, rf)
}

func nameItems(names []string) []item {
	out := make([]item, len(names))
	for i, n := range names {
		out[i].id = n
	}
	return out
}

func (p *planner) unionHashed(n *setop, l, r *frag) (*lowered, error) {
	node := setOperation(n.kind, n.all, selection{items: references(n.ids), from: l.ref()}.node(), selection{items: references(n.ids), from: r.ref()}.node())
	f := &frag{table: derived(node), cols: n.ids, in: append(slices.Clone(l.in), r.in...), bytes: max(l.bytes, r.bytes), floats: idset{}}
	f.ops = []string{map[string]string{"EXCEPT": "except", "INTERSECT": "intersect"}[n.kind]}
	f.parted = partedBy(nameItems(n.ids))
	return one(f), nil
}
