package graph

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
)

// scenario is one job that a script drives. Attempts are named a1, a2, … as they are launched.
type scenario struct {
	t    *testing.T
	cfg  Config
	g    *Graph
	next int
	out  strings.Builder
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{t: t}
	s.cfg.NewAttempt = func() string {
		s.next++
		return "a" + strconv.Itoa(s.next)
	}
	return s
}

// TestGraph_Scenarios replays testdata/*.txt. -rewrite writes what is now the output; read the difference before keeping it.
func TestGraph_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := newScenario(t)
			for _, arg := range d.CmdArgs {
				switch arg.Key {
				case "in-flight":
					arg.Scan(t, 0, &s.cfg.MaxInFlight)
				case "speculative":
					arg.Scan(t, 0, &s.cfg.MaxSpeculative)
				}
			}
			s.g = New(s.cfg)
			for line := range strings.SplitSeq(d.Input, "\n") {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					s.step(line)
				}
			}
			return s.out.String()
		})
	})
}

func (s *scenario) step(line string) {
	fmt.Fprintf(&s.out, "%s\n", line)
	before := s.describe()
	for _, a := range s.do(line) {
		fmt.Fprintf(&s.out, "  %s\n", showAction(a))
	}
	if now := s.describe(); now != before {
		fmt.Fprintf(&s.out, "  = %s\n", now)
	}
}

func (s *scenario) describe() string {
	sn := s.g.Snapshot()
	out := string(sn.State)
	if sn.Phase != "" {
		out += "/" + string(sn.Phase)
	}
	if sn.Cancelling {
		out += " cancelling"
	}
	return out
}

func (s *scenario) do(line string) []Action {
	cmd, rest, _ := strings.Cut(line, " ")
	args := strings.Fields(rest)
	switch cmd {
	case "take":
		if err := s.g.TakeRoot(); err != nil {
			fmt.Fprintf(&s.out, "  refused: %v\n", err)
		}
		return nil
	case "verdict":
		fmt.Fprintf(&s.out, "  %v\n", s.g.Verdict(args[0]))
		return nil
	case "snapshot":
		sn := s.g.Snapshot()
		fmt.Fprintf(&s.out, "  stages %d/%d tasks %d/%d running %d waiting %d rows %d bytes %d\n",
			sn.StagesDone, sn.Stages, sn.TasksDone, sn.Tasks, sn.Running, sn.Waiting, sn.Rows, sn.Bytes)
		for _, v := range s.g.TaskViews() {
			fmt.Fprintf(&s.out, "  task %s %s attempts=%d attempt=%s executor=%s rows=%d %s\n", v.TaskID, v.State, v.Attempts, v.Attempt, v.Executor, v.Rows, v.LastErr)
		}
		winners, complete := s.g.Winners()
		fmt.Fprintf(&s.out, "  winners %v complete=%v\n", winners, complete)
		return nil
	case "restart":
		return s.restart()
	}
	return s.g.Apply(s.event(cmd, rest, args))
}

func (s *scenario) restart() []Action {
	data, err := json.Marshal(s.g.Record())
	require.NoError(s.t, err)
	var r Record
	require.NoError(s.t, json.Unmarshal(data, &r))
	g, actions, err := Restore(s.cfg, r)
	require.NoError(s.t, err)
	s.g = g
	return actions
}

func (s *scenario) event(cmd, rest string, args []string) Event {
	tail := func(n int) string { return strings.Join(args[n:], " ") }
	switch cmd {
	case "start":
		return PlanStarted{}
	case "plan":
		return parsePlan(s.t, args)
	case "add":
		p := parsePlan(s.t, args)
		return StagesAdded{Stages: p.Stages, More: p.More}
	case "straggling":
		return Straggling{args[0]}
	case "accepted":
		return TaskSucceeded{Attempt: args[0], Rows: 10, Bytes: 100, Accepted: true}
	case "fetchfail":
		return TaskFailed{Attempt: args[0], Class: planv1.ErrorClass_ERROR_CLASS_FETCH, LostAttempt: args[1], Message: tail(2)}
	case "planfail":
		return PlanFailed{Failure{Code: CodeUser, Message: rest}}
	case "launched":
		return Launched{args[0], args[1]}
	case "launchfail":
		return LaunchFailed{args[0], tail(1)}
	case "begun":
		task, _ := strconv.Atoi(args[0])
		return AttemptBegun{Task: TaskID{0, int32(task)}, Attempt: args[1], Executor: args[2]}
	case "ok":
		return TaskSucceeded{Attempt: args[0], Rows: 10, Bytes: 100}
	case "fail":
		class := planv1.ErrorClass_value["ERROR_CLASS_"+strings.ToUpper(args[1])]
		return TaskFailed{Attempt: args[0], Class: planv1.ErrorClass(class), Message: tail(2)}
	case "lost":
		return TaskLost{args[0], tail(1)}
	case "progress":
		rows, _ := strconv.ParseInt(args[1], 10, 64)
		return Progress{Attempt: args[0], Rows: rows}
	case "joined":
		attempts, outputs, _ := strings.Cut(tail(1), "keeps")
		return ExecutorJoined{Executor: args[0], Attempts: strings.Fields(attempts), Outputs: strings.Fields(outputs)}
	case "execlost":
		return ExecutorLost{args[0], tail(1)}
	case "expire":
		return AdoptionExpired{}
	case "finished":
		return WriteFinished{}
	case "cancel":
		return Cancel{Reason: rest}
	case "rootok":
		return RootSucceeded{Result: []byte(rest)}
	case "rootfail":
		return RootFailed{Failure{Message: rest}}
	case "resolving":
		return RootResolving{Unknown: true}
	case "resolved":
		return RootResolving{}
	case "rootcancelled":
		return RootCancelled{}
	case "rootrefused":
		return RootCancelRefused{Message: rest}
	case "released":
		return ResultReleased{}
	}
	s.t.Fatalf("unknown step %q", cmd)
	return nil
}

// parsePlan reads "2s 3sr<-0 1<-0,1 commit": tasks of each stage, s for stored and r for repeatable, and the stages it reads.
func parsePlan(t *testing.T, args []string) Planned {
	var p Planned
	for _, a := range args {
		switch a {
		case "plain", "commit":
			p.Root = RootKind(a)
		case "more":
			p.More = true
		case "external":
			p.External = true
		default:
			n, from, _ := strings.Cut(a, "<-")
			num := strings.TrimRight(n, "sr")
			tasks, err := strconv.Atoi(num)
			require.NoError(t, err)
			spec := StageSpec{Tasks: tasks, Stored: strings.Contains(n, "s"), Repeatable: strings.Contains(n, "r")}
			for _, f := range strings.FieldsFunc(from, func(r rune) bool { return r == ',' }) {
				in, err := strconv.Atoi(f)
				require.NoError(t, err)
				spec.Inputs = append(spec.Inputs, int32(in))
			}
			p.Stages = append(p.Stages, spec)
		}
	}
	return p
}

func showAction(a Action) string {
	switch a := a.(type) {
	case Launch:
		out := fmt.Sprintf("Launch task=%s attempt=%s number=%d", a.Task, a.Attempt, a.Number)
		if a.Generation > 0 {
			out += fmt.Sprintf(" generation=%d", a.Generation)
		}
		if len(a.Avoid) > 0 {
			out += fmt.Sprintf(" avoid=%v", a.Avoid)
		}
		if a.Speculative {
			out += " speculative"
		}
		return out
	case FreeData:
		out := "FreeData"
		for _, o := range a.Attempts {
			out += " " + o.Attempt + "@" + o.Executor
		}
		return out
	case Finish:
		out := "Finish " + string(a.State)
		if a.Failure != nil {
			out += fmt.Sprintf(" [%s] %s", a.Failure.Code, a.Failure.Message)
		}
		if a.Result != nil {
			out += fmt.Sprintf(" result=%q", a.Result)
		}
		if a.Reason != "" {
			out += fmt.Sprintf(" reason=%q", a.Reason)
		}
		return out
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", a, a), "graph.")
}

// However many tasks a stage has, only so many attempts are in flight; further ones are launched some at a time, and Capacity changes how many.
func TestCapacity_BoundsWhatIsInFlight(t *testing.T) {
	n := 0
	g := New(Config{MaxInFlight: 8, NewAttempt: func() string { n++; return fmt.Sprint(n) }})
	launched := func(ev Event) (out []string) {
		for _, a := range g.Apply(ev) {
			if l, ok := a.(Launch); ok {
				out = append(out, l.Attempt)
			}
		}
		return out
	}
	require.Len(t, launched(Planned{Stages: []StageSpec{{Tasks: 30}}}), 8)
	require.Empty(t, launched(TaskSucceeded{Attempt: "1"}), "room for one is not enough")
	require.Len(t, launched(TaskSucceeded{Attempt: "2"}), 2, "a quarter is")
	require.Empty(t, launched(TaskFailed{Attempt: "3", Class: planv1.ErrorClass_ERROR_CLASS_KILLED}))
	again := g.Apply(TaskSucceeded{Attempt: "4"})
	require.Equal(t, int32(2), again[1].(Launch).Task.Task, "a task that runs again is before those that never ran")
	require.Len(t, launched(Capacity{InFlight: 12}), 4)
	require.Empty(t, launched(Capacity{InFlight: 4}))
	require.Len(t, launched(Capacity{}), 30-2-1-12, "no bound")
	for id := 5; id <= n; id++ {
		g.Apply(TaskSucceeded{Attempt: fmt.Sprint(id)})
	}
	require.Equal(t, Successful, g.State())
}
