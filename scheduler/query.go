package scheduler

import (
	"cmp"
	"context"
	"slices"
	"strings"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// settings are what the job's statement asks for. They were checked when it was submitted.
func (j *job) settings() plan.Settings {
	out, err := plan.ParseSettings(j.rec.Settings)
	if err != nil { // of an earlier version that knew others
		return plan.Settings{Mode: plan.Static}
	}
	return out
}

// request is what the planner is told of a query.
func (s *Server) request(j *job, a *analysis) (plan.Request, error) {
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

// limits are those of every plan.
func (s *Server) limits(executors int) plan.Limits {
	return plan.Limits{Executors: executors, MaxTasks: s.cfg.Limits.MaxTasks, MaxStages: s.cfg.Limits.MaxStages, MaxJobTasks: s.cfg.Limits.MaxJobTasks}
}

// plan begins to plan: the first stages, and the planner that gives the others.
func (s *Server) plan(j *job, r plan.Request) (plan.Planner, plan.Batch, error) {
	p, err := plan.New(j.settings().Mode, r)
	if err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	first, err := p.Next(nil)
	if err != nil {
		return nil, plan.Batch{}, planFailure(err)
	}
	return p, first, nil
}

const propDistribution = "write.distribution-mode"

// distribution is how the rows of a partitioned write are to be spread. The write spec does not say it, so the table is asked; but only where
// more than one task could write.
func (s *Server) distribution(ctx context.Context, j *job, p *planned, a *analysis) (plan.Distribution, error) {
	if len(p.spec.Partition) == 0 || !s.several(j, a) {
		return plan.DistributionUnset, nil
	}
	mode := p.properties[propDistribution]
	if p.mode == sinkv1.WriteMode_WRITE_MODE_APPEND {
		d, err := s.describe(ctx, j, p.target)
		if err != nil {
			return plan.DistributionUnset, err
		}
		mode = d.Properties[propDistribution]
	}
	d, err := plan.DistributionByName(mode)
	if err != nil {
		j.warn(err.Error())
		return plan.DistributionUnset, nil
	}
	return d, nil
}

// several tells whether more than one task could write: a statement of a few rows asks nobody anything more.
func (s *Server) several(j *job, a *analysis) bool {
	set := j.settings()
	if s.pool.Connected() < 2 && set.Partitions == 0 || set.MaxTasks == 1 {
		return false
	}
	return set.Partitions > 0 || plan.SourceBytes(a.sources) >= 2*cmp.Or(set.MinTaskBytes, plan.DefaultMinBytes)
}

// withoutDistribution drops a sink's warning that nobody honours the distribution: the scheduler does.
func withoutDistribution(warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return strings.Contains(w, propDistribution) })
}
