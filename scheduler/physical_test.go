package scheduler

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// twoStages is a plan of two tasks that hash their rows, and two that read a partition each.
func twoStages() plan.Physical {
	columns := []*planv1.Column{{Name: "n", EngineType: "BIGINT", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}}}
	p := plan.Physical{Columns: [][]*planv1.Column{columns, columns}, Above: []*plan.Node{{Op: plan.OpResult}}}
	for i := range int32(2) {
		p.Tasks = append(p.Tasks, &planv1.Task{Stage: 0, Task: i, Sql: "SELECT n", Work: &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{Kind: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: []int32{0}, Partitions: 2}}})
	}
	for i := range int32(2) {
		p.Tasks = append(p.Tasks, &planv1.Task{Stage: 1, Task: i, Sql: "SELECT n FROM s", Sources: []*planv1.Source{{View: "s", Kind: &planv1.Source_Exchange{Exchange: &planv1.ExchangeSource{
			Columns: columns, Parts: []*planv1.ExchangePart{{Task: -1, Partition: i}},
		}}}}})
	}
	return p
}

// wellFormed plans all of a plan.
func wellFormed(p plan.Physical) error {
	for _, mode := range []plan.Mode{p.Mode, plan.Static} {
		planner, err := plan.FromPhysical(mode, p)
		if err == nil {
			_, err = planner.Next(nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Plans that cannot run are refused, each with what is wrong with it.
func TestPhysicalPlan_BadTasks(t *testing.T) {
	for want, change := range map[string]func(*plan.Physical){
		"plans have no cycles":                          func(p *plan.Physical) { p.Tasks[2].Sources[0].GetExchange().Stage = 1 },
		"reads stage 7, which does not stand before it": func(p *plan.Physical) { p.Tasks[2].Sources[0].GetExchange().Stage = 7 },
		"an operator that is not known":                 func(p *plan.Physical) { p.Tasks[0].Work = nil },
		"an exchange of kind 99":                        func(p *plan.Physical) { p.Tasks[0].GetExchange().Kind = 99 },
		"Result above Teleport":                         func(p *plan.Physical) { p.Above = []*plan.Node{{Op: plan.OpResult}, {Op: "Teleport"}} },
		"an operator above its stages is missing":       func(p *plan.Physical) { p.Above = append(p.Above, nil) },
		"task 1 of all is missing":                      func(p *plan.Physical) { p.Tasks[1] = nil },
		"stage 1: a column is missing":                  func(p *plan.Physical) { p.Columns[1] = []*planv1.Column{nil} },
		"the plan has 1000000 tasks": func(p *plan.Physical) {
			p.Tasks = make([]*planv1.Task, 1_000_000)
			for i := range p.Tasks {
				p.Tasks[i] = &planv1.Task{Stage: int32(i), Sql: "SELECT n"}
			}
		},
		"the plan has a stage 1000; at most 1000 stages": func(p *plan.Physical) {
			p.Tasks = make([]*planv1.Task, 5_000)
			for i := range p.Tasks {
				p.Tasks[i] = &planv1.Task{Stage: int32(i), Sql: "SELECT n"}
			}
		},
		"the plan has a stage -1": func(p *plan.Physical) { p.Tasks[0].Stage = -1 },
		"is read as n VARCHAR and written as n BIGINT": func(p *plan.Physical) {
			p.Tasks[2].Sources[0].GetExchange().Columns = []*planv1.Column{{Name: "n", EngineType: "VARCHAR"}}
		},
		"rows in an exchange without known columns": func(p *plan.Physical) { p.Columns[0] = nil },
		"it has no tasks":     func(p *plan.Physical) { p.Tasks = nil },
		"there is no planner": func(p *plan.Physical) { p.Mode = "clever" },
	} {
		p := twoStages()
		change(&p)
		require.ErrorContains(t, wellFormed(p), want)
	}
}

// Whatever a plan holds, planning it answers with stages or an error.
func TestPhysicalPlan_AnyChangeIsAnswered(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // repeatable on purpose
	refused := 0
	for range 3000 {
		p := twoStages()
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(p.Tasks))
			switch rng.IntN(12) {
			case 0:
				p.Tasks[at] = nil
			case 1:
				p.Columns[rng.IntN(2)] = []*planv1.Column{nil}
			default:
				scramble(rng, p.Tasks[at].ProtoReflect())
			}
		}
		if err := wellFormed(p); err != nil {
			refused++
		}
	}
	require.Greater(t, refused, 1000)
}

// scramble changes one field of a message, or of one below it.
func scramble(rng *rand.Rand, m protoreflect.Message) {
	if !m.IsValid() {
		return
	}
	fields := m.Descriptor().Fields()
	f := fields.Get(rng.IntN(fields.Len()))
	switch {
	case f.IsMap():
	case f.IsList() && f.Message() != nil && m.Get(f).List().Len() > 0 && rng.IntN(3) > 0:
		scramble(rng, m.Get(f).List().Get(0).Message())
	case f.IsList():
		m.Clear(f)
	case f.Message() != nil && m.Has(f) && rng.IntN(3) > 0:
		scramble(rng, m.Mutable(f).Message())
	case f.Kind() == protoreflect.Int32Kind:
		m.Set(f, protoreflect.ValueOfInt32([]int32{-1, 1, 5, 1 << 30}[rng.IntN(4)]))
	case f.Kind() == protoreflect.EnumKind:
		m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(rng.IntN(7)-1)))
	case f.Message() != nil && !m.Has(f):
		m.Mutable(f)
	default:
		m.Clear(f)
	}
}
