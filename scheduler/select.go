package scheduler

import (
	"path/filepath"
	"time"

	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

func (s *Server) planSelect(j *job, q sql.Query) (*plan.Plan, error) {
	a, err := s.analyze(j.ctx, j, q.Text)
	if err != nil {
		return nil, err
	}
	p, err := plan.Build(plan.Request{
		SQL: a.result.Sql, Columns: a.result.Columns, MaxResultBytes: int64(s.cfg.Limits.MaxResultBytes), EngineText: a.result.PlanText,
		Input:  plan.Input{Sources: a.sources, Stats: a.result.Stats, RowWise: a.result.RowWise, NotRowWise: a.result.NotRowWise},
		Limits: plan.Limits{Executors: s.pool.Connected()},
	})
	if err != nil {
		return nil, planFailure(err)
	}
	j.update(func() { j.plan = p.Explain() })
	return p, nil
}

func (s *Server) runSelect(j *job, q sql.Query) error {
	p, err := s.planSelect(j, q)
	if err != nil {
		return err
	}
	out := &output{dir: filepath.Join(resultsDir(s.cfg.DataDir), j.id)}
	task := p.Stages[0].Task(0)
	task.JobId = j.id
	j.update(func() { j.output, j.rec.HasRows = out, true })
	if err := s.runQuery(j, task); err != nil {
		out.free()
		return err
	}
	time.AfterFunc(outputKept, out.free)
	return nil
}
