package scheduler

import (
	"slices"
	"strings"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// Kinds of job that change rows.
const (
	kindDelete = "delete"
	kindUpdate = "update"
	kindMerge  = "merge"
)

// rowLevel is the statement as the planner takes it, and the name of its table; nil: it is none.
func rowLevel(st sql.Statement) (*plan.RowLevel, sql.Name) {
	switch st := st.(type) {
	case *sql.Delete:
		return &plan.RowLevel{Delete: st}, st.Table
	case *sql.Update:
		return &plan.RowLevel{Update: st}, st.Table
	case *sql.Merge:
		return &plan.RowLevel{Merge: st}, st.Table
	}
	return nil, sql.Name{}
}

func (s *Server) runRowLevel(j *job, st sql.Statement) error {
	p, err := s.planRowLevel(j, st)
	if err != nil {
		return err
	}
	return s.runPlanned(j, p)
}

// planRowLevel plans DELETE, UPDATE and MERGE: the sink says how changed rows are stored, and lists the files of the version that is changed which may have
// rows that the statement is about; an executor analyses the query that finds the changes; tasks share the files.
func (s *Server) planRowLevel(j *job, st sql.Statement) (*planned, error) {
	r, name := rowLevel(st)
	t, branch, err := s.resolveWritten(name.Strings(), j, toRead|toInsert)
	if err != nil {
		return nil, err
	}
	p := &planned{target: t, branch: branch, mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, operation: r.Operation()}
	if err := s.canRowLevel(j, t, r); err != nil {
		return nil, err
	}
	if err := s.needsBranch(j.ctx, p); err != nil {
		return nil, err
	}
	r.Name = ownName(name, t)
	read, err := s.prepareRowLevel(j, p, r)
	if err != nil {
		return nil, err
	}
	r.Lineage = read.target.GetTable().GetRowLineage()
	changes, err := r.Changes()
	if err != nil {
		return nil, planFailure(err)
	}
	tasks := plan.RowLevelTasks{Statement: r, Spec: p.spec, Target: read.target, Mode: s.planner(j)}
	scan := read.target.GetTable()
	tasks.Whole = r.TakeWhole(scan, read.filters[plan.TargetView].GetExact())
	if p.whole = tasks.Whole; len(p.whole) > 0 && len(scan.GetFiles()) == 0 { // nothing has to be found
		p.unread = true
		return p, s.planChanges(j, p, tasks, "")
	}
	a, err := s.analyzeChanges(j, r, changes.SQL, read)
	if err != nil {
		return nil, err
	}
	clauses, err := changes.Clauses(a.result.GetColumns())
	if err != nil {
		return nil, planFailure(err)
	}
	tasks.Why = a.result.GetUnrepeatable()
	tasks.Found = &plan.Found{SQL: a.result.GetSql(), Columns: len(a.result.GetColumns()), Sources: a.sources, Clauses: clauses}
	return p, s.planChanges(j, p, tasks, a.result.GetPlanText())
}

// ownName is the table's name as the statement has it, without the branch behind it.
func ownName(name sql.Name, t *target) []string {
	parts := name.Strings()
	if last := len(parts) - 1; !strings.EqualFold(parts[last], t.ident[len(t.ident)-1]) && !isPlace(parts[last]) {
		return parts[:last]
	}
	return parts
}

func (s *Server) canRowLevel(j *job, t *target, r *plan.RowLevel) error {
	p, err := s.steadyPlugin(j.ctx, t)
	if err != nil {
		return err
	}
	if !slices.Contains(p.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_ROW_LEVEL) {
		return fail(codeUser, "", "%s is not supported in catalog %s: its sink %s only adds rows", strings.ToUpper(r.Operation()), t.entry.name, t.entry.sink)
	}
	return nil
}

// positionColumns are what the view of a table with positions adds to its columns.
var positionColumns = []string{"_file", "_pos", "_row_id", "_last_updated_sequence_number"}

func (s *Server) positionNames(t *target, schema *planv1.Schema) error {
	for _, f := range schema.GetFields() {
		if at, _ := sql.Find(f.GetName(), positionColumns); at >= 0 {
			return fail(codeUser, "rename the column", "table %s: its column %s has a name that row-level statements need for themselves", t, sql.DisplayIdent(f.GetName()))
		}
	}
	return nil
}

// analyzeChanges binds the query that finds the changes.
func (s *Server) analyzeChanges(j *job, r *plan.RowLevel, text string, read *rowRead) (*analysis, error) {
	defer j.timed("analyze", time.Now())
	req := read.request(j, r, text)
	req.Sources = append([]*planv1.Source{read.target}, read.beside...)
	a := &analysis{sources: read.beside}
	var err error
	if a.result, err = s.analyzeOnce(j.ctx, req); err != nil {
		return nil, err
	}
	if len(a.result.GetUnresolved()) > 0 {
		return nil, fail(codeInternal, "", "the executor still asks for %d sources after all were resolved", len(a.result.GetUnresolved()))
	}
	for _, st := range a.result.GetStats() {
		for _, c := range st.GetColumns() {
			if sql.IsReserved(c.GetName()) {
				return nil, fail(codeUser, "rename it with ALTER TABLE, or in a subquery that lists the columns", "column %s of a table or file that the statement reads has a name that row-level statements need for themselves", sql.DisplayIdent(c.GetName()))
			}
		}
	}
	a.keepColumns()
	return a, nil
}

// planChanges makes tasks of the write.
func (s *Server) planChanges(j *job, p *planned, tasks plan.RowLevelTasks, engine string) error {
	r, err := s.request(j, &analysis{result: &executorv1.AnalyzeResult{PlanText: engine}})
	if err != nil {
		return err
	}
	r.Table, r.Commit = p.target.String(), p.commitLines()
	tasks.Request = r
	if p.planner, err = tasks.Planner(); err != nil {
		return planFailure(err)
	}
	if p.first, err = p.planner.Next(nil); err != nil {
		return planFailure(err)
	}
	p.plan = p.planner.Plan()
	p.text = p.plan.Explain()
	j.warn(p.plan.Warnings...)
	j.update(func() { j.plan = p.text })
	return nil
}
