package plan

import (
	"fmt"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Op is the kind of an operator.
type Op string

// The operators of physical plans.
const (
	OpScan     Op = "Scan"     // reads sources
	OpFragment Op = "Fragment" // a query that one DuckDB runs whole
	OpExchange Op = "Exchange" // redistributes rows; stages end at it
	OpCoalesce Op = "Coalesce" // brings all partitions into one
	OpWrite    Op = "Write"    // writes data files; its rows are task manifests
	OpCommit   Op = "Commit"   // makes what was written visible
	OpResult   Op = "Result"   // sends rows to the client
	OpRead     Op = "Read"     // stands for the stage that an exchange ended
)

var allOps = []Op{OpScan, OpFragment, OpExchange, OpCoalesce, OpWrite, OpCommit, OpResult}

// Node is an operator and its inputs. A tree is not changed once built: functions here return new nodes.
type Node struct {
	Op      Op
	Label   string   // behind the operator's name in EXPLAIN
	Details []string // lines below it
	Limit   int64    // OpCoalesce: row limit; 0: none
	Stage   int32    // OpRead: the stage it reads
	Inputs  []*Node

	Query    *executorv1.QueryStage // OpFragment: what it runs; its inputs stand in the order of Inputs
	Tasks    []*planv1.Task         // OpFragment of a physical plan: its tasks
	Source   *planv1.Source         // OpScan
	Exchange *planv1.ExchangeTask   // OpExchange: who reads it, and by which keys
}

// Predicate selects which operator, where it is a plan's root, runs on the scheduler.
type Predicate func(*Node) bool

// DefaultRoot selects commits and nothing else.
func DefaultRoot(n *Node) bool { return n.Op == OpCommit }

// RootByName makes a predicate of the setting signet.scheduler.root: names of operators, separated by commas. It always has Commit.
func RootByName(setting string) (Predicate, error) {
	chosen := map[Op]bool{OpCommit: true}
	for name := range strings.SplitSeq(setting, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		op, ok := opByName(name)
		if !ok {
			return nil, &Error{Message: fmt.Sprintf("signet.scheduler.root: there is no operator %q", name), Hint: fmt.Sprintf("operators are %v", allOps)}
		}
		chosen[op] = true
	}
	return func(n *Node) bool { return chosen[n.Op] }, nil
}

func opByName(name string) (Op, bool) {
	for _, op := range allOps {
		if strings.EqualFold(string(op), name) {
			return op, true
		}
	}
	return "", false
}

// SplitRoot takes the scheduler root off a plan before it is cut into stages. It is the only place that does (S5, S6). root is nil
// where the plan's root does not match (S4); an operator below the root is never taken (S3). A nil predicate is DefaultRoot (S56).
func SplitRoot(plan *Node, match Predicate) (root, rest *Node, err error) {
	if match == nil || mutant.On("plan/predicate-ignored") {
		match = DefaultRoot
	}
	if plan.Op == OpCommit && !match(plan) && !mutant.On("plan/commit-anywhere") {
		return nil, nil, &Error{Message: "a commit runs on the scheduler and nowhere else, and the configured root predicate excludes it", Hint: "let the predicate accept Commit"}
	}
	if err := noCommitBelow(plan); err != nil {
		return nil, nil, err
	}
	if mutant.On("plan/root-below") && !match(plan) && len(plan.Inputs) == 1 {
		return SplitRoot(plan.Inputs[0], match)
	}
	if !match(plan) && !mutant.On("plan/root-always") {
		return nil, plan, nil
	}
	if len(plan.Inputs) != 1 {
		return nil, nil, fmt.Errorf("%s cannot be a scheduler root: it has %s, not one", plan.Op, count(len(plan.Inputs), "input"))
	}
	detached := *plan
	detached.Inputs = nil
	return &detached, withoutCoalesce(plan.Inputs[0]), nil
}

// withoutCoalesce drops coalesces without a row limit: the root reads all partitions anyway (S8). One with a limit changes the
// rows: it stays (S9).
func withoutCoalesce(n *Node) *Node {
	for n.Op == OpCoalesce && (n.Limit == 0 && !mutant.On("plan/coalesce-kept") || mutant.On("plan/limit-dropped")) && len(n.Inputs) == 1 {
		n = n.Inputs[0]
	}
	return n
}

func noCommitBelow(n *Node) error {
	for _, in := range n.Inputs {
		if in.Op == OpCommit {
			return fmt.Errorf("a commit below %s: it can only be the root of a plan", n.Op)
		}
		if err := noCommitBelow(in); err != nil {
			return err
		}
	}
	return nil
}

// CutStages cuts a plan at its exchanges. Stages come in an order in which each stands behind those it reads; the last one is the
// final stage. Their ids are their places. An exchange that is read twice is one stage.
func CutStages(rest *Node) []*Node {
	var stages []*Node
	known := map[*Node]int32{}
	var cut func(n *Node) *Node
	cut = func(n *Node) *Node {
		if id, ok := known[n]; ok {
			return &Node{Op: OpRead, Stage: id}
		}
		out := *n
		out.Inputs = make([]*Node, len(n.Inputs))
		for i, in := range n.Inputs {
			out.Inputs[i] = cut(in)
		}
		if n.Op != OpExchange {
			return &out
		}
		stages = append(stages, &out)
		known[n] = int32(len(stages) - 1)
		return &Node{Op: OpRead, Stage: known[n]}
	}
	final := cut(rest)
	return append(stages, final)
}

// Walk visits a plan from the root down.
func (n *Node) Walk(visit func(*Node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, in := range n.Inputs {
		in.Walk(visit)
	}
}
