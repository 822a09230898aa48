package scheduler

import (
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// acceptTries bounds how often a table is changed until it takes a query's columns: others may change it meanwhile.
const acceptTries = 5

// acceptSchema lets an INSERT BY NAME change the table for the columns that it brings, where the table allows it: new ones are added, optional, and types are
// widened. The table is changed first, in a commit of its own, because files are written under a schema that has its ids from the table; the statement is then
// prepared on what the table has become. So a crash between the two, or a statement that fails later, leaves columns that are empty, and what is run again finds
// them there; of two statements that bring the same column the second takes what the first has made of it, or is refused if that does not fit.
func (s *Server) acceptSchema(j *job, p *planned, t plan.Target, query []*planv1.Column) (*planv1.Schema, error) {
	if !t.ByName {
		return t.Schema, nil
	}
	for range acceptTries {
		e, err := plan.Evolve(t, query)
		if err != nil || len(e.Changes) == 0 {
			return t.Schema, planFailure(err)
		}
		allowed, err := s.acceptsAny(j, p)
		if err != nil {
			return nil, err
		}
		if !allowed {
			return t.Schema, s.refuseEvolution(p, t, query)
		}
		if j.dry {
			p.changes = e.Text
			p.spec.Schema = e.Apply(t.Schema)
			return p.spec.Schema, nil
		}
		if _, err := s.alter(j, p.target, &sinkv1.AlterTableRequest{Changes: e.Changes}, nil); err != nil {
			return nil, err
		}
		j.warn("table " + p.target.String() + ": " + strings.Join(e.Text, "; "))
		if p.spec, err = s.prepareWrite(j.ctx, j, p, nil); err != nil {
			return nil, err
		}
		if err := p.sameTable(); err != nil {
			return nil, err
		}
		t.Schema = p.spec.GetSchema()
	}
	return nil, fail(codeConflict, "run the statement again", "table %s changed each of the %d times that it was looked at", p.target, acceptTries)
}

// acceptsAny tells whether the table's owner lets statements change it.
func (s *Server) acceptsAny(j *job, p *planned) (bool, error) {
	d, err := s.describe(j.ctx, j, p.target)
	if err != nil {
		return false, err
	}
	return strings.EqualFold(d.GetProperties()[plan.AcceptAnySchema], "true"), nil
}

// refuseEvolution says what to do about columns that the table lacks; nil: what the query has fits as it is, value by value.
func (s *Server) refuseEvolution(p *planned, t plan.Target, query []*planv1.Column) error {
	_, err := plan.MapInsert(t, p.fixedValues(), query)
	if err == nil {
		return nil
	}
	failure := asFailure(planFailure(err)).JobError
	hint := "to let INSERT BY NAME add columns and widen types: ALTER TABLE " + p.target.String() + " SET TBLPROPERTIES ('" + plan.AcceptAnySchema + "' = 'true')"
	failure.Hint = strings.TrimPrefix(failure.Hint+"\n"+hint, "\n")
	return &jobFailure{failure, err}
}
