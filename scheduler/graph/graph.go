package graph

// Config of a job's graph. The zero value of each limit is its default.
type Config struct {
	MaxFailures int           // counted failures of one task that fail the job; default 4
	MaxLosses   int           // losses of one task that fail the job; default 3
	MaxInFlight int           // attempts launched and not ended; default: no limit
	NewAttempt  func() string // makes attempt ids, each only once
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
	order    []string // attempt ids as they were made, so that every run over them is in the same order
	live     int
	root     RootKind
	durable  bool
	external bool
	finished bool // external: WriteFinished came
	taken    bool // TakeRoot succeeded in this incarnation
	resumed  bool // an earlier incarnation had taken the root of a commit
	asked    bool // CancelRoot was sent and is not answered
	released bool
	reason   string // of a cancel
	failure  *Failure

	out []Action // of the event being applied
}

type stage struct {
	inputs []int32
	tasks  []*task
	done   int
	pend   int // tasks that wait to be launched
}

func newStage(inputs []int32, tasks int) *stage {
	return &stage{inputs: inputs, tasks: make([]*task, tasks), pend: tasks}
}

func (s *stage) count(state taskState, by int) {
	switch state {
	case taskDone:
		s.done += by
	case taskPending:
		s.pend += by
	}
}

func (s *stage) complete() bool { return s.done == len(s.tasks) }

// New makes a job in state Queued.
func New(cfg Config) *Graph {
	return &Graph{cfg: cfg.withDefaults(), state: Queued, attempts: map[string]*attempt{}}
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
	switch e := ev.(type) {
	case PlanStarted:
		if g.state == Queued {
			g.state = Planning
		}
	case Planned:
		g.planned(e)
	case PlanFailed:
		if g.state == Queued || g.state == Planning {
			g.fail(e.Failure)
		}
	case Cancel:
		g.cancel(e)
	case WriteFinished:
		g.finished = true
	case ResultReleased:
		g.release()
	case RootSucceeded, RootFailed, RootResolving, RootCancelled, RootCancelRefused:
		g.rootEvent(ev)
	default:
		g.taskEvent(ev)
	}
	g.advance()
	return g.out
}

func (g *Graph) emit(a Action) { g.out = append(g.out, a) }

func (g *Graph) planned(e Planned) {
	if g.state != Queued && g.state != Planning {
		return // cancelled while it was planned (T3), or planned twice
	}
	g.state, g.phase = Running, PhaseStages
	g.root, g.external = e.Root, e.External
	g.durable = e.Durable || e.Root == RootCommit // what a commit reads are task manifests, in the journal (S60)
	g.stages = make([]*stage, len(e.Stages))
	for i, spec := range e.Stages {
		s := newStage(spec.Inputs, max(spec.Tasks, 0))
		for j := range s.tasks {
			s.tasks[j] = &task{id: TaskID{Stage: int32(i), Task: int32(j)}}
		}
		g.stages[i] = s
	}
}

// advance launches what can run, and ends the stages when all of them are complete. It is the only place that does either.
func (g *Graph) advance() {
	if g.state != Running || g.phase != PhaseStages {
		return
	}
	if g.allComplete() {
		g.stagesDone(false)
		return
	}
	if g.external {
		return
	}
	for _, s := range g.stages {
		if s.pend == 0 || !g.ready(s) {
			continue
		}
		for _, t := range s.tasks {
			if t.state != taskPending {
				continue
			}
			if g.cfg.MaxInFlight > 0 && g.live >= g.cfg.MaxInFlight {
				return
			}
			g.launch(t)
		}
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

func (g *Graph) ready(s *stage) bool {
	for _, in := range s.inputs {
		if in >= 0 && int(in) < len(g.stages) && !g.stages[in].complete() {
			return false
		}
	}
	return true
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
