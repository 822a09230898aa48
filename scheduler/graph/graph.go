package graph

// Config of a job's graph. The zero value of each limit is its default.
type Config struct {
	MaxFailures    int           // counted failures of one task that fail the job; default 4
	MaxLosses      int           // losses of one task that fail the job, and losses of its input or output that are one too few to; default 3
	MaxInFlight    int           // attempts launched and not ended; default: no limit. Further ones are launched when a quarter of it is free
	MaxSpeculative int           // tasks with a second attempt beside the first at one time; default 0: never
	NewAttempt     func() string // makes attempt ids, each only once
}

func (c Config) withDefaults() Config {
	if c.MaxFailures <= 0 {
		c.MaxFailures = 4
	}
	if c.MaxLosses <= 0 {
		c.MaxLosses = 3
	}
	return c
}

// Graph is one job.
type Graph struct {
	cfg      Config
	state    State
	phase    Phase
	stages   []*stage
	attempts map[string]*attempt
	order    []*attempt              // as they were made, so that every run over them is in the same order
	held     map[string]attemptIndex // by executor: live attempts, and winners whose output it keeps
	root     RootKind
	more     bool // further stages will be planned
	planning bool // PlanMore was emitted and is not answered
	external bool
	finished bool // external: WriteFinished came
	due      bool // the root is, as soon as its input has come back after a restart
	taken    bool // TakeRoot succeeded in this incarnation
	resumed  bool // an earlier incarnation had taken the root of a commit
	asked    bool // CancelRoot was sent and is not answered
	released bool
	reason   string // of a cancel
	failure  *Failure

	live    int // attempts that have not ended
	waiting int // of these, those that no executor has
	doubled int // tasks with more than one live attempt
	rows    int64
	bytes   int64
	events  int  // applied so far
	dirty   bool // a stage became complete or incomplete, or an output came or went

	out []Action // of the event being applied
}

// New makes a job in state Queued.
func New(cfg Config) *Graph {
	return &Graph{cfg: cfg.withDefaults(), state: Queued, attempts: map[string]*attempt{}, held: map[string]attemptIndex{}}
}

// State is the job's state.
func (g *Graph) State() State { return g.state }

// Phase is the phase of a Running job, and empty otherwise.
func (g *Graph) Phase() Phase { return g.phase }

// Failure is why the job failed; nil if it has not.
func (g *Graph) Failure() *Failure { return g.failure }

// Apply changes the job by one event and returns what the caller has to do, in order.
func (g *Graph) Apply(ev Event) []Action {
	g.out = nil
	g.events++
	switch e := ev.(type) {
	case PlanStarted:
		if g.state == Queued {
			g.state = Planning
		}
	case Planned:
		g.planned(e)
	case StagesAdded:
		g.stagesAdded(e)
	case PlanFailed:
		g.planFailed(e)
	case Cancel:
		g.cancel(e)
	case WriteFinished:
		g.finished = true
	case ResultReleased:
		g.release()
	case Capacity:
		g.cfg.MaxInFlight = e.InFlight
	case RootSucceeded, RootFailed, RootResolving, RootCancelled, RootCancelRefused:
		g.rootEvent(ev)
	default:
		g.taskEvent(ev)
	}
	g.advance()
	return g.out
}

func (g *Graph) emit(a Action) { g.out = append(g.out, a) }

// advance repairs what was lost, frees what nobody needs, launches what can run, and ends the stages when all of them are complete.
// It is the only place that does any of it.
func (g *Graph) advance() {
	if g.state == Running && g.due && g.outputsPresent() {
		g.due = false
		g.stagesDone(false)
	}
	if g.state != Running || g.phase != PhaseStages {
		return
	}
	if g.dirty {
		g.dirty = false
		g.repair()
		if g.state != Running {
			return
		}
		g.freeUnneeded()
	}
	if g.allComplete() {
		g.complete()
		return
	}
	if g.external || !g.roomy() {
		return
	}
	for _, s := range g.stages {
		if s.pend > 0 && !s.skipped && g.ready(s) && !g.launchAll(s) {
			return
		}
	}
}

// complete goes on where every known stage is complete: with further stages, or to the root or the end.
func (g *Graph) complete() {
	switch {
	case !g.more:
		if g.outputsPresent() {
			g.stagesDone(false)
		}
	case !g.planning:
		g.planning = true
		g.emit(PlanMore{})
	}
}

func (g *Graph) allComplete() bool {
	for _, s := range g.stages {
		if !s.complete() {
			return false
		}
	}
	return !g.external || g.finished
}

// outputsPresent tells whether what the root or the client will read is at hand: after a restart its executors have to come back first.
func (g *Graph) outputsPresent() bool {
	for _, s := range g.stages {
		if s.last() && s.absent > 0 && g.root != RootCommit {
			return false
		}
	}
	return true
}

// ready tells whether everything that the stage reads is there.
func (g *Graph) ready(s *stage) bool {
	for _, in := range s.inputs {
		if p := g.stages[in]; !p.complete() || p.absent > 0 && !mutated("input-absent") {
			return false
		}
	}
	return true
}

// roomy tells whether there is room for several attempts. They are launched some at a time, so that the caller journals them together.
func (g *Graph) roomy() bool {
	n := g.cfg.MaxInFlight
	return n <= 0 || g.live <= n-max(n/4, 1)
}

// launchAll launches what waits in a stage. It returns false when there is no room for more.
func (g *Graph) launchAll(s *stage) bool {
	for {
		if g.cfg.MaxInFlight > 0 && g.live >= g.cfg.MaxInFlight {
			return false
		}
		t := s.next()
		if t == nil {
			return true
		}
		g.launch(t)
	}
}

func (g *Graph) task(id TaskID) *task {
	if id.Stage < 0 || int(id.Stage) >= len(g.stages) {
		return nil
	}
	s := g.stages[id.Stage]
	if id.Task < 0 || int(id.Task) >= len(s.tasks) {
		return nil
	}
	return s.tasks[id.Task]
}
