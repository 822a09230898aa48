package stages

import (
	"fmt"
	"slices"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// frag is a SELECT that tasks of one stage run: a table with our column names, and conditions on it. If an input is split, the rows of all tasks together
// are the fragment's rows, however the input is cut; if none is, every task that ran it would have all of them.
type frag struct {
	table  ast.Value
	where  []ast.Value
	cols   []string
	in     []input
	bytes  int64    // a guess at the size of its rows
	ops    []string // what it does, for EXPLAIN
	plain  bool     // it only reads a source: nothing is saved by running it elsewhere
	parted [][]string
	alts   []alternative
	floats idset // columns whose last bits depend on the order of rows
	shaky  bool  // run again, it may give other rows

	orders        []order // at the end, if it is whole
	limit, offset ast.Value
	percent       bool
}

type input struct {
	view  string
	stage int // -1: a source
	split bool
}

// alternative is a join by broadcast instead of by hash: see BroadcastJoin.
type alternative struct{ absorb, broadcast *stage }

// lowered are the rows of all its fragments, one behind the other.
type lowered struct {
	frags []*frag
	whole *frag // once it has been made readable as a whole
}

func one(f *frag) *lowered { return &lowered{frags: []*frag{f}} }

func (f *frag) split() bool {
	return slices.ContainsFunc(f.in, func(i input) bool { return i.split })
}

// isWhole reports that one task has all rows.
func (l *lowered) isWhole() bool { return len(l.frags) == 1 && !l.frags[0].split() }

func (l *lowered) bytes() int64 {
	var n int64
	for _, f := range l.frags {
		n += f.bytes
	}
	return n
}

func references(names []string) []ast.Value {
	out := make([]ast.Value, len(names))
	for i, n := range names {
		out[i] = named(column(n), n)
	}
	return out
}

func namedItems(items []item) []ast.Value {
	out := make([]ast.Value, len(items))
	for i, it := range items {
		out[i] = named(it.expr, it.id)
	}
	return out
}

// ref is the fragment as a table in FROM.
func (f *frag) ref() ast.Value {
	if len(f.where) == 0 && len(f.orders) == 0 && f.limit == nil && f.offset == nil {
		return f.table
	}
	s := selection{items: references(f.cols), from: f.table, where: f.where, modifiers: f.modifiers()}
	if len(s.items) == 0 {
		s.items = []ast.Value{named(integer(1), "one#0")}
	}
	return derived(s.node())
}

func (f *frag) modifiers() []ast.Value { return modifiers(f.orders, f.limit, f.offset, f.percent) }

func modifiers(orders []order, limit, offset ast.Value, percent bool) []ast.Value {
	var out []ast.Value
	if len(orders) > 0 {
		l := list()
		for _, o := range orders {
			l.Items = append(l.Items, ast.New("type", o.kind, "null_order", o.nulls, "expression", column(o.id)))
		}
		out = append(out, orderModifier(l))
	}
	if limit != nil || offset != nil {
		kind := "LIMIT_MODIFIER"
		if percent {
			kind = "LIMIT_PERCENT_MODIFIER"
		}
		m := ast.New("type", kind, "limit", orNull(limit), "offset", orNull(offset))
		out = append(out, m)
	}
	return out
}

func orNull(v ast.Value) ast.Value {
	if v == nil {
		return null
	}
	return v
}

// over is a fragment that selects from another one.
func (f *frag) over(s selection, cols []string, op string) *frag {
	s.from, s.where = f.table, f.where
	if len(f.orders) > 0 || f.limit != nil || f.offset != nil {
		s.from, s.where = f.ref(), nil
	}
	out := &frag{
		table: derived(s.node()), cols: cols, in: f.in, bytes: f.bytes, ops: withOp(f.ops, op), parted: f.parted, alts: f.alts,
		floats: f.floats, shaky: f.shaky,
	}
	return out
}

func withOp(ops []string, op string) []string {
	if op == "" || len(ops) > 0 && ops[len(ops)-1] == op {
		return ops
	}
	return append(ops[:len(ops):len(ops)], op)
}

// wholeCopy reads all inputs whole instead of sharing them.
func (f *frag) wholeCopy() *frag {
	c := *f
	c.in = slices.Clone(f.in)
	for i := range c.in {
		c.in[i].split = false
	}
	c.alts, c.parted = nil, nil
	return &c
}

// onlySources reports that no earlier stage is read.
func (f *frag) onlySources() bool {
	return !slices.ContainsFunc(f.in, func(i input) bool { return i.stage >= 0 })
}

// merge adds inputs; ok is false if one of them would be read both whole and in shares.
func merge(a, b []input) (out []input, ok bool) {
	out = slices.Clone(a)
	for _, i := range b {
		at := slices.IndexFunc(out, func(o input) bool { return o.view == i.view })
		switch {
		case at < 0:
			out = append(out, i)
		case out[at].split || i.split: // also twice in shares: rows of one share would meet only those of the same share
			return nil, false
		}
	}
	return out, true
}

// stage is a QueryStage in the making.
type stage struct {
	index int
	out   *executorv1.QueryStage
	node  *ast.Object
	frag  *frag
}

// maxStages bounds what a query's text can make of itself.
const maxStages = 64

func stageView(n int) string { return fmt.Sprintf("signet_stage_%d", n) }

// addStage makes a stage of a SELECT over a fragment. Its columns are named ids.
func (p *planner) addStage(f *frag, node *ast.Object, names []string, kind planv1.ExchangeKind, keys []string, label string) (*stage, error) {
	if len(p.stages) >= maxStages {
		return nil, unstaged("it would need more than %d stages", maxStages)
	}
	sql, err := p.render(node)
	if err != nil {
		return nil, err
	}
	cols, err := p.describe(sql)
	if err != nil {
		return nil, err
	}
	if len(cols) != len(names) {
		return nil, unstaged("one of its expressions gives several columns")
	}
	if p.nulls {
		if err := p.findNulls(sql, cols, keys); err != nil {
			return nil, err
		}
	}
	for i, c := range cols {
		if c.GetName() != names[i] {
			return nil, unstaged("DuckDB calls column %s %s", names[i], c.GetName())
		}
		if !carriable(c.GetEngineType()) {
			return nil, unstaged("tasks cannot pass on column %s: its type is %s", plainName(c.GetName()), c.GetEngineType())
		}
		p.typed[c.GetName()] = c.GetEngineType()
	}
	s := &stage{index: len(p.stages), node: node, frag: f}
	s.out = &executorv1.QueryStage{Sql: sql, Columns: cols, Output: kind, Label: label, Single: !f.split(), Repeatable: !f.shaky}
	for _, k := range keys {
		at := slices.Index(names, k)
		if t := p.typed[k]; !hashable(t) {
			return nil, unstaged("rows cannot be hashed by %s: its type is %s", plainName(k), t)
		}
		s.out.Keys = append(s.out.Keys, int32(at))
		if f.floats[k] {
			s.out.Repeatable = false
		}
	}
	s.out.Inputs = p.stageInputs(f.in)
	if err := p.standIn(stageView(s.index), cols); err != nil {
		return nil, err
	}
	p.stages = append(p.stages, s)
	return s, p.addAlternatives(s)
}

func (p *planner) stageInputs(in []input) []*executorv1.StageInput {
	var out []*executorv1.StageInput
	for _, i := range in {
		out = append(out, &executorv1.StageInput{View: i.view, Stage: int32(i.stage), Split: i.split})
	}
	return out
}

// addAlternatives writes the stage's joins by broadcast.
func (p *planner) addAlternatives(s *stage) error {
	for _, a := range s.frag.alts {
		var rest []input
		for _, i := range s.frag.in {
			if i.stage != a.absorb.index && i.stage != a.broadcast.index {
				rest = append(rest, i)
			}
		}
		in, ok := merge(rest, a.absorb.frag.in)
		if in, ok2 := merge(in, []input{{view: stageView(a.broadcast.index), stage: a.broadcast.index}}); ok && ok2 {
			inner := stageView(a.absorb.index)
			node, _ := rewrite(s.node, func(o *ast.Object) ast.Value {
				if o.Str("type") == "BASE_TABLE" && o.Str("table_name") == inner {
					return derived(a.absorb.node)
				}
				return nil
			}).(*ast.Object)
			sql, err := p.render(node)
			if err != nil {
				return err
			}
			s.out.Broadcasts = append(s.out.Broadcasts, &executorv1.BroadcastJoin{
				Absorbs: int32(a.absorb.index), Broadcasts: int32(a.broadcast.index), Sql: sql, Inputs: p.stageInputs(in),
			})
		}
	}
	return nil
}

// reading is a fragment that reads stages: their rows one behind the other.
func reading(stages []*stage, names []string, kind planv1.ExchangeKind) *frag {
	f := &frag{cols: names, floats: idset{}}
	var node *ast.Object
	for i := len(stages) - 1; i >= 0; i-- { // DuckDB's parser leans UNION ALL to the right
		s := stages[i]
		f.in = append(f.in, input{stageView(s.index), s.index, kind == planv1.ExchangeKind_EXCHANGE_KIND_HASH})
		f.bytes += s.frag.bytes
		switch {
		case len(stages) == 1:
			node = table(stageView(s.index))
		case node == nil:
			node = selection{items: references(names), from: table(stageView(s.index))}.node()
		default:
			node = setOperation("UNION", true, selection{items: references(names), from: table(stageView(s.index))}.node(), node)
		}
	}
	slices.Reverse(f.in)
	f.table = node
	if len(stages) > 1 {
		f.table = derived(node)
	}
	return f
}
