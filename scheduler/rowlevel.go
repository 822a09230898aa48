package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

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

// planRowLevel plans DELETE, UPDATE and MERGE: the sink says how changed rows are stored, and lists the files of the version that is changed; an executor
// analyses the query that finds the changes; tasks share the files.
func (s *Server) planRowLevel(j *job, st sql.Statement) (*planned, error) {
	r, name := rowLevel(st)
	t, branch, err := s.resolveWritten(name.Strings(), j)
	if err != nil {
		return nil, err
	}
	p := &planned{target: t, branch: branch, mode: sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL, operation: r.Operation()}
	if err := s.canRowLevel(j, t, r); err != nil {
		return nil, err
	}
	if branch != "" {
		return nil, fail(codeUser, "write the rows with INSERT OVERWRITE, or change the main branch", "%s is not supported on branch %s of table %s", strings.ToUpper(r.Operation()), sql.DisplayIdent(branch), t)
	}
	scan, err := s.prepareRowLevel(j, p)
	if err != nil {
		return nil, err
	}
	if p.spec.GetRowChanges() > planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE { // executors read delete files and do not write them yet
		j.warn(fmt.Sprintf("table %s asks for merge-on-read of %s; its files are written anew (copy-on-write), which every reader reads the same", p.target, strings.ToUpper(r.Operation())))
		p.spec.RowChanges = planv1.RowChanges_ROW_CHANGES_COPY_ON_WRITE
	}
	r.Table, r.Name, r.Schema, r.Lineage = p.target.String(), ownName(name), p.spec.GetSchema(), scan.GetRowLineage()
	if err := s.positionNames(p.target, p.spec.GetSchema()); err != nil {
		return nil, err
	}
	changes, err := r.Changes()
	if err != nil {
		return nil, planFailure(err)
	}
	target := &planv1.Source{View: plan.TargetView, Alias: p.target.String(), Kind: &planv1.Source_Table{Table: scan}}
	a, err := s.analyzeChanges(j, p, r, changes.SQL, target)
	if err != nil {
		return nil, err
	}
	clauses, err := changes.Clauses(a.result.GetColumns())
	if err != nil {
		return nil, planFailure(err)
	}
	return p, s.planChanges(j, p, plan.RowLevelTasks{
		Statement: r, Spec: p.spec, Target: target, Why: a.result.GetUnrepeatable(), Mode: s.planner(j),
		Found: &plan.Found{SQL: a.result.GetSql(), Columns: len(a.result.GetColumns()), Sources: a.sources, Clauses: clauses},
	}, a)
}

// ownName is the table's name without the branch behind it.
func ownName(name sql.Name) []string {
	parts := name.Strings()
	if branch, tag := refOfPart(parts); branch != "" || tag != "" {
		return parts[:len(parts)-1]
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

// sameTries bounds how often a table is looked at until what is read is what the write was prepared for.
const sameTries = 10

// prepareRowLevel asks the sink how the table is written and which files it has, of one version and schema.
func (s *Server) prepareRowLevel(j *job, p *planned) (*planv1.TableScan, error) {
	for range sameTries {
		if err := s.prepareInsert(j.ctx, j, p); err != nil {
			return nil, err
		}
		if err := distinctColumns(p.target, p.spec.GetSchema().GetFields()); err != nil {
			return nil, err
		}
		scan, err := s.scanTarget(j.ctx, j, p)
		if err != nil {
			return nil, err
		}
		if scan.GetVersion() == p.spec.GetBaseVersion() && proto.Equal(namesOf(scan.GetSchema()), namesOf(p.spec.GetSchema())) {
			scan.WithPositions = true
			if err := distinctFiles(p.target, scan.GetFiles()); err != nil {
				return nil, err
			}
			return scan, nil
		}
	}
	return nil, fail(codeConflict, "run the statement again", "table %s changed each of the %d times that it was looked at", p.target, sameTries)
}

// namesOf is what of a schema says that two are the same for reading and writing.
func namesOf(s *planv1.Schema) *planv1.Schema {
	out := &planv1.Schema{}
	for _, f := range s.GetFields() {
		out.Fields = append(out.Fields, &planv1.Field{Id: f.GetId(), Name: f.GetName(), Required: f.GetRequired()})
	}
	return out
}

func (s *Server) scanTarget(ctx context.Context, j *job, p *planned) (scan *planv1.TableScan, err error) {
	err = s.overCrashes(ctx, "PlanScan", func() (err error) {
		scan, err = s.planScanOnce(ctx, j, p.target)
		return err
	})
	return scan, err
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

// analyzeChanges binds the query that finds the changes. Other reads of the same table see the version that is changed.
func (s *Server) analyzeChanges(j *job, p *planned, r *plan.RowLevel, text string, target *planv1.Source) (*analysis, error) {
	defer j.timed("analyze", time.Now())
	req := &executorv1.Analyze{
		RequestId: uuid.NewString(), Sql: text, NowMicros: j.rec.Submitted.UnixMicro(), Sources: []*planv1.Source{target},
		Target: &executorv1.RowTarget{View: target.GetView(), Alias: r.Alias()},
	}
	if !r.Aliased() {
		req.Target.Table = r.Name
	}
	if s.pool.Connected() == 0 {
		j.waitsForExecutor()
	}
	a := &analysis{}
	var err error
	if a.result, err = s.analyzeOnce(j.ctx, req); err != nil {
		return nil, err
	}
	if len(a.result.GetUnresolved()) == 0 {
		return a, nil
	}
	for _, u := range a.result.GetUnresolved() {
		src, err := s.resolveBeside(j, p, u, target)
		if err != nil {
			return nil, err
		}
		a.sources = append(a.sources, src)
	}
	req = proto.CloneOf(req)
	req.RequestId = uuid.NewString()
	req.Sources = append([]*planv1.Source{target}, a.sources...)
	if a.result, err = s.analyzeOnce(j.ctx, req); err != nil {
		return nil, err
	}
	if len(a.result.GetUnresolved()) > 0 {
		return nil, fail(codeInternal, "", "the executor still asks for %d sources after all were resolved", len(a.result.GetUnresolved()))
	}
	a.keepColumns()
	return a, nil
}

// resolveBeside resolves what the statement reads besides the rows that it changes.
func (s *Server) resolveBeside(j *job, p *planned, u *executorv1.UnresolvedSource, target *planv1.Source) (*planv1.Source, error) {
	if len(u.GetTable()) > 0 && u.GetVersion() == "" && u.AsOfMicros == nil {
		if t, err := s.resolveTable(u.GetTable(), j); err == nil && strings.EqualFold(t.String(), p.target.String()) && p.branch == "" {
			same := proto.CloneOf(target.GetTable())
			same.WithPositions, same.RowLineage = false, false
			return &planv1.Source{View: u.GetView(), Alias: u.GetAlias(), Kind: &planv1.Source_Table{Table: same}}, nil
		}
	}
	return s.resolveSource(j.ctx, j, u)
}

// planChanges makes tasks of the write.
func (s *Server) planChanges(j *job, p *planned, tasks plan.RowLevelTasks, a *analysis) error {
	r, err := s.request(j, &analysis{result: &executorv1.AnalyzeResult{PlanText: a.result.GetPlanText()}})
	if err != nil {
		return err
	}
	r.Table = p.target.String()
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
