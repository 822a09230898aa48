package scheduler

import (
	"github.com/signet-io/signet/scheduler/sql"
)

// explained is the plan of a statement, for EXPLAIN.
func (s *Server) explained(j *job, st sql.Statement) (string, error) {
	switch st := st.(type) {
	case *sql.Select:
		p, err := s.planSelect(j, st.Query)
		if err != nil {
			return "", err
		}
		return p.plan().Explain(), nil
	case *sql.Insert:
		return planText(s.planInsert(j, st))
	case *sql.Truncate:
		return planText(s.planTruncate(j, st))
	case *sql.CreateTable:
		if st.Query != nil {
			return planText(s.planCreateAs(j, st))
		}
	}
	return "", fail(codeUser, "", "EXPLAIN works on SELECT, INSERT, TRUNCATE and CREATE TABLE AS")
}

func planText(p *planned, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return p.text, nil
}
