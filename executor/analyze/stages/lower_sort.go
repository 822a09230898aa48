package stages

// most is the number of rows up to which tasks look for the first ones before one task does.
const most = 1 << 24

func (p *planner) lowerSorted(n *sorted, need idset) (*lowered, error) {
	for _, o := range n.orders {
		need = need.plus(setOf(o.id))
	}
	low, err := p.lower(n.in, need)
	if err != nil {
		return nil, err
	}
	var f *frag
	// One task that reads a source alone stops as soon as it has enough.
	if rows, ok := n.rows(); ok && !low.isWhole() && (len(n.orders) > 0 || !low.frags[0].plain) {
		if f, err = p.top(low, n.orders, rows); err != nil {
			return nil, err
		}
	} else {
		switch {
		case low.isWhole():
		case n.limit != nil && len(n.orders) == 0:
			p.because("one task has the first rows soonest")
		case n.limit != nil || n.offset != nil:
			p.because("LIMIT takes rows out of all")
		default:
			p.because("ORDER BY needs all rows in one task")
		}
		if f, err = p.wholeOf(low); err != nil {
			return nil, err
		}
	}
	c := *f
	if len(f.orders) > 0 || f.limit != nil || f.offset != nil {
		c = *f.over(selection{items: references(f.cols)}, f.cols, "")
	}
	c.orders, c.limit, c.offset, c.percent, c.plain = n.orders, n.limit, n.offset, n.percent, false
	op := "sort"
	if n.limit != nil || n.offset != nil {
		op, c.shaky = "limit", c.shaky || !n.total(c.cols)
		if len(n.orders) > 0 {
			op = "top rows"
		}
	}
	c.ops = withOp(c.ops, op)
	return one(&c), nil
}

// rows is how many of the first rows may be in the result.
func (n *sorted) rows() (int, bool) {
	if n.limit == nil || n.percent {
		return 0, false
	}
	limit, ok := ordinal(n.limit)
	offset := 0
	if n.offset != nil && ok {
		offset, ok = ordinal(n.offset)
	}
	return limit + offset, ok && limit <= most && offset <= most
}

// total reports that rows which the order does not tell apart are the same.
func (n *sorted) total(cols []string) bool {
	by := idset{}
	for _, o := range n.orders {
		by.add(o.id)
	}
	return by.has(setOf(cols...))
}

// top takes the first rows of each task.
func (p *planner) top(low *lowered, orders []order, rows int) (*frag, error) {
	var out []*stage
	cols := low.frags[0].cols
	for _, f := range low.frags {
		g := *f
		g.shaky = g.shaky || !(&sorted{orders: orders}).total(cols)
		s := selection{items: references(cols), from: f.table, where: f.where, modifiers: modifiers(orders, integer(int64(rows)), nil, false)}
		if len(f.orders) > 0 || f.limit != nil || f.offset != nil {
			s.from, s.where = f.ref(), nil
		}
		st, err := p.addStage(&g, s.node(), cols, gather, nil, label(f, "top rows"))
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return reading(out, cols, gather), nil
}
