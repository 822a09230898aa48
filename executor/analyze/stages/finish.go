package stages

import (
	"slices"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
)

// finish makes the last stage: the query's columns, by their names.
func (p *planner) finish(res *result) (*executorv1.StagedQuery, error) {
	var want []string
	for _, o := range res.outs {
		want = append(want, o.id)
	}
	low, err := p.lower(res.rel, setOf(want...))
	if err != nil {
		return nil, err
	}
	f := low.frags[0]
	if len(low.frags) > 1 {
		if f, err = p.spread(low); err != nil {
			return nil, err
		}
	}
	if len(res.outs) != len(p.query.Columns) {
		return nil, unstaged("the planner sees %d columns where DuckDB sees %d", len(res.outs), len(p.query.Columns))
	}
	s := selection{from: f.table, where: f.where, modifiers: f.modifiers()}
	for i, o := range res.outs {
		if isID(p.query.Columns[i].GetName()) { // ORDER BY would take it for one of ours
			return nil, unstaged("a column's name ends as the planner's own do")
		}
		s.items = append(s.items, named(column(o.id), p.query.Columns[i].GetName()))
	}
	last, err := p.lastStage(f, s.node())
	if err != nil {
		return nil, err
	}
	return p.assemble(last)
}

// spread brings the rows of several fragments into tasks that may go on with them.
func (p *planner) spread(low *lowered) (*frag, error) {
	cols := low.frags[0].cols
	keys, err := p.hashableOf(low, cols)
	if err != nil {
		return nil, err
	}
	kind := hashed
	if len(keys) == 0 {
		kind = gather
	}
	f, err := p.emit(low, cols, kind, keys)
	if err != nil {
		return nil, err
	}
	f.ops = []string{"union"}
	return f, nil
}

func (p *planner) hashableOf(low *lowered, cols []string) ([]item, error) {
	var out []item
	for _, k := range columnsOf(nameItems(cols)) {
		ok, err := p.canHash(low, []item{k})
		if err != nil {
			return nil, err
		}
		if ok && !slices.ContainsFunc(low.frags, func(f *frag) bool { return f.floats[k.id] }) {
			out = append(out, k)
		}
	}
	return out, nil
}

func (p *planner) lastStage(f *frag, node *ast.Object) (*stage, error) {
	sql, err := p.render(node)
	if err != nil {
		return nil, err
	}
	cols, err := p.describe(sql)
	if err != nil {
		return nil, err
	}
	for i, c := range cols {
		want := p.query.Columns[i]
		if c.GetName() != want.GetName() || c.GetEngineType() != want.GetEngineType() {
			return nil, unstaged("the planner makes %s %s where DuckDB makes %s %s", c.GetName(), c.GetEngineType(), want.GetName(), want.GetEngineType())
		}
		if f.split() && !carriable(c.GetEngineType()) {
			return nil, unstaged("tasks cannot pass on column %s: its type is %s", c.GetName(), c.GetEngineType())
		}
	}
	s := &stage{index: len(p.stages), node: node, frag: f}
	s.out = &executorv1.QueryStage{Sql: sql, Columns: p.query.Columns, Inputs: p.stageInputs(f.in), Label: label(f, ""), Single: !f.split(), Repeatable: !f.shaky}
	p.stages = append(p.stages, s)
	return s, p.addAlternatives(s)
}

// assemble drops what nobody reads, and says of each exchange who reads it.
func (p *planner) assemble(last *stage) (*executorv1.StagedQuery, error) {
	used := map[int]bool{}
	var mark func(s *stage)
	mark = func(s *stage) {
		if used[s.index] {
			return
		}
		used[s.index] = true
		for _, i := range s.frag.in {
			if i.stage >= 0 {
				mark(p.stages[i.stage])
			}
		}
	}
	mark(last)
	out := &executorv1.StagedQuery{}
	shared := false
	for _, s := range p.stages {
		if !used[s.index] {
			continue
		}
		shared = shared || s.frag.split()
		if s.out.Output == gather && p.readByMany(s, used) {
			s.out.Output = broadcast
		}
		out.Stages = append(out.Stages, s.out)
	}
	if !shared {
		why := "nothing in it can be shared among tasks"
		if len(p.query.Sources) == 0 {
			why = "it reads no table or file"
		} else if len(p.reasons) > 0 {
			why = p.reasons[0]
		}
		return nil, unstaged("%s", why)
	}
	p.renumber(out, used)
	return out, nil
}

// readByMany reports that several tasks read all of a stage's output.
func (p *planner) readByMany(s *stage, used map[int]bool) bool {
	for _, r := range p.stages {
		if used[r.index] && r.frag.split() && slices.ContainsFunc(r.frag.in, func(i input) bool { return i.stage == s.index }) {
			return true
		}
	}
	return false
}

// renumber closes the gaps that unused stages leave. Views keep their names.
func (p *planner) renumber(out *executorv1.StagedQuery, used map[int]bool) {
	to := map[int32]int32{-1: -1}
	n := int32(0)
	for _, s := range p.stages {
		if used[s.index] {
			to[int32(s.index)] = n
			n++
		}
	}
	for _, s := range out.GetStages() {
		for _, i := range s.GetInputs() {
			i.Stage = to[i.GetStage()]
		}
		for _, b := range s.GetBroadcasts() {
			b.Absorbs, b.Broadcasts = to[b.GetAbsorbs()], to[b.GetBroadcasts()]
			for _, i := range b.GetInputs() {
				i.Stage = to[i.GetStage()]
			}
		}
	}
}

// label says what a stage does.
func label(f *frag, last string) string {
	ops := withOp(f.ops, last)
	if len(ops) == 0 {
		return "read"
	}
	return strings.Join(ops, ", ")
}
