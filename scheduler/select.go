package scheduler

import (
	"path/filepath"
	"time"

	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// query is a SELECT that is planned, at least to its first stages.
type query struct {
	planner plan.Planner
	first   plan.Batch
}

func (q *query) plan() *plan.Plan { return q.planner.Plan() }

func (s *Server) planSelect(j *job, q sql.Query) (*query, error) { return s.planQuery(j, q, false) }

// planQuery plans a query; keep: its rows are for the scheduler.
func (s *Server) planQuery(j *job, q sql.Query, keep bool) (*query, error) {
	a, err := s.analyze(j.ctx, j, q.Text)
	if err != nil {
		return nil, err
	}
	r, err := s.request(j, a)
	if err != nil {
		return nil, err
	}
	r.Keep = keep
	out := &query{}
	if out.planner, out.first, err = s.plan(j, r); err != nil {
		return nil, err
	}
	j.update(func() { j.plan = out.plan().Explain() })
	return out, nil
}

func (s *Server) runSelect(j *job, q sql.Query) error {
	p, err := s.planSelect(j, q)
	if err != nil {
		return err
	}
	return s.runPlannedQuery(j, p)
}

func (s *Server) runPlannedQuery(j *job, p *query) error {
	l := s.newLoop(j, nil, p.planner)
	if root := p.plan().Root; root != nil {
		return s.runWithRoot(l, p, root)
	}
	out := &output{dir: filepath.Join(resultsDir(s.cfg.DataDir), j.id), pipelined: j.settings().Pipelined}
	j.update(func() { j.output, j.rec.HasRows = out, true })
	if err := l.execute(p.first); err != nil {
		out.free()
		return err
	}
	if mutant.On("scheduler/rows-gone-at-the-end") {
		out.free()
	}
	time.AfterFunc(outputKept, out.free)
	return nil
}

// execute runs a query's stages to the end of its job's graph.
func (l *loop) execute(first plan.Batch) error {
	if err := l.start(first); err != nil {
		return err
	}
	l.s.noteStart(l.j, l.stages)
	return l.run()
}
