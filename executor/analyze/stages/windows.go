package stages

import "github.com/signet-io/signet/executor/analyze/ast"

func hasWindow(v ast.Value) bool {
	found := false
	ast.Visit(v, func(o *ast.Object) bool {
		found = found || o.Str("class") == "WINDOW"
		return !found
	})
	return found
}

// windows computes the window functions of the block, each once, and applies QUALIFY.
func (b *block) windows() error {
	w := &window{in: b.rel}
	replace := func(v ast.Value) ast.Value {
		return rewrite(v, func(o *ast.Object) ast.Value {
			if o.Str("class") != "WINDOW" {
				return nil
			}
			f := form(o)
			for _, it := range w.items {
				if form(it.expr) == f {
					return keepAlias(column(it.id), o)
				}
			}
			id := b.p.fresh(o.Str("function_name"))
			w.items = append(w.items, item{id, named(o, "")})
			return keepAlias(column(id), o)
		})
	}
	for _, it := range b.items {
		if hasWindow(it.expr) {
			it.expr = replace(it.expr)
		}
	}
	for i, c := range b.qualifies {
		b.qualifies[i] = replace(c)
	}
	for i := range b.orders {
		if b.orders[i].expr != nil {
			b.orders[i].expr = replace(b.orders[i].expr)
		}
	}
	for _, it := range w.items {
		if hasSubquery(it.expr) || hasMany(it.expr) {
			return unstaged("it has a window function of an unusual kind")
		}
	}
	if len(w.items) > 0 {
		b.rel, b.fixed = w, true
	}
	if len(b.qualifies) > 0 {
		b.rel = &filter{b.rel, b.qualifies}
	}
	return nil
}
