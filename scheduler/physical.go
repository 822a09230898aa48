package scheduler

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
)

// SubmitPhysical runs a plan that is cut and divided already, as a job of a principal, and returns the job's id. It ends in Result: a table is
// written by a statement, which prepares its write. The plan lives as long as this process: a job that a restart interrupts fails.
func (s *Server) SubmitPhysical(principal string, p plan.Physical) (string, error) {
	if p.Spec != nil || len(p.Above) == 0 || p.Above[0] == nil || p.Above[0].Op != plan.OpResult {
		return "", fail(codeUser, "write tables with INSERT or CREATE TABLE AS", "a physical plan ends in Result")
	}
	p.Request.Limits, p.Request.MaxResultBytes = s.limits(0), int64(s.cfg.Limits.MaxResultBytes)
	match, given := s.rootPredicate(), p.Request.Root
	p.Request.Root = func(n *plan.Node) bool { return match(n) || given != nil && given(n) }
	if err := wellFormed(p); err != nil {
		return "", planFailure(err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	rec := journal.Job{
		ID: id.String(), Principal: principal, SQL: fmt.Sprintf("physical plan of %d tasks", len(p.Tasks)), Kind: kindPlan, State: journal.StateOpen, Submitted: time.Now().UTC(),
	}
	s.physical.Store(rec.ID, p)
	j, _, err := s.enter(rec)
	if err != nil {
		s.physical.Delete(rec.ID)
		return "", err
	}
	return j.id, nil
}

// wellFormed plans all of a plan, which the job does anew: what is bad is refused before there is a job.
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

// runPhysical runs a submitted plan. Its root is split off as off a statement's (S6).
func (s *Server) runPhysical(j *job) error {
	v, ok := s.physical.LoadAndDelete(j.id)
	p, isPlan := v.(plan.Physical)
	if !ok || !isPlan {
		return fail(codeLost, "submit the plan again", "the scheduler restarted before this plan had run, and plans are not kept")
	}
	p.Request.Limits = s.limits(s.pool.Connected())
	q := &query{}
	var err error
	if q.planner, err = plan.FromPhysical(p.Mode, p); err != nil {
		return planFailure(err)
	}
	if q.first, err = q.planner.Next(nil); err != nil {
		return planFailure(err)
	}
	j.update(func() { j.plan = q.plan().Explain() })
	return s.runPlannedQuery(j, q)
}
