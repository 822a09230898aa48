package stages

import (
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// partial is a part of an aggregate that tasks compute for themselves: first over rows, then over what others computed.
type partial struct {
	id    string
	expr  ast.Value // over rows
	merge string    // over partials
}

// taken is an aggregate that has been taken apart.
type taken struct {
	item     item
	partials []partial
	distinct *item // the argument of a DISTINCT aggregate
	final    func(merged []ast.Value) (ast.Value, error)
}

// twoPhases aggregates in each task, and then what the tasks have found. DISTINCT arguments are keys of the first phase.
func (p *planner) twoPhases(low *lowered, keys []item, parts []taken) (*lowered, error) {
	var distinct []item
	for _, t := range parts {
		if t.distinct != nil && !slices.ContainsFunc(distinct, func(d item) bool { return d.id == t.distinct.id }) {
			distinct = append(distinct, *t.distinct)
		}
	}
	firstKeys := append(slices.Clone(keys), distinct...)
	ok, err := p.canHash(low, firstKeys)
	if err != nil {
		return nil, err
	}
	if !ok {
		p.because("rows cannot be hashed by the keys of GROUP BY or DISTINCT")
		var aggs []item
		for _, t := range parts {
			aggs = append(aggs, t.item)
		}
		return p.groupedWhole(low, keys, aggs, nil)
	}
	var rows []item
	for _, t := range parts {
		if t.distinct == nil {
			for _, q := range t.partials {
				rows = append(rows, item{q.id, q.expr})
			}
		}
	}
	hashBy, kind := keys, hashed
	if len(keys) == 0 {
		switch len(distinct) {
		case 0:
			kind = gather
		case 1:
			hashBy = distinct
		default:
			kind = gather
		}
	}
	f, err := p.phase(low, firstKeys, rows, kind, hashBy, "partial aggregate")
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 && len(distinct) == 1 { // the values of one partition are in no other one: what is counted of them adds up
		var again []item
		for i, t := range parts {
			for k, q := range t.partials {
				if t.distinct == nil {
					again = append(again, item{q.id, call(q.merge, column(q.id))})
				} else {
					again = append(again, item{q.id, q.expr})
				}
				parts[i].partials[k] = q
			}
			parts[i].distinct = nil
		}
		if f, err = p.phase(one(f), nil, renew(p, again, parts), gather, nil, "partial aggregate"); err != nil {
			return nil, err
		}
	}
	return p.lastPhase(f, keys, parts)
}

// renew gives the partials of a further phase names of their own.
func renew(p *planner, items []item, parts []taken) []item {
	at := 0
	for i := range parts {
		for k := range parts[i].partials {
			id := p.fresh(items[at].id)
			items[at].id, parts[i].partials[k].id = id, id
			at++
		}
	}
	return items
}

// phase is a stage that groups what its tasks have.
func (p *planner) phase(low *lowered, keys, aggs []item, kind planv1.ExchangeKind, hashBy []item, op string) (*frag, error) {
	items := append(slices.Clone(keys), aggs...)
	var out []*stage
	for _, f := range low.frags {
		g := *f
		g.floats = f.floats.plus(floatsOf(items, f.floats))
		s := selection{items: namedItems(items), from: f.table, where: f.where, groups: len(keys)}
		if len(f.orders) > 0 || f.limit != nil || f.offset != nil {
			s.from, s.where = f.ref(), nil
		}
		if len(aggs) == 0 {
			op = "distinct"
		}
		st, err := p.addStage(&g, s.node(), ids(items), kind, ids(hashBy), label(f, op))
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	r := reading(out, ids(items), kind)
	r.bytes = r.bytes/4 + 1
	if kind == hashed {
		r.parted = partedBy(hashBy)
	}
	return r, nil
}

func (p *planner) lastPhase(f *frag, keys []item, parts []taken) (*lowered, error) {
	var aggs []item
	floats := idset{}
	for _, t := range parts {
		merged := make([]ast.Value, len(t.partials))
		for i, q := range t.partials {
			merged[i] = call(q.merge, column(q.id))
			if t.distinct != nil {
				merged[i] = q.expr
			}
		}
		e, err := t.final(merged)
		if err != nil {
			return nil, err
		}
		aggs = append(aggs, item{t.item.id, e})
		if p.dependsOnOrder(t.item) {
			floats[t.item.id] = true
		}
	}
	made := columnsOf(keys)
	items := append(slices.Clone(made), aggs...)
	op := "final aggregate"
	if len(aggs) == 0 {
		op = "distinct"
	}
	g := f.over(selection{items: namedItems(items), groups: len(keys)}, ids(items), op)
	g.floats = floats
	g.parted, g.alts = nil, nil
	if len(keys) > 0 {
		g.parted = partedBy(keys)
	}
	return one(g), nil
}
