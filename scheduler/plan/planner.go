package plan

import (
	"fmt"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Mode says when stages are planned.
type Mode string

// The modes of planning.
const (
	Static   Mode = "static"   // all stages at submission, from the sizes of the sources
	Adaptive Mode = "adaptive" // the next stages from the measured output of the last
)

// Planner gives the stages of a job, behind those they read. It is called once at submission and then whenever every stage that it gave is
// complete, until a batch says that nothing more will come. It is not safe for concurrent use.
type Planner interface {
	// Next plans on. measured is the output of every complete stage that keeps its output on executors.
	Next(measured map[int32]Measure) (Batch, error)
	// Plan is what is planned so far.
	Plan() *Plan
}

// Batch is a part of a plan.
type Batch struct {
	Stages []Stage
	More   bool
}

// Measure is what the tasks of a stage have left, by partition.
type Measure struct {
	Rows  []int64
	Bytes []int64
}

// Total is the bytes of all partitions.
func (m Measure) Total() int64 {
	sum := int64(0)
	for _, n := range m.Bytes {
		sum += n
	}
	return sum
}

// New makes the planner of a query or a write from its logical plan.
func New(mode Mode, r Request) (Planner, error) {
	staged, reason, err := stagedOf(r)
	if err != nil {
		return nil, err
	}
	b, err := newBuilder(r, tree(r, staged))
	if err != nil {
		return nil, err
	}
	b.whole = reason
	return b.planner(mode)
}

func (b *builder) planner(mode Mode) (Planner, error) {
	switch mode {
	case Adaptive:
		return &adaptive{b: b}, nil
	case Static, "":
		return &static{b: b}, nil
	}
	return nil, fmt.Errorf("there is no planner %q", mode)
}

// Build plans all stages at once.
func Build(r Request) (*Plan, error) {
	p, err := New(Static, r)
	if err != nil {
		return nil, err
	}
	if _, err := p.Next(nil); err != nil {
		return nil, err
	}
	return p.Plan(), nil
}

// builder is what both planners share: the root is split off, the rest is cut, and each stage becomes tasks when a planner places it.
type builder struct {
	req      Request
	limits   Limits
	segments []*segment
	above    []*Node // operators above the last unit's query, the outermost first
	plan     *Plan
	whole    string // why the query is one stage although it could be several
	// measured is what complete stages have left.
	measured map[int32]Measure
	fanOut   int // how many partitions there are to one task that will probably read them
	// pendingWrite waits for the exchange below it.
	pendingWrite *pendingWrite
}

// segment is one stage of the logical plan.
type segment struct {
	node     *Node // Exchange over Fragment; the last one: the operators above it
	query    *executorv1.QueryStage
	tasks    []*planv1.Task // of a physical plan
	edges    []edge
	readers  []*segment
	exchange *planv1.ExchangeTask // nil: the last one
	index    int32                // in the staged query
	placed   int32                // stage that gives its rows; -1: none yet
	absorbed bool                 // its query is part of its reader's
	choice   *executorv1.BroadcastJoin
	group    *hashGroup
}

// edge is one input of a unit.
type edge struct {
	view   string
	from   *segment       // nil: a source
	source *planv1.Source // nil: a unit
	split  bool
}

// hashGroup are the units whose partitions are read together: all have the same number.
type hashGroup struct {
	members    []*segment
	partitions int32 // 0: not decided
}

func newBuilder(r Request, logical *Node) (*builder, error) {
	root, rest, err := SplitRoot(logical, r.Root)
	if err != nil {
		return nil, err
	}
	if err := refuseRoot(r, root); err != nil {
		return nil, err
	}
	b := &builder{
		req: r, limits: r.Limits.withDefaults(), fanOut: 1,
		plan: &Plan{Root: root, engineText: r.EngineText, Warnings: r.Spec.GetWarnings()},
	}
	if mutant.On("plan/cut-with-root") {
		rest = logical
	}
	nodes := CutStages(rest)
	if len(nodes) > b.limits.MaxStages {
		return nil, &Error{Message: fmt.Sprintf("the plan has %d stages; at most %d are allowed", len(nodes), b.limits.MaxStages), Hint: "write parts of the statement to tables and query those"}
	}
	for _, n := range nodes {
		u, err := b.segment(n)
		if err != nil {
			return nil, err
		}
		b.segments = append(b.segments, u)
	}
	b.above = operatorsAbove(nodes[len(nodes)-1])
	b.plan.Columns = b.segments[len(b.segments)-1].query.GetColumns()
	for _, u := range b.segments {
		for _, e := range u.edges {
			if e.from != nil {
				e.from.readers = append(e.from.readers, u)
			}
		}
	}
	b.groups()
	return b, nil
}

// refuseRoot refuses what would let rows out before a scheduler root, which runs last, has decided about the job (S33, S34).
func refuseRoot(r Request, root *Node) error {
	switch {
	case root == nil:
		return nil
	case mutant.On("plan/refusal-unnamed") && (r.Pipelined || r.Keep):
		return &Error{Message: "this cannot be"}
	case r.Pipelined && !mutant.On("plan/pipelined-root"):
		return &Error{
			Message: fmt.Sprintf("a pipelined job cannot have a scheduler root: %s runs when every stage has succeeded, and a pipelined job hands out rows before", root.Op),
			Hint:    "leave " + SettingPipelined + " unset",
		}
	case r.Keep && !mutant.On("plan/cached-root"):
		return &Error{
			Message: fmt.Sprintf("a job that builds a cache cannot have a scheduler root: its rows are kept as they are, and %s would run over them", root.Op),
			Hint:    "leave " + SettingRoot + " unset",
		}
	}
	return nil
}

// operatorsAbove are the operators between a stage's top and its query.
func operatorsAbove(n *Node) []*Node {
	var out []*Node
	for n.Op != OpFragment && len(n.Inputs) == 1 {
		out = append(out, n)
		n = n.Inputs[0]
	}
	return out
}

func (b *builder) segment(n *Node) (*segment, error) {
	u := &segment{node: n, placed: -1, index: int32(len(b.segments))}
	frag := n
	for frag.Op != OpFragment {
		if len(frag.Inputs) != 1 {
			return nil, fmt.Errorf("stage %d: %s has %s, not one", u.index, frag.Op, count(len(frag.Inputs), "input"))
		}
		if frag.Op == OpExchange {
			if frag.Exchange == nil || frag != n {
				return nil, fmt.Errorf("stage %d: an exchange that does not say who reads it", u.index)
			}
			u.exchange = frag.Exchange
		}
		frag = frag.Inputs[0]
	}
	if u.query, u.tasks = frag.Query, frag.Tasks; u.query == nil {
		return nil, fmt.Errorf("stage %d: a fragment without a query", u.index)
	}
	if u.tasks != nil {
		return u, b.physicalEdges(u, frag)
	}
	if len(u.query.GetInputs()) != len(frag.Inputs) {
		return nil, fmt.Errorf("stage %d: the query names %d inputs and the plan has %d", u.index, len(u.query.GetInputs()), len(frag.Inputs))
	}
	for i, in := range u.query.GetInputs() {
		e := edge{view: in.GetView(), split: in.GetSplit()}
		switch child := frag.Inputs[i]; child.Op {
		case OpScan:
			e.source = child.Source
		case OpRead:
			e.from = b.segments[child.Stage]
		default:
			return nil, fmt.Errorf("stage %d: %s as the input of a query", u.index, child.Op)
		}
		if e.source == nil && e.from == nil {
			return nil, fmt.Errorf("stage %d: input %s reads nothing", u.index, in.GetView())
		}
		u.edges = append(u.edges, e)
	}
	return u, nil
}

// groups puts units together whose hash partitions meet in one reader.
func (b *builder) groups() {
	for _, u := range b.segments {
		if u.exchange.GetKind() == planv1.ExchangeKind_EXCHANGE_KIND_HASH && u.group == nil {
			u.group = &hashGroup{members: []*segment{u}, partitions: u.exchange.GetPartitions()}
		}
	}
	for _, u := range b.segments {
		var first *hashGroup
		for _, e := range u.edges {
			if e.from == nil || e.from.group == nil || !e.split {
				continue
			}
			if first == nil {
				first = e.from.group
				continue
			}
			if other := e.from.group; other != first {
				for _, m := range other.members {
					m.group = first
				}
				first.members = append(first.members, other.members...)
				first.partitions = max(first.partitions, other.partitions)
			}
		}
	}
}

// estimate is a guess of the bytes that a unit gives: what was measured, or all that it reads.
func (b *builder) estimate(u *segment) int64 {
	if u.placed >= 0 {
		if m, ok := b.measured[u.placed]; ok {
			return m.Total()
		}
	}
	return b.inputBytes(u.edges)
}

func (b *builder) inputBytes(edges []edge) int64 {
	sum := int64(0)
	for _, e := range edges {
		if e.from != nil {
			sum += b.estimate(e.from)
			continue
		}
		for _, f := range filesOf(e.source) {
			sum += max(f.GetSizeBytes(), 0)
		}
	}
	return sum
}

// partitions is the number of hash partitions of a unit, the same for all that are read with it.
func (b *builder) partitions(u *segment) int32 {
	g := u.group
	if g.partitions > 0 {
		return g.partitions
	}
	if g.partitions = b.req.Tuning.Partitions; g.partitions <= 0 {
		bytes := int64(0)
		for _, m := range g.members {
			if !m.absorbed {
				bytes += b.estimate(m)
			}
		}
		g.partitions = b.partitionsFor(bytes)
	}
	return g.partitions
}

func (b *builder) partitionsFor(bytes int64) int32 {
	n := taskCount(bytes, b.limits.MaxTasks, b.limits) * b.fanOut
	return int32(min(n, b.limits.MaxTasks, MaxPartitions))
}

// MaxPartitions bounds the partitions of one exchange, each of which is a file for every task that writes it.
const MaxPartitions = 4096
