package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/signet-io/signet/scheduler/graph"
)

// World is everything that a schedule plays in.
type World struct {
	jobs    []*job // as clients and tables know them; the first is nil, so that numbers begin at 1
	execs   []*executor
	tables  []*table
	net     []*message
	jrn     journal
	sched   *scheduler // nil: it is down
	epoch   uint64
	fuse    int // places until the scheduler crashes
	nextID  int64
	keeps   keeps
	profile profile
	parted  []string   // executors that the scheduler let go
	late    []*request // that come when everything else is over
	step    int
	trace   func(string)
}

// job is one job as an observer sees it who knows everything.
type job struct {
	n int
	spec
	atts      []*attempt // the first is nil
	submitted bool
	told      graph.State // the end that clients know
	landed    *request
	won       map[graph.TaskID]*attempt // by what the graph has answered; stored stages change theirs
	rootRuns  bool                      // a plain root
	asked     bool                      // for further stages, once
	requests  []*request                // that asked for the commit point
}

// spec is what a job is.
type spec struct {
	root        graph.RootKind
	stages      []graph.StageSpec
	known       int // stages planned at first; the others one by one
	empty       bool
	external    bool // somebody else writes the files
	table       *table
	marker      int
	poison      graph.TaskID
	poisoned    poison
	speculative int
	inFlight    int
	losses      int
}

// poison is what is wrong with one task of a job, every time.
type poison int

const (
	poisonNone poison = iota
	poisonCrash
	poisonIO
	poisonFetch // nobody can fetch its output

	poisonCount
)

// attempt is one attempt as an observer sees it who knows everything.
type attempt struct {
	n, job  int
	id      string
	task    graph.TaskID
	known   bool // the graph has launched it
	beside  bool // it is a second one
	reads   []*attempt
	content uint64
	file    bool // its data file is there
	freed   bool // the scheduler has decided that nobody needs its output
}

// profile is what a world is about.
type profile int

const (
	profileMixed  profile = iota // jobs of all kinds, in which everything goes wrong
	profileCommit                // all is about the commit
	profileLoss                  // rows that do not come again the same, on executors that are lost

	profiles
)

func (p profile) jobs(rnd *rand.Rand) int {
	switch p {
	case profileCommit:
		return 3 + rnd.IntN(4)
	case profileLoss:
		return 1 + rnd.IntN(2)
	}
	return 1 + rnd.IntN(4)
}

type violation struct{ rule, text string }

func (v violation) Error() string { return v.rule + ": " + v.text }

// fail ends the run.
func (w *World) fail(rule, format string, args ...any) {
	panic(violation{rule, fmt.Sprintf(format, args...)})
}

func (w *World) tracef(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf(format, args...))
	}
}

// New makes the world of a seed: what jobs there are, and how many executors and tables.
func New(seed uint64) *World {
	rnd := rand.New(rand.NewPCG(seed, 1))                                                                            //nolint:gosec // it has to be the same every time
	w := &World{jobs: []*job{nil}, execs: []*executor{nil}, nextID: 1000, profile: profile(seed % uint64(profiles))} //nolint:gosec // few
	w.keeps = keeps(rnd.IntN(int(keepsKinds)))
	executors := 2 + rnd.IntN(3)
	if w.profile == profileLoss {
		executors = 2
	}
	for i := range executors {
		w.execs = append(w.execs, &executor{n: i + 1, up: true})
	}
	for range 1 + rnd.IntN(2) {
		w.tables = append(w.tables, newTable())
	}
	for i := range w.profile.jobs(rnd) {
		j := &job{n: i + 1, spec: w.newSpec(rnd, i+1), atts: []*attempt{nil}, won: map[graph.TaskID]*attempt{}}
		w.jobs = append(w.jobs, j)
	}
	w.jrn.jobs = make([]*jobRecord, len(w.jobs))
	w.startScheduler()
	return w
}

func (w *World) newSpec(rnd *rand.Rand, n int) spec {
	s := spec{
		root: graph.RootCommit, table: w.tables[rnd.IntN(len(w.tables))], marker: n, empty: rnd.IntN(12) == 0,
		speculative: rnd.IntN(3), inFlight: rnd.IntN(2) * (1 + rnd.IntN(4)), losses: 3 + rnd.IntN(2)*20,
	}
	switch rnd.IntN(6) {
	case 0, 1:
		s.root = graph.RootPlain
	case 2:
		s.root = graph.RootNone
	}
	if prev := n - 1; prev > 0 && rnd.IntN(2) == 0 && w.jobs[prev].root == graph.RootCommit {
		s.marker, s.table = w.jobs[prev].marker, w.jobs[prev].table // the same key again
	}
	count, repeatable := 1+rnd.IntN(5), rnd.IntN(3)
	switch w.profile {
	case profileCommit:
		count, s.root = 1, graph.RootCommit
		s.external = rnd.IntN(5) == 0
	case profileLoss:
		count, repeatable, s.losses, s.empty = 2+rnd.IntN(4), rnd.IntN(2), 25, false
	}
	for i := range count {
		st := graph.StageSpec{Tasks: 1 + rnd.IntN(3), Stored: true, Repeatable: rnd.IntN(2) < repeatable}
		if i == count-1 && w.profile == profileLoss {
			st.Tasks = 2 + rnd.IntN(3)
		}
		if i == count-1 && (s.root == graph.RootCommit || rnd.IntN(2) == 0) {
			st.Stored = false
		}
		for in := range i {
			if in == i-1 && rnd.IntN(5) > 0 || rnd.IntN(4) == 0 {
				st.Inputs = append(st.Inputs, int32(in)) //nolint:gosec // few
			}
		}
		if rnd.IntN(10) == 0 && len(st.Inputs) == 0 && (count == 1 || i < count-1) {
			st.Tasks = 0 // there is nothing to read
		}
		s.stages = append(s.stages, st)
	}
	end := &s.stages[count-1] // reads what nobody else does
	for i := range s.stages[:count-1] {
		if !slices.ContainsFunc(s.stages, func(st graph.StageSpec) bool { return slices.Contains(st.Inputs, int32(i)) }) { //nolint:gosec // few
			end.Inputs = append(end.Inputs, int32(i)) //nolint:gosec // few
		}
	}
	s.known = count
	if rnd.IntN(2) == 0 {
		s.known = 1 + rnd.IntN(count)
	}
	if rnd.IntN(5) == 0 && w.profile != profileLoss {
		s.poisoned = poison(1 + rnd.IntN(int(poisonCount)-1))
		st := rnd.IntN(count)
		s.poison = graph.TaskID{Stage: int32(st), Task: int32(rnd.IntN(max(s.stages[st].Tasks, 1)))} //nolint:gosec // few
	}
	return s
}

func (j *job) last() int32 { return int32(len(j.stages) - 1) } //nolint:gosec // few

// writes tells whether a task leaves a file that is to be committed.
func (j *job) writes(t graph.TaskID) bool { return j.root == graph.RootCommit && t.Stage == j.last() }

func (j *job) newAttempt() string {
	n := len(j.atts)
	a := &attempt{n: n, job: j.n, id: "j" + strconv.Itoa(j.n) + "a" + strconv.Itoa(n)}
	j.atts = append(j.atts, a)
	return a.id
}

// att finds an attempt by the id that the graph knows.
func (w *World) att(id string) *attempt {
	var j, n int
	i := 1
	for ; i < len(id) && id[i] != 'a'; i++ {
		j = j*10 + int(id[i]-'0')
	}
	for i++; i < len(id); i++ {
		n = n*10 + int(id[i]-'0')
	}
	if j >= len(w.jobs) || j < 1 || n < 1 || n >= len(w.jobs[j].atts) {
		return nil
	}
	return w.jobs[j].atts[n]
}

func (w *World) attOf(s Step) *attempt {
	if s.Job < 1 || s.Job >= len(w.jobs) || s.Att < 1 || s.Att >= len(w.jobs[s.Job].atts) {
		return nil
	}
	return w.jobs[s.Job].atts[s.Att]
}

func (w *World) poisonOf(a *attempt) poison {
	if j := w.jobs[a.job]; j.poisoned != poisonNone && j.poison == a.task {
		return j.poisoned
	}
	return poisonNone
}

// Do takes one step. It returns whether the step applied.
func (w *World) Do(s Step) (did bool) {
	w.step++
	if w.trace != nil {
		w.tracef("%s", s)
	}
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(crashed)
			if !ok {
				panic(r)
			}
			saw(SawSplitCrash)
			w.crash(c.where)
			did = true
		}
	}()
	switch s.Op {
	case OpDeliver, OpLose, OpRepeat, OpTwice, OpDeny:
		return w.network(s)
	case OpOther, OpRollback:
		return w.others(s)
	case OpFetch, OpWork, OpFail, OpNoPart, OpReport, OpJoin, OpDie, OpBegin, OpDrain, OpLeave:
		return w.executors(s)
	case OpStart:
		if w.sched != nil {
			return false
		}
		w.startScheduler()
		return true
	}
	if w.sched == nil {
		return false
	}
	switch s.Op {
	case OpCrash:
		w.crash("between two steps")
	case OpFuse:
		if w.fuse > 0 || s.Arg < 1 {
			return false
		}
		w.fuse = s.Arg
	case OpFull:
		w.jrn.full = s.Arg
	case OpKill:
		return w.killPlugin()
	case OpLost:
		return w.giveUp(s)
	case OpSweep:
		return w.sweep(s)
	default:
		if s.Job < 1 || s.Job >= len(w.jobs) {
			return false
		}
		return w.scheduled(s, w.jobs[s.Job])
	}
	return true
}

// crash ends the scheduler's process, and with it the plugin's calls. What was sent is on its way.
func (w *World) crash(where string) {
	w.tracef("the scheduler crashes %s", where)
	w.sched, w.fuse, w.jrn.full = nil, 0, 0
	for _, e := range w.execs[1:] {
		e.joined = false
	}
	for _, j := range w.jobs[1:] {
		j.rootRuns = false
	}
}
