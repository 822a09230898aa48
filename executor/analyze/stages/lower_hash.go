package stages

import (
	"slices"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// keyPair is one equality on which two sides meet by hash, in the type in which they are compared.
type keyPair struct {
	left, right ast.Value
	typ         string
	plain       bool // both sides have the type already
}

// keyPairs finds the equalities among conditions that hold only for rows of the same hash.
func (p *planner) keyPairs(l, r *lowered, lc, rc idset, conds []ast.Value) []keyPair {
	var out []keyPair
	seen := map[string]bool{}
	for _, c := range conds {
		o, ok := c.(*ast.Object)
		if !ok || o.Str("class") != "COMPARISON" || o.Str("type") != "COMPARE_EQUAL" && o.Str("type") != "COMPARE_NOT_DISTINCT_FROM" || hasSubquery(c) {
			continue
		}
		a, b := o.Get("left"), o.Get("right")
		ra, rb := refs(a), refs(b)
		if len(ra) == 0 || len(rb) == 0 {
			continue
		}
		if lc.has(rb) && rc.has(ra) {
			a, b, ra, rb = b, a, rb, ra
		}
		if !lc.has(ra) || !rc.has(rb) || seen[form(a)+form(b)] {
			continue
		}
		seen[form(a)+form(b)] = true
		at, bt := p.typeIn(l, a), p.typeIn(r, b)
		if t := keyType(at, bt); t != "" {
			out = append(out, keyPair{a, b, t, at == t && bt == t})
		}
	}
	return out
}

// typeIn is the type of an expression over a fragment's columns; empty if it cannot be told.
func (p *planner) typeIn(l *lowered, v ast.Value) string {
	if n, ok := columnOf(v); ok && p.typed[n] != "" {
		return p.typed[n]
	}
	types, err := p.typesOf(selection{items: []ast.Value{v}, from: l.frags[0].ref()})
	if err != nil || len(types) != 1 {
		return ""
	}
	if n, ok := columnOf(v); ok {
		p.typed[n] = types[0]
	}
	return types[0]
}

// hashKeys are the key columns of one side.
func (p *planner) hashKeys(pairs []keyPair, of func(keyPair) ast.Value) ([]item, error) {
	var out []item
	for _, k := range pairs {
		e := of(k)
		if n, ok := columnOf(e); ok && p.typed[n] == k.typ {
			out = append(out, item{n, e})
			continue
		}
		c, err := p.castTo(e, k.typ)
		if err != nil {
			return nil, err
		}
		id := p.fresh("key")
		p.typed[id] = k.typ
		out = append(out, item{id, c})
	}
	return out, nil
}

func (p *planner) hashInner(cur, next *leaf, on []ast.Value, need idset) (*leaf, error) {
	keys := p.keyPairs(cur.low, next.low, cur.cols, next.cols, on)
	low, err := p.hashJoin("INNER", cur.low, next.low, keys, on, need.plus(refs(on...)))
	return &leaf{low, cur.cols.plus(next.cols)}, err
}

// hashJoin brings rows with equal keys together, and joins them there.
func (p *planner) hashJoin(kind string, left, right *lowered, pairs []keyPair, on []ast.Value, need idset) (*lowered, error) {
	lk, err := p.hashKeys(pairs, func(k keyPair) ast.Value { return k.left })
	if err != nil {
		return nil, err
	}
	rk, err := p.hashKeys(pairs, func(k keyPair) ast.Value { return k.right })
	if err != nil {
		return nil, err
	}
	first := len(p.stages)
	l, err := p.emit(left, need.kept(left.frags[0].cols), hashed, lk)
	if err != nil {
		return nil, err
	}
	second := len(p.stages)
	r, err := p.emit(right, need.kept(right.frags[0].cols), hashed, rk)
	if err != nil {
		return nil, err
	}
	f := &frag{cols: l.cols, bytes: l.bytes, floats: l.floats}
	f.in = append(slices.Clone(l.in), r.in...)
	out, err := p.joinFrags(f, kind, l.ref(), r, on)
	if err != nil {
		return nil, err
	}
	out.ops = []string{"hash join"}
	out.parted = partition(kind, pairs, lk, rk)
	if len(left.frags) == 1 && len(right.frags) == 1 {
		a, b := p.stages[first], p.stages[second]
		if kind != "FULL" && left.frags[0].split() {
			out.alts = append(out.alts, alternative{a, b})
		}
		if kind == "INNER" && right.frags[0].split() {
			out.alts = append(out.alts, alternative{b, a})
		}
	}
	return one(out), nil
}

// partition lists, by key, the columns that have the same value in all rows of one partition's key.
func partition(kind string, pairs []keyPair, lk, rk []item) [][]string {
	if kind == "FULL" {
		return nil
	}
	var out [][]string
	for i, k := range pairs {
		names := []string{lk[i].id}
		if n, ok := columnOf(k.left); ok {
			names = append(names, n)
		}
		if kind == "INNER" {
			names = append(names, rk[i].id)
			if n, ok := columnOf(k.right); ok {
				names = append(names, n)
			}
		}
		out = append(out, names)
	}
	return out
}

// together reports that rows which agree in keys are in one task already.
func (f *frag) together(keys []item) bool {
	if len(f.parted) == 0 {
		return false
	}
	have := idset{}
	for _, k := range keys {
		if n, ok := columnOf(k.expr); ok {
			have[n] = true
		}
	}
	return !slices.ContainsFunc(f.parted, func(names []string) bool { return !have.meets(setOf(names...)) })
}
