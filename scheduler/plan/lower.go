package plan

import (
	"fmt"
	"slices"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
	"google.golang.org/protobuf/proto"
)

// gatherView is the name under which a stage that the planner adds reads the stage below it.
const gatherView = "__signet_rows"

func (b *builder) byIndex(i int32) *segment {
	if i < 0 || int(i) >= len(b.req.Staged.GetStages()) {
		return nil
	}
	want := b.req.Staged.GetStages()[i]
	for _, u := range b.segments {
		if u.query == want {
			return u
		}
	}
	return nil
}

// absorbable: the unit's only reader can take over its query.
func (b *builder) absorbable(u, reader *segment) bool {
	return u != nil && u.placed < 0 && !u.absorbed && u.choice == nil && len(u.readers) == 1 && u.readers[0] == reader
}

// chooseBroadcast takes the other way to run a join if the side that every task would read is small.
func (b *builder) chooseBroadcast(u *segment, small func(*segment) bool) {
	if u.placed >= 0 || u.absorbed || u.choice != nil {
		return
	}
	for _, alt := range u.query.GetBroadcasts() {
		other := b.byIndex(alt.GetBroadcasts())
		if other == nil || other.absorbed || !b.absorbable(b.byIndex(alt.GetAbsorbs()), u) || !small(other) {
			continue
		}
		edges, err := b.altEdges(alt)
		if err != nil {
			continue // the stages as they are run as well
		}
		absorbed := b.byIndex(alt.GetAbsorbs())
		u.choice, absorbed.absorbed = alt, true
		for _, e := range absorbed.edges {
			if e.from != nil {
				e.from.readers = slices.DeleteFunc(e.from.readers, func(r *segment) bool { return r == absorbed })
			}
		}
		u.edges = edges
		for _, e := range edges {
			if e.from != nil && !slices.Contains(e.from.readers, u) {
				e.from.readers = append(e.from.readers, u)
			}
		}
		// Nobody reads by the hash of the keys any more.
		if other.placed < 0 && len(other.readers) == 1 {
			other.exchange = &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST, Partitions: 1}
			other.group = nil
		}
		return
	}
}

func (b *builder) altEdges(alt *executorv1.BroadcastJoin) ([]edge, error) {
	var out []edge
	for _, in := range alt.GetInputs() {
		e := edge{view: in.GetView(), split: in.GetSplit()}
		if in.GetStage() < 0 {
			e.source = sourceByView(b.req.Input.Sources, in.GetView())
		} else {
			e.from = b.byIndex(in.GetStage())
		}
		if e.source == nil && e.from == nil {
			return nil, fmt.Errorf("broadcast join: input %s reads nothing", in.GetView())
		}
		out = append(out, e)
	}
	return out, nil
}

func sourceByView(sources []*planv1.Source, view string) *planv1.Source {
	for _, s := range sources {
		if s.GetView() == view {
			return s
		}
	}
	return nil
}

func (u *segment) sql() string {
	if u.choice != nil {
		return u.choice.GetSql()
	}
	return u.query.GetSql()
}

// place makes a unit a stage. The last unit may become two: one that keeps its rows, and one that brings them together.
func (b *builder) place(u *segment) error {
	if u.tasks != nil {
		return b.placeFixed(u)
	}
	split, err := b.shares(u)
	if err != nil {
		return err
	}
	st := Stage{Plan: b.fragmentNode(u), Split: split, Repeatable: u.query.GetRepeatable(), Inputs: b.inputs(u.edges), columns: u.query.GetColumns(), sql: u.sql()}
	if u.choice != nil {
		st.Notes = append(st.Notes, fmt.Sprintf("every task reads all of stage %d (broadcast join)", b.byIndex(u.choice.GetBroadcasts()).placed))
	}
	if u.exchange == nil {
		return b.placeLast(u, st)
	}
	ex := &planv1.ExchangeTask{Kind: u.exchange.GetKind(), Keys: u.exchange.GetKeys(), Partitions: 1}
	if u.exchange.GetKind() == planv1.ExchangeKind_EXCHANGE_KIND_HASH {
		ex.Partitions = b.partitions(u)
	}
	u.placed = b.keep(st, ex)
	return nil
}

// keep adds a stage whose rows stay on executors.
func (b *builder) keep(st Stage, ex *planv1.ExchangeTask) int32 {
	st.Stored = true
	st.work = &planv1.Task{Sql: st.sql, Work: &planv1.Task_Exchange{Exchange: ex}}
	st.Plan = &Node{Op: OpExchange, Label: exchangeLabel(ex, st.columns), Inputs: []*Node{st.Plan}, Exchange: ex}
	return b.add(st)
}

func (b *builder) add(st Stage) int32 {
	st.ID = int32(len(b.plan.Stages))
	b.plan.Stages = append(b.plan.Stages, st)
	return st.ID
}

// placeLast ends the plan: its rows go to the client, to the table, or to the scheduler root.
func (b *builder) placeLast(u *segment, st Stage) error {
	u.placed = int32(len(b.plan.Stages))
	above := b.above
	for len(above) > 0 && above[len(above)-1].Op == OpCoalesce {
		n := above[len(above)-1]
		above = above[:len(above)-1]
		if n.Limit > 0 || st.Tasks() > 1 && !b.req.Keep {
			st = b.gather(st, n)
		}
	}
	if len(above) == 0 || b.req.Keep { // the operator above is the scheduler root, or the caller fetches the rows
		st.sql, st.columns = numbered(st.sql, st.columns)
		b.keep(st, gatherTask())
		return nil
	}
	if len(above) > 1 {
		return fmt.Errorf("%s above %s: one of them has to be last", above[0].Op, above[1].Op)
	}
	switch op := above[0]; op.Op {
	case OpResult:
		if st.Tasks() > 1 {
			st = b.gather(st, &Node{Op: OpCoalesce})
		}
		st.work = &planv1.Task{Sql: st.sql, Work: &planv1.Task_Result{Result: &planv1.ResultTask{MaxBytes: b.req.MaxResultBytes}}}
		st.Plan = &Node{Op: op.Op, Label: op.Label, Details: op.Details, Inputs: []*Node{st.Plan}}
		b.add(st)
		return nil
	case OpWrite:
		return b.placeWrite(st, op)
	default:
		return &Error{Message: fmt.Sprintf("%s cannot be the last operator on executors", op.Op), Hint: "a plan ends in Result, Write or Commit"}
	}
}

func gatherTask() *planv1.ExchangeTask {
	return &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_GATHER, Partitions: 1}
}

// gather keeps a stage's rows and returns the stage of one task that reads all of them, in order, and stops at the operator's limit (S9).
func (b *builder) gather(st Stage, op *Node) Stage {
	names := st.columns
	st.sql, st.columns = numbered(st.sql, st.columns)
	id := b.keep(st, gatherTask())
	var list []string
	for i, c := range names {
		list = append(list, fmt.Sprintf("c%d AS %s", i, sql.QuoteIdent(c.GetName())))
	}
	text := "SELECT " + strings.Join(list, ", ") + " FROM " + gatherView
	if op.Limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", op.Limit)
	}
	below := b.plan.Stages[id]
	return Stage{
		Plan:   &Node{Op: OpCoalesce, Limit: op.Limit, Inputs: []*Node{{Op: OpRead, Stage: id}}},
		Inputs: []int32{id}, columns: names, sql: text, Repeatable: op.Limit == 0,
		Split: Split{Shares: [][]*planv1.Source{{exchangeSource(gatherView, below, allPartitions(below))}}, Bytes: []int64{0}},
	}
}

// numbered names the columns of a query by their place: rows in an exchange have columns of different names, a query need not.
func numbered(text string, columns []*planv1.Column) (string, []*planv1.Column) {
	if len(columns) == 0 {
		return text, columns
	}
	names := make([]string, len(columns))
	out := make([]*planv1.Column, len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprintf("c%d", i)
		out[i] = proto.CloneOf(c)
		out[i].Name = names[i]
	}
	return "SELECT * FROM (\n" + text + "\n) AS q(" + strings.Join(names, ", ") + ")", out
}

func (b *builder) inputs(edges []edge) []int32 {
	var out []int32
	for _, e := range edges {
		if e.from != nil && !slices.Contains(out, e.from.placed) {
			out = append(out, e.from.placed)
		}
	}
	slices.Sort(out)
	return out
}

// fragmentNode shows a unit's query over what it reads.
func (b *builder) fragmentNode(u *segment) *Node {
	n := &Node{Op: OpFragment, Label: u.query.GetLabel(), Details: sqlLines(u.sql())}
	if n.Label == "" && len(b.segments) == 1 && b.req.Input.RowWise {
		n.Label = "(row-wise)"
	}
	for _, e := range u.edges {
		if e.source != nil {
			scan := scanNode(e.source)
			if len(b.segments) > 1 && !e.split {
				scan.Label += ", read whole by every task"
			}
			n.Inputs = append(n.Inputs, scan)
			continue
		}
		n.Inputs = append(n.Inputs, &Node{Op: OpRead, Stage: e.from.placed})
	}
	return n
}

func exchangeLabel(ex *planv1.ExchangeTask, columns []*planv1.Column) string {
	switch ex.GetKind() {
	case planv1.ExchangeKind_EXCHANGE_KIND_HASH:
		names := make([]string, len(ex.GetKeys()))
		for i, k := range ex.GetKeys() {
			names[i] = "?"
			if k >= 0 && int(k) < len(columns) {
				names[i] = sql.DisplayIdent(columns[k].GetName())
			}
		}
		return fmt.Sprintf("hash(%s) into %s", strings.Join(names, ", "), count(int(ex.GetPartitions()), "partition"))
	case planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST:
		return "broadcast"
	default:
		return "gather"
	}
}
