package stages

import (
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

const (
	gather    = planv1.ExchangeKind_EXCHANGE_KIND_GATHER
	hashed    = planv1.ExchangeKind_EXCHANGE_KIND_HASH
	broadcast = planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST
)

// lower makes fragments of a relation, and stages of what they need first. need are the columns that somebody reads.
func (p *planner) lower(r relation, need idset) (*lowered, error) {
	switch n := r.(type) {
	case *scan:
		return p.lowerScan(n, need), nil
	case *constants:
		return p.lowerConstants(n, need), nil
	case *stored:
		return p.lowerStored(n, need), nil
	case *filter:
		return p.lowerFilter(n, need)
	case *project:
		return p.lowerProject(n, need)
	case *join:
		if n.kind == "INNER" {
			return p.lowerInner(n, nil, need)
		}
		return p.lowerOuter(n, need)
	case *aggregate:
		return p.lowerAggregate(n, need)
	case *window:
		return p.lowerWindow(n, need)
	case *sorted:
		return p.lowerSorted(n, need)
	case *union:
		return p.lowerUnion(n, need)
	case *setop:
		return p.lowerSetop(n)
	default:
		return nil, fmt.Errorf("no lowering for %T", r)
	}
}

func (p *planner) lowerScan(n *scan, need idset) *lowered {
	var items []item
	for _, c := range n.cols {
		if need[c.id] {
			items = append(items, c)
		}
	}
	items = p.atLeastOne(items)
	f := &frag{
		table: derived(selection{items: namedItems(items), from: table(n.source.View)}.node()), cols: ids(items),
		in: []input{{n.source.View, -1, n.source.Whole == ""}}, bytes: n.source.Bytes, ops: []string{"scan"}, plain: true, floats: idset{},
	}
	if len(n.cols) > 0 {
		f.bytes = f.bytes * int64(len(items)) / int64(len(n.cols))
	}
	if n.source.Whole != "" {
		p.because("%s", n.source.Whole)
	}
	return one(f)
}

// atLeastOne keeps a SELECT from having no columns.
func (p *planner) atLeastOne(items []item) []item {
	if len(items) > 0 {
		return items
	}
	return []item{{p.fresh("one"), integer(1)}}
}

func (p *planner) lowerConstants(n *constants, need idset) *lowered {
	var items []item
	for _, c := range n.cols {
		if need[c.id] {
			items = append(items, c)
		}
	}
	items = p.atLeastOne(items)
	return one(&frag{table: derived(selection{items: namedItems(items), from: n.table}.node()), cols: ids(items), floats: idset{}})
}

func (p *planner) lowerStored(n *stored, need idset) *lowered {
	var items []item
	for _, c := range n.cols {
		if need[c.id] {
			items = append(items, c)
		}
	}
	items = p.atLeastOne(items)
	return one(n.from.over(selection{items: namedItems(items)}, ids(items), ""))
}

// store computes rows once, to be read by several readers.
func (p *planner) store(res *result) (*frag, error) {
	low, err := p.lower(res.rel, setOf(res.rel.columns()...))
	if err != nil {
		return nil, err
	}
	return p.emit(low, res.rel.columns(), gather, nil)
}

// because notes why something is done by one task, for queries of which nothing is shared among tasks.
func (p *planner) because(format string, args ...any) {
	p.reasons = append(p.reasons, fmt.Sprintf(format, args...))
}

// emit makes a stage of each fragment, and answers the fragment that reads them. Keys that are no columns become some.
func (p *planner) emit(low *lowered, cols []string, kind planv1.ExchangeKind, keys []item) (*frag, error) {
	var out []*stage
	var names []string
	for _, f := range low.frags {
		items := make([]item, 0, len(cols)+len(keys))
		for _, c := range cols {
			items = append(items, item{c, column(c)})
		}
		for _, k := range keys {
			if !slices.ContainsFunc(items, func(i item) bool { return i.id == k.id }) {
				items = append(items, k)
			}
		}
		items = p.atLeastOneOf(items, names)
		names = ids(items)
		s := selection{items: namedItems(items), from: f.table, where: f.where, modifiers: f.modifiers()}
		f := *f
		f.floats = f.floats.plus(floatsOf(items, f.floats))
		st, err := p.addStage(&f, s.node(), names, kind, ids(keys), label(&f, ""))
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return reading(out, names, kind), nil
}

// atLeastOneOf is atLeastOne with the same name in all stages of a union.
func (p *planner) atLeastOneOf(items []item, names []string) []item {
	if len(items) == 0 && len(names) == 1 {
		return []item{{names[0], integer(1)}}
	}
	return p.atLeastOne(items)
}

func (p *planner) lowerProject(n *project, need idset) (*lowered, error) {
	var items []item
	for _, it := range n.items {
		if need[it.id] || n.many {
			items = append(items, it)
		}
	}
	low, err := p.lower(n.in, refs(exprsOf(items)...))
	if err != nil {
		return nil, err
	}
	items = p.atLeastOne(items)
	out := &lowered{}
	for _, f := range low.frags {
		c := *f
		placedItems := make([]item, len(items))
		for i, it := range items {
			e, err := p.placed(&c, it.expr)
			if err != nil {
				return nil, err
			}
			placedItems[i] = item{it.id, e}
		}
		pr := c.over(selection{items: namedItems(placedItems)}, ids(items), "")
		pr.plain = f.plain && !slices.ContainsFunc(items, func(it item) bool { _, plain := columnOf(it.expr); return !plain })
		pr.floats = floatsOf(items, f.floats)
		out.frags = append(out.frags, pr)
	}
	return out, nil
}

func floatsOf(items []item, below idset) idset {
	out := idset{}
	for _, it := range items {
		if below.meets(refs(it.expr)) {
			out[it.id] = true
		}
	}
	return out
}
