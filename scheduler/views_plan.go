package scheduler

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/journal"
)

// planParts is a plan's text, divided: what EXPLAIN, REST and the event log show of a stage are the same lines (S49).
type planParts struct {
	root   string
	stages map[int32]planStage
}

type planStage struct {
	text  string
	tasks int
}

var (
	stageHead = regexp.MustCompile(`^Stage (\d+): (?:(\d+) tasks?)?`)
	rootHead  = regexp.MustCompile(`^\[scheduler\] `)
)

// splitPlan divides the text by its heads, which begin at the margin; what is indented belongs to the head above it.
func splitPlan(text string) planParts {
	out := planParts{stages: map[int32]planStage{}}
	var block strings.Builder
	put := func(string) {}
	flush := func() {
		put(block.String())
		block.Reset()
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			flush()
			put = out.place(line)
		}
		block.WriteString(line)
	}
	flush()
	return out
}

// place says where the block under a head goes.
func (p *planParts) place(head string) func(string) {
	if rootHead.MatchString(head) {
		return func(s string) { p.root = s }
	}
	m := stageHead.FindStringSubmatch(head)
	if m == nil {
		return func(string) {} // warnings, the engine's plan
	}
	id, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return func(string) {}
	}
	tasks, _ := strconv.Atoi(m[2]) // digits, or not said
	return func(s string) { p.stages[int32(id)] = planStage{s, tasks} }
}

// shownStage is a stage as it is planned and as it runs. The root's has a plan and a state, nothing else (S46).
type shownStage struct {
	id       eventlog.StageID
	plan     string
	total    int // tasks
	done     int
	attempts int
	rows     int64
	bytes    int64
	started  time.Time // zero: not yet, or the root's has not
	took     time.Duration
}

// list brings together what the plan's text, the tasks and the view know of the stages, in order; the root's is the last (S46), and jobs
// without a root have none (S48). Called with mu held.
func (v *jobView) list(plan string, tasks []*schedulerv1.TaskInfo, rec journal.Job) []shownStage {
	p := splitPlan(plan)
	all := map[int32]*shownStage{}
	at := func(id int32) *shownStage {
		if all[id] == nil {
			all[id] = &shownStage{id: eventlog.StageNumber(id), plan: p.stages[id].text, total: p.stages[id].tasks}
		}
		return all[id]
	}
	for id := range p.stages {
		at(id)
	}
	for id, st := range v.stages {
		at(id).total = st.total
	}
	counted := map[int32]int{}
	for _, t := range tasks {
		st := at(t.Stage)
		counted[t.Stage]++
		st.attempts += int(t.Attempts)
		st.rows, st.bytes = st.rows+t.Rows, st.bytes+t.Bytes
		if t.State == taskDoneText {
			st.done++
		}
	}
	var out []shownStage
	for _, id := range slices.Sorted(maps.Keys(all)) {
		st := all[id]
		st.total = max(st.total, counted[id])
		st.measure(v.stages[id])
		out = append(out, *st)
	}
	if p.root != "" || !v.root.IsZero() || rec.Write != nil || rec.Session != nil || mutant.On("scheduler/root-stage-of-every-job") {
		out = append(out, shownStage{id: eventlog.SchedulerStage, plan: p.root, started: v.root})
	}
	if mutant.On("scheduler/root-stage-first") {
		slices.Reverse(out)
	}
	return out
}

// taskDoneText is how the graph says that a task has a winner.
const taskDoneText = "done"

// measure adds the times.
func (s *shownStage) measure(st *stageView) {
	if st == nil || st.started.IsZero() {
		return
	}
	until := time.Now()
	if s.done >= s.total {
		until = st.finished
	}
	s.started, s.took = st.started, st.took(until)
}

// state is how far the stage is, in a job of this state.
func (s *shownStage) state(job string) string {
	root, over := s.id == eventlog.SchedulerStage, job == "failed" || job == "cancelled"
	switch {
	case root && job == "successful", !root && s.total > 0 && s.done >= s.total:
		return "done"
	case s.started.IsZero() && s.done == 0:
		return "pending"
	case over:
		return "failed"
	}
	return "running"
}
