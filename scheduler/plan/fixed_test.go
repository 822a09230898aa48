package plan

import (
	"fmt"
	"testing"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// physical is two tasks that hash into two partitions, and two that read one each.
func physical() Physical {
	file := func(i int) *planv1.Source { return tableOf("a", 1, int64(i+1)) }
	read := func(p int32) *planv1.Source {
		return &planv1.Source{View: "s", Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{Columns: typed("k"), Parts: []*planv1.ExchangePart{{Task: -1, Partition: p}}}}}
	}
	hash := func() *planv1.Task_Exchange {
		return &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{Kind: hashKind, Keys: []int32{0}, Partitions: 2}}
	}
	return Physical{
		Tasks: []*planv1.Task{
			{Stage: 0, Task: 0, Sql: "SELECT k FROM a", Sources: []*planv1.Source{file(0)}, Work: hash()},
			{Stage: 0, Task: 1, Sql: "SELECT k FROM a", Sources: []*planv1.Source{file(1)}, Work: hash()},
			{Stage: 1, Task: 0, Sql: "SELECT k FROM s", Sources: []*planv1.Source{read(0)}},
			{Stage: 1, Task: 1, Sql: "SELECT k FROM s", Sources: []*planv1.Source{read(1)}},
		},
		Columns: [][]*planv1.Column{typed("k"), typed("k")},
	}
}

// S6: one function splits, for both planners, from logical and from physical plans. S7: no stage holds the root. S8, S9: a coalesce under the
// root is dropped unless it has a limit, which is then honoured.
// Numbers in docs/semantics.md: T8.
func TestSplitRoot_FourCases_S5_S6_S7_S8_S9(t *testing.T) {
	isResult := func(n *Node) bool { return n.Op == OpResult }
	for _, mode := range []Mode{Static, Adaptive} {
		for _, from := range []string{"logical", "physical"} {
			for _, limit := range []int64{-1, 0, 5} {
				t.Run(fmt.Sprintf("%s %s limit %d", mode, from, limit), func(t *testing.T) {
					var p Planner
					var err error
					var above []*Node
					if limit >= 0 {
						above = []*Node{{Op: OpCoalesce, Limit: limit}}
					}
					if from == "physical" {
						ph := physical()
						ph.Above = append([]*Node{{Op: OpResult}}, above...)
						ph.Request.Root = isResult
						p, err = FromPhysical(mode, ph)
					} else {
						r := joinRequest(64<<20, 64<<20)
						r.Root = isResult
						p, err = logicalWith(mode, r, above)
					}
					require.NoError(t, err)
					drive(t, p, func(Stage, int) int64 { return 10 << 20 })
					plan := p.Plan()
					require.Equal(t, OpResult, plan.Root.Op)
					last := plan.Stages[len(plan.Stages)-1]
					require.True(t, last.Stored, "the root fetches the last stage's rows")
					if limit == 5 {
						require.Equal(t, 1, last.Tasks())
						require.Contains(t, last.Task(0).GetSql(), "LIMIT 5")
					} else {
						require.Greater(t, last.Tasks(), 1, "the root reads all partitions itself")
					}
					for _, st := range plan.Stages {
						st.Plan.Walk(func(n *Node) {
							require.NotEqual(t, OpResult, n.Op)
							require.True(t, n.Op != OpCoalesce || limit == 5)
						})
					}
					checkReads(t, plan.Stages)
					require.Contains(t, plan.Explain(), "[scheduler] Result")
				})
			}
		}
	}
}

// logicalWith is New for a plan with operators between Result and the query.
func logicalWith(mode Mode, r Request, above []*Node) (Planner, error) {
	staged, _, err := stagedOf(r)
	if err != nil {
		return nil, err
	}
	top := tree(r, staged)
	for i := len(above) - 1; i >= 0; i-- {
		n := *above[i]
		n.Inputs = top.Inputs
		top.Inputs = []*Node{&n}
	}
	b, err := newBuilder(r, top)
	if err != nil {
		return nil, err
	}
	return b.planner(mode)
}

func TestFromPhysical_RunsAsGiven(t *testing.T) {
	for _, mode := range []Mode{Static, Adaptive} {
		ph := physical()
		ph.Above, ph.Request.MaxResultBytes = []*Node{{Op: OpResult}}, 7
		p, err := FromPhysical(mode, ph)
		require.NoError(t, err)
		drive(t, p, func(Stage, int) int64 { return 1 })
		stages := p.Plan().Stages
		require.Len(t, stages, 3, "the rows of two tasks are brought together for the client")
		require.Equal(t, ph.Tasks[1].GetSources(), stages[0].Task(1).GetSources())
		require.EqualValues(t, 2, stages[0].Task(1).GetExchange().GetPartitions())
		require.EqualValues(t, 7, stages[2].Task(0).GetResult().GetMaxBytes())
		checkReads(t, stages)
	}
}

func TestFromPhysical_Write(t *testing.T) {
	ph := physical()
	r := aggregateInsert(t)
	for _, task := range ph.Tasks[2:] {
		task.Work = &planv1.Task_Write{Write: &planv1.WriteTask{Columns: []*planv1.OutputColumn{{Input: 0}}, Spec: r.Spec}}
	}
	ph.Spec, ph.Above = r.Spec, []*Node{{Op: OpCommit, Label: "t"}, {Op: OpWrite, Label: "t"}}
	p, err := FromPhysical(Static, ph)
	require.NoError(t, err)
	_, err = p.Next(nil)
	require.NoError(t, err)
	require.Equal(t, OpCommit, p.Plan().Root.Op)
	require.Len(t, p.Plan().Stages, 2)
	require.NotNil(t, p.Plan().Stages[1].Task(1).GetWrite())
	require.Equal(t, "SELECT k FROM s", p.Plan().Stages[1].Task(1).GetSql())
}

func TestValidate_BadPlans(t *testing.T) {
	for want, change := range map[string]func(*Physical){
		"it has no tasks":                               func(p *Physical) { p.Tasks = nil },
		"has a stage 1000000; at most 1000":             func(p *Physical) { p.Tasks[3].Stage = 1_000_000 },
		"stage 5 follows stage 1":                       func(p *Physical) { p.Tasks[3].Stage = 5 },
		"stands behind stage 1":                         func(p *Physical) { p.Tasks[3].Stage = 0 },
		"task 7 stands where task 1 belongs":            func(p *Physical) { p.Tasks[3].Task = 7 },
		"plans have no cycles":                          func(p *Physical) { p.Tasks[2].GetSources()[0].GetExchange().Stage = 1 },
		"there are 2":                                   func(p *Physical) { p.Columns = p.Columns[:1] },
		"column 0 is read as k BIGINT and written":      func(p *Physical) { p.Columns[0] = []*planv1.Column{{Name: "k", EngineType: "INTEGER"}} },
		"1 columns are read and 2 are written":          func(p *Physical) { p.Columns[0] = typed("k", "l") },
		"an operator that is not known":                 func(p *Physical) { p.Tasks[0].Work = nil },
		"an operator that is not known here":            func(p *Physical) { p.Tasks[3].Work = &planv1.Task_Result{Result: &planv1.ResultTask{}} },
		"has no query":                                  func(p *Physical) { p.Tasks[0].Sql = "" },
		"an exchange of kind EXCHANGE_KIND_UNSPECIFIED": func(p *Physical) { p.Tasks[0].GetExchange().Kind = 0 },
		"in another way than task 0":                    func(p *Physical) { p.Tasks[1].GetExchange().Partitions = 3 },
		"reads partition 9 of stage 0, which has 2":     func(p *Physical) { p.Tasks[2].GetSources()[0].GetExchange().Parts[0].Partition = 9 },
		"key 4 of 1 columns":                            func(p *Physical) { p.Tasks[0].GetExchange().Keys[0] = 4 },
		"2000000000 partitions":                         func(p *Physical) { p.Tasks[0].GetExchange().Partitions = 2_000_000_000 },
		"keeps its rows, and nothing reads the last":    func(p *Physical) { p.Tasks[3].Work = p.Tasks[0].Work },
		"writes, and stages behind it read":             func(p *Physical) { p.Tasks[0].Work = &planv1.Task_Write{Write: &planv1.WriteTask{}} },
		"stage 0: nothing reads it":                     func(p *Physical) { p.Tasks[2].Sources, p.Tasks[3].Sources = nil, nil },
		"two that are called":                           func(p *Physical) { p.Tasks[2].Sources = append(p.Tasks[2].Sources, p.Tasks[2].Sources[0]) },
		"of a kind that is not known":                   func(p *Physical) { p.Tasks[0].Sources[0] = &planv1.Source{View: "a"} },
		"read different sources": func(p *Physical) {
			p.Tasks[3].Sources[0] = proto.CloneOf(p.Tasks[3].Sources[0])
			p.Tasks[3].Sources[0].View = "z"
		},
		"the plan has 4 tasks; at most 3 are allowed": func(p *Physical) { p.Request.Limits.MaxJobTasks = 3 },
		"stage 0 has more than 1 tasks":               func(p *Physical) { p.Request.Limits.MaxTasks = 1 },
		"a commit below Result":                       func(p *Physical) { p.Above = []*Node{{Op: OpResult}, {Op: OpCommit}} },
		"Fragment cannot be the last operator":        func(p *Physical) { p.Above = []*Node{{Op: OpScan}} },
	} {
		ph := physical()
		ph.Above = []*Node{{Op: OpResult}}
		change(&ph)
		p, err := FromPhysical(Static, ph)
		if err == nil {
			_, err = p.Next(nil)
		}
		if want == "Fragment cannot be the last operator" {
			want = "Scan cannot be the last operator"
		}
		require.ErrorContains(t, err, want)
	}
}

// S56: whatever the plan came from, a commit does not go to an executor.
// Numbers in docs/semantics.md: S51.
func TestNew_CommitStaysOnTheScheduler_S56(t *testing.T) {
	r := aggregateInsert(t)
	r.Root = func(*Node) bool { return false }
	_, err := New(Static, r)
	require.ErrorContains(t, err, "a commit runs on the scheduler")
	ph := physical()
	ph.Above, ph.Request.Root = []*Node{{Op: OpCommit}, {Op: OpWrite}}, r.Root
	_, err = FromPhysical(Adaptive, ph)
	require.ErrorContains(t, err, "a commit runs on the scheduler")
}

func TestCutStages_OneExchangeReadTwiceIsOneStage(t *testing.T) {
	shared := node(OpExchange, node(OpScan))
	stages := CutStages(node(OpFragment, shared, node(OpExchange, node(OpFragment, shared))))
	require.Len(t, stages, 3)
	require.Equal(t, "Fragment(Read,Read)", shape(stages[2]))
	require.EqualValues(t, 0, stages[2].Inputs[0].Stage)
}
