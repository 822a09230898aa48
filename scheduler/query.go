package scheduler

import (
	"cmp"

	"github.com/signet-io/signet/scheduler/plan"
)

// settings are what the job's statement asks for. They were checked when it was submitted.
func (j *job) settings() plan.Settings {
	out, err := plan.ParseSettings(j.rec.Settings)
	if err != nil { // of an earlier version that knew others
		return plan.Settings{}
	}
	return out
}

// request is what the planner is told of a query.
func (s *Server) request(j *job, a *analysis) (plan.Request, error) {
	j.noteSources(a.sources)
	r := plan.Request{
		SQL: a.result.Sql, Columns: a.result.Columns, Staged: a.result.Staged, EngineText: a.result.PlanText, MaxResultBytes: int64(s.cfg.Limits.MaxResultBytes),
		Input:  plan.Input{Sources: a.sources, Stats: a.result.Stats, RowWise: a.result.RowWise, NotRowWise: a.result.NotRowWise},
		Limits: s.limits(s.pool.Connected()),
		Root:   s.rootPredicate(),
	}
	set := j.settings()
	if max := r.Limits.MaxTasks; max > 0 && set.MaxTasks > max {
		set.MaxTasks = max
	}
	r.Pipelined = set.Pipelined
	return r, planFailure(set.Apply(&r))
}

// planner is the one that the job asks for, or else the configuration.
func (s *Server) planner(j *job) plan.Mode {
	return cmp.Or(j.settings().Mode, plan.Mode(s.cfg.Dispatch.Planner))
}

// limits are those of every plan.
func (s *Server) limits(executors int) plan.Limits {
	return plan.Limits{Executors: executors, MaxTasks: s.cfg.Limits.MaxTasks, MaxStages: s.cfg.Limits.MaxStages, MaxJobTasks: s.cfg.Limits.MaxJobTasks}
}

// plan begins to plan: the first stages, and the planner that gives the others.
func (s *Server) plan(j *job, r plan.Request) (plan.Planner, plan.Batch, error) {
	p, err := plan.New(s.planner(j), r)
	if err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	first, err := p.Next(nil)
	if err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	return p, first, nil
}
