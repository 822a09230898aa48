package scheduler

import (
	"github.com/signet-io/signet/scheduler/graph"
	"github.com/signet-io/signet/scheduler/sql"
)

// validateColumns are the columns of what VALIDATE answers.
var validateColumns = []string{"rows:int", "files:int", "bytes:int", "table", "branch", "mode", "removes", "conflicts"}

// runValidate runs everything of a write but its end: planning, the query, every cast and every check of values and rows. Files are written to the executors'
// scratch and dropped; nothing is staged, journalled or committed.
func (s *Server) runValidate(j *job, st *sql.Validate) error {
	j.dry = true
	p, err := s.plannedWrite(j, st.Statement)
	if err != nil {
		return err
	}
	removes, err := s.removesLine(j, p)
	if err != nil {
		return err
	}
	rows, files, bytes, err := s.check(j, p)
	if err != nil {
		return err
	}
	return s.answer(j, validateColumns, []row{{
		rows, files, bytes, p.target.String(), orNil(p.branch), modeText(p), removes[len("removes: "):], conflictText(p),
	}})
}

// check runs a planned write's tasks as checks.
func (s *Server) check(j *job, p *planned) (rows, files, bytes int64, err error) {
	if p.planner == nil { // without tasks
		return 0, 0, 0, nil
	}
	l := s.newLoop(j, nil, p.planner)
	l.check = &checked{files: map[string]int64{}}
	if err := l.execute(p.first); err != nil {
		return 0, 0, 0, err
	}
	last := int32(len(l.stages) - 1) //nolint:gosec // few
	for i := range l.stages[last].tasks {
		id := graph.TaskID{Stage: last, Task: int32(i)} //nolint:gosec // as many as were planned
		if v, ok := l.g.TaskView(id); ok {
			rows, bytes = rows+v.Rows, bytes+v.Bytes
		}
		if attempt, _, ok := l.g.Winner(id); ok {
			files += l.check.files[attempt]
		}
	}
	return rows, files, bytes, nil
}
