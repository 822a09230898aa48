package plan

import (
	"errors"
	"fmt"
	"slices"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
	"google.golang.org/protobuf/proto"
)

// ErrPhysical is a physical plan that cannot be run.
var ErrPhysical = errors.New("the physical plan is not valid")

// Physical is a plan that somebody else has cut and divided: tasks as executors run them, without attempts. Exchange sources name the stage
// that they read and, as parts with task -1, the partitions. Work of the last stage's tasks is unset, or Write.
type Physical struct {
	Tasks   []*planv1.Task     // by stage and task, both from 0 without gaps
	Columns [][]*planv1.Column // of each stage's rows
	Above   []*Node            // operators above the last stage, the outermost first: Result, or Commit and Write; Coalesce
	Spec    *planv1.WriteSpec  // of a write
	Repeat  []bool             // by stage: a task that runs again gives the same rows
	Request Request            // Limits, Root, MaxResultBytes and Table; the rest is ignored
	Mode    Mode               // of the planner, for whoever makes it
}

// FromPhysical makes the planner of a physical plan. The root is split off it as off any other (S6).
func FromPhysical(mode Mode, p Physical) (Planner, error) {
	limits := p.Request.Limits.withDefaults()
	stages, err := Validate(p.Tasks, p.Columns, limits)
	if err != nil {
		return nil, err
	}
	if slices.Contains(p.Above, nil) {
		return nil, fmt.Errorf("%w: an operator above its stages is missing", ErrPhysical)
	}
	exchanges := make([]*Node, len(stages))
	var last *Node
	for i, tasks := range stages {
		q := &executorv1.QueryStage{Sql: tasks[0].GetSql(), Label: "(as given)", Columns: p.Columns[i], Repeatable: i < len(p.Repeat) && p.Repeat[i], Single: len(tasks) == 1}
		n := &Node{Op: OpFragment, Label: q.GetLabel(), Details: sqlLines(q.GetSql()), Query: q, Tasks: tasks}
		for _, s := range tasks[0].GetSources() {
			if ex := s.GetExchange(); ex != nil {
				n.Inputs = append(n.Inputs, exchanges[ex.GetStage()])
				continue
			}
			scan := scanNode(s)
			scan.Source = s
			n.Inputs = append(n.Inputs, scan)
		}
		ex := tasks[0].GetExchange()
		exchanges[i], last = &Node{Op: OpExchange, Label: exchangeLabel(ex, p.Columns[i]), Exchange: ex, Inputs: []*Node{n}}, n
	}
	for i := len(p.Above) - 1; i >= 0; i-- {
		n := *p.Above[i]
		n.Inputs = []*Node{last}
		last = &n
	}
	r := p.Request
	r.Staged, r.Input, r.Spec = nil, Input{}, p.Spec
	if mutant.On("plan/physical-unsplit") {
		r.Root = nil
	}
	b, err := newBuilder(r, last)
	if err != nil {
		return nil, err
	}
	return b.planner(mode)
}

func (b *builder) physicalEdges(u *segment, frag *Node) error {
	for i, in := range frag.Inputs {
		e := edge{view: u.tasks[0].GetSources()[i].GetView()}
		switch in.Op {
		case OpRead:
			e.from = b.segments[in.Stage]
		default:
			e.source = in.Source
		}
		u.edges = append(u.edges, e)
	}
	return nil
}

// placeFixed places a stage whose tasks are given.
func (b *builder) placeFixed(u *segment) error {
	st := Stage{
		Plan: b.fragmentNode(u), Repeatable: u.query.GetRepeatable(), Inputs: b.inputs(u.edges), columns: u.query.GetColumns(), sql: u.query.GetSql(), fixed: u.tasks,
	}
	for _, t := range u.tasks {
		sources := make([]*planv1.Source, len(t.GetSources()))
		bytes := int64(0)
		for i, s := range t.GetSources() {
			sources[i] = s
			for _, f := range filesOf(s) {
				bytes += max(f.GetSizeBytes(), 0)
			}
			if ex := s.GetExchange(); ex != nil { // stages have the numbers of their places
				c := proto.CloneOf(ex)
				c.Stage = u.edges[i].from.placed
				sources[i] = &planv1.Source{View: s.GetView(), Alias: s.GetAlias(), Kind: &planv1.Source_Exchange{Exchange: c}}
			}
		}
		st.Split.Shares, st.Split.Bytes = append(st.Split.Shares, sources), append(st.Split.Bytes, bytes)
	}
	if u.exchange != nil {
		u.placed = b.keepFixed(st, proto.CloneOf(u.exchange))
		return nil
	}
	if len(u.tasks) > 1 && u.tasks[0].GetWrite() == nil {
		for _, t := range u.tasks[1:] {
			if t.GetSql() != u.tasks[0].GetSql() {
				return fmt.Errorf("%w: tasks of the last stage have queries of their own, which only a write may", ErrPhysical)
			}
		}
	}
	if w := u.tasks[0].GetWrite(); w != nil {
		u.placed = int32(len(b.plan.Stages))
		if len(b.above) == 1 && b.above[0].Op == OpWrite {
			st.Plan = &Node{Op: OpWrite, Label: b.above[0].Label, Details: b.above[0].Details, Inputs: []*Node{st.Plan}}
		}
		st.work = &planv1.Task{Work: u.tasks[0].GetWork()}
		b.add(st)
		return nil
	}
	st.fixed = nil
	return b.placeLast(u, st)
}

func (b *builder) keepFixed(st Stage, ex *planv1.ExchangeTask) int32 {
	st.Stored = true
	st.work = &planv1.Task{Work: &planv1.Task_Exchange{Exchange: ex}}
	st.Plan = &Node{Op: OpExchange, Label: exchangeLabel(ex, st.columns), Inputs: []*Node{st.Plan}, Exchange: ex}
	return b.add(st)
}
