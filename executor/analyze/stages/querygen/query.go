package querygen

import (
	"fmt"
	"slices"
	"strings"
)

// Query is a SELECT whose parts can be left out one by one.
type Query struct {
	With     []CTE
	Distinct bool
	Items    []Item
	From     []From
	Where    []string
	Group    []string
	Having   []string
	Qualify  []string
	Set      *SetOp
	Order    []string
	Limit    int // 0: none
	Offset   int
	Total    bool // the order is total
	most     int  // how many rows its FROM can give
}

// CTE is a common table expression.
type CTE struct {
	Name  string
	Query *Query
}

// Item is one item of the select list.
type Item struct{ Expr, Alias string }

// From is one table, joined to those before it.
type From struct {
	Join  string // LEFT JOIN, ...; empty: a comma, or the first one
	Table string
	Sub   *Query
	Alias string
	On    []string
	Using []string
}

// SetOp is the right side of a set operation.
type SetOp struct {
	Op    string
	Right *Query
}

// String is the query as SQL.
func (q *Query) String() string {
	var b strings.Builder
	for i, c := range q.With {
		word := ", "
		if i == 0 {
			word = "WITH "
		}
		fmt.Fprintf(&b, "%s%s AS (%s)", word, c.Name, c.Query)
	}
	if len(q.With) > 0 {
		b.WriteByte(' ')
	}
	b.WriteString("SELECT ")
	if q.Distinct {
		b.WriteString("DISTINCT ")
	}
	for i, it := range q.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(it.Expr)
		if it.Alias != "" {
			b.WriteString(" AS " + it.Alias)
		}
	}
	for i, f := range q.From {
		f.write(&b, i == 0)
	}
	clause(&b, " WHERE ", q.Where, " AND ")
	clause(&b, " GROUP BY ", q.Group, ", ")
	clause(&b, " HAVING ", q.Having, " AND ")
	clause(&b, " QUALIFY ", q.Qualify, " AND ")
	if q.Set != nil {
		fmt.Fprintf(&b, " %s %s", q.Set.Op, q.Set.Right)
	}
	clause(&b, " ORDER BY ", q.Order, ", ")
	if q.Limit > 0 {
		fmt.Fprintf(&b, " LIMIT %d", q.Limit)
	}
	if q.Offset > 0 {
		fmt.Fprintf(&b, " OFFSET %d", q.Offset)
	}
	return b.String()
}

func clause(b *strings.Builder, word string, parts []string, between string) {
	if len(parts) > 0 {
		b.WriteString(word + strings.Join(parts, between))
	}
}

func (f *From) write(b *strings.Builder, isFirst bool) {
	switch {
	case isFirst:
		b.WriteString(" FROM ")
	case f.Join == "":
		b.WriteString(", ")
	default:
		b.WriteString(" " + f.Join + " ")
	}
	if f.Sub != nil {
		fmt.Fprintf(b, "(%s)", f.Sub)
	} else {
		b.WriteString(f.Table)
	}
	if f.Alias != "" {
		b.WriteString(" " + f.Alias)
	}
	if !isFirst && f.Join != "" {
		clause(b, " ON ", f.On, " AND ")
		if len(f.Using) > 0 {
			b.WriteString(" USING (" + strings.Join(f.Using, ", ") + ")")
		}
	}
}

func (q *Query) clone() *Query {
	c := *q
	c.With, c.Items, c.From = slices.Clone(q.With), slices.Clone(q.Items), slices.Clone(q.From)
	c.Where, c.Group, c.Having = slices.Clone(q.Where), slices.Clone(q.Group), slices.Clone(q.Having)
	c.Qualify, c.Order = slices.Clone(q.Qualify), slices.Clone(q.Order)
	if q.Set != nil {
		s := *q.Set
		c.Set = &s
	}
	return &c
}

// Shrink answers queries with one part less each.
func (q *Query) Shrink() []*Query {
	var out []*Query
	try := func(change func(*Query)) {
		c := q.clone()
		change(c)
		out = append(out, c)
	}
	if q.Set != nil {
		out = append(out, q.Set.Right)
		try(func(c *Query) { c.Set = nil })
		for _, r := range q.Set.Right.Shrink() {
			try(func(c *Query) { c.Set.Right = r })
		}
	}
	for i := range q.With {
		try(func(c *Query) { c.With = slices.Delete(c.With, i, i+1) })
		out = append(out, q.With[i].Query)
		for _, r := range q.With[i].Query.Shrink() {
			try(func(c *Query) { c.With[i].Query = r })
		}
	}
	for i := range q.From {
		if len(q.From) > 1 {
			try(func(c *Query) { c.From = slices.Delete(c.From, i, i+1) })
		}
		try(func(c *Query) { c.From[i].On = nil; c.From[i].Join = ""; c.From[i].Using = nil })
		for k := range q.From[i].On {
			if len(q.From[i].On) > 1 {
				try(func(c *Query) { c.From[i].On = slices.Delete(slices.Clone(c.From[i].On), k, k+1) })
			}
		}
		if q.From[i].Sub != nil {
			out = append(out, q.From[i].Sub)
			for _, r := range q.From[i].Sub.Shrink() {
				try(func(c *Query) { c.From[i].Sub = r })
			}
		}
	}
	for _, part := range []func(*Query) *[]string{
		func(c *Query) *[]string { return &c.Where }, func(c *Query) *[]string { return &c.Group }, func(c *Query) *[]string { return &c.Having },
		func(c *Query) *[]string { return &c.Qualify }, func(c *Query) *[]string { return &c.Order },
	} {
		for i := range *part(q) {
			try(func(c *Query) { p := part(c); *p = slices.Delete(*p, i, i+1); c.Total = false })
		}
	}
	if q.Distinct {
		try(func(c *Query) { c.Distinct = false })
	}
	if q.Limit > 0 || q.Offset > 0 {
		try(func(c *Query) { c.Limit, c.Offset = 0, 0 })
	}
	if len(q.Order) > 0 && q.Limit == 0 && q.Offset == 0 {
		try(func(c *Query) { c.Order, c.Total = nil, false })
	}
	if len(q.Items) > 1 {
		for i := range q.Items {
			try(func(c *Query) {
				c.Items = slices.Delete(c.Items, i, i+1)
				if len(c.Order) > 0 && c.Limit+c.Offset == 0 {
					c.Order, c.Total = nil, false
				}
			})
		}
	}
	return out
}

// Minimize answers the smallest query that it finds of which fails still says true.
func Minimize(q *Query, fails func(*Query) bool) *Query {
	for smaller := true; smaller; {
		smaller = false
		for _, c := range q.Shrink() {
			if len(c.String()) < len(q.String()) && fails(c) {
				q, smaller = c, true
				break
			}
		}
	}
	return q
}
