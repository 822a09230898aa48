package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// planned is a write before it runs: what to do, and how EXPLAIN shows it.
type planned struct {
	target *target
	mode   sinkv1.WriteMode
	branch string        // that is written to; empty: the main one
	scope  *planv1.Scope // overwrites: what they remove
	// operation of a row-level write: delete, update or merge.
	operation string
	whole     []*planv1.ReplacedFile // of which a DELETE removes every row without reading them
	unread    bool                   // it has no other file: none is read or written
	over      *overwrite             // nil: a plain append, or no INSERT
	changes   []string               // of the table's schema, that a dry run would make
	rows      string                 // how many the query gives, for people; empty: nobody knows
	adds      *sinkv1.AddFiles       // ADD FILES by reference
	pick      string                 // the snapshot whose changes are made once more
	spec      *planv1.WriteSpec
	plan      *plan.Plan // as far as it is planned
	text      string
	// planner gives the stages behind first.
	planner plan.Planner
	first   plan.Batch
	// location is where a created table goes. It is chosen once: the catalog may answer differently the next time.
	location string
}

func planFailure(err error) error {
	var pe *plan.Error
	if errors.As(err, &pe) {
		return &jobFailure{journal.JobError{Code: codeUser, Message: pe.Message, Hint: pe.Hint}, err}
	}
	if errors.Is(err, plan.ErrPhysical) {
		return &jobFailure{journal.JobError{Code: codeUser, Message: err.Error()}, err}
	}
	return err
}

// planInsert plans INSERT: the sink prepares the write while an executor analyses the query.
func (s *Server) planInsert(j *job, st *sql.Insert) (*planned, error) {
	p, err := s.planAppend(st.Table.Strings(), j)
	if err != nil {
		return nil, err
	}
	return p, s.planInsertAs(j, p, st)
}

// planInsertAs plans an INSERT into a table that has been found.
func (s *Server) planInsertAs(j *job, p *planned, st *sql.Insert) error {
	if err := s.planOverwrite(j, p, st); err != nil {
		return err
	}
	var a *analysis
	g, ctx := errgroup.WithContext(j.ctx)
	g.Go(func() error { return s.prepareInsert(ctx, j, p) })
	g.Go(func() (err error) {
		a, err = s.analyze(ctx, j, st.Query.Text)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if err := p.sameTable(); err != nil {
		return err
	}
	if err := distinctColumns(p.target, p.spec.GetSchema().GetFields()); err != nil {
		return err
	}
	var list []string
	for _, c := range st.Columns {
		list = append(list, c.Text)
	}
	var err error
	target := plan.Target{Table: p.target.String(), Schema: p.spec.Schema, List: list, ByName: st.ByName}
	if target.Schema, err = s.acceptSchema(j, p, target, a.result.Columns); err != nil {
		return err
	}
	out, err := plan.MapInsert(target, p.fixedValues(), a.result.Columns)
	if err != nil {
		return planFailure(err)
	}
	return s.buildPlan(j, p, a, out)
}

// prepareInsert asks the sink how a table that exists is written. Where no table has the name as it is written, one that differs by case alone is meant.
func (s *Server) prepareInsert(ctx context.Context, j *job, p *planned) (err error) {
	p.spec, err = s.prepareWrite(ctx, j, p, nil)
	if other := s.respelt(ctx, p.target, err); other != nil {
		p.target = other
		p.spec, err = s.prepareWrite(ctx, j, p, nil)
	}
	return err
}

// planCreateAs plans CREATE TABLE AS: the query's columns make the table's.
func (s *Server) planCreateAs(j *job, st *sql.CreateTable) (*planned, error) {
	t, err := s.resolveTable(st.Table.Strings(), j, createdBy(st))
	if err != nil {
		return nil, err
	}
	if err := s.ensureSchema(j.ctx, t); err != nil {
		return nil, err
	}
	s.warnOfTwin(j, t)
	if p, err := s.steadyPlugin(j.ctx, t); err != nil {
		return nil, err
	} else if !slices.Contains(p.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_CREATE_AS_SELECT) {
		return nil, fail(codeUser, "CREATE TABLE first, then INSERT INTO", "CREATE TABLE AS is not supported in catalog %s: its sink %s cannot create a table together with its rows", t.entry.name, t.entry.sink)
	}
	a, err := s.analyze(j.ctx, j, st.Query.Text)
	if err != nil {
		return nil, err
	}
	def, err := plan.Definition(st, a.result.Columns)
	if err != nil {
		return nil, planFailure(err)
	}
	j.warn(plan.TypeChanges(a.result.Columns, def.Schema.Fields)...)
	p := &planned{target: t, mode: sinkv1.WriteMode_WRITE_MODE_CREATE}
	if err := s.prepareCreate(j.ctx, j, p, st, def); err != nil {
		return nil, err
	}
	// The table's columns are the query's, in their order.
	out, err := plan.MapColumns(plan.Target{Table: t.String(), Schema: p.spec.Schema}, a.result.Columns)
	if err != nil {
		return nil, planFailure(err)
	}
	return p, s.buildPlan(j, p, a, out)
}

func (s *Server) prepareWrite(ctx context.Context, j *job, p *planned, def *sinkv1.TableDefinition) (spec *planv1.WriteSpec, err error) {
	start := time.Now()
	defer func() { j.timed("prepare", start) }()
	err = s.overCrashes(ctx, "PrepareWrite", func() (err error) {
		spec, err = s.prepareOnce(ctx, j, p, def)
		return err
	})
	return spec, err
}

func (s *Server) prepareOnce(ctx context.Context, j *job, p *planned, def *sinkv1.TableDefinition) (*planv1.WriteSpec, error) {
	t, mode := p.target, p.mode
	plugin, err := s.plugin(ctx, t)
	if err != nil {
		return nil, err
	}
	if j.preparable(p, def) {
		spec, asked := s.preparedAppend(ctx, j, p, plugin)
		if spec != nil {
			return spec, nil
		}
		defer asked()
	}
	lease, sink, err := s.lease(ctx, t, broker.LeaseSpec{
		JobID: j.id, Mode: mode, Branch: p.branch, AllowCreate: mode == sinkv1.WriteMode_WRITE_MODE_CREATE, Location: p.location,
	})
	if err != nil {
		return nil, err
	}
	defer lease.Close()
	res, err := sink.PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{
		Lease: lease.Token(), Table: t.ref(), Mode: mode, Definition: def, Branch: p.branch, Scope: p.scope, Operation: p.operation, WapId: j.wapID(p),
		AddFiles: p.adds, Pick: p.pick,
	})
	if err != nil {
		return nil, s.sinkFailure(ctx, t, err)
	}
	s.noteTable(j, t, lease)
	if res.Spec.GetSchema() == nil || res.Spec.DataLocation == "" {
		return nil, fail(codeInternal, "", "table %s: the sink's write spec has no schema or no data location", t)
	}
	if err := s.checkDataLocation(ctx, p, res.Spec); err != nil {
		return nil, err
	}
	if err := j.mayStage(p, res.Spec.GetWapId()); err != nil {
		return nil, err
	}
	res.Spec.Branch, res.Spec.Scope = p.branch, p.scope
	if j.preparable(p, def) {
		s.prepared.remember(preparedKey(p), preparedSpec{plugin, lease.MetadataLocation(), res.Spec})
	}
	return res.Spec, nil
}

func (s *Server) buildPlan(j *job, p *planned, a *analysis, out []*planv1.OutputColumn) error {
	r, err := s.request(j, a)
	if err != nil {
		return err
	}
	r.Guard, r.Commit, r.Operation = p.guard(), p.commitLines(), p.operationText()
	r.Table, r.Create, r.Spec, r.Output = p.target.String(), p.mode == sinkv1.WriteMode_WRITE_MODE_CREATE, p.spec, out
	if r.Distribution, err = plan.DistributionByName(p.spec.GetDistribution()); err != nil {
		j.warn(err.Error()) // the sink's word; the rows are right however they are spread
	}
	if p.planner, p.first, err = s.plan(j, r); err != nil {
		return err
	}
	p.plan, p.rows = p.planner.Plan(), rowsText(a)
	p.text = p.plan.Explain()
	if err := s.explainSplice(j, p, a); err != nil {
		return err
	}
	j.warn(p.plan.Warnings...)
	j.update(func() { j.plan = p.text })
	return nil
}

func (s *Server) runInsert(j *job, st *sql.Insert) error {
	p, err := s.planInsert(j, st)
	if err != nil {
		return err
	}
	if err := s.removable(j, p); err != nil {
		return err
	}
	return s.runPlanned(j, p)
}

func (s *Server) runCreateAs(j *job, st *sql.CreateTable) error {
	p, err := s.planCreateAs(j, st)
	if err != nil {
		var f *jobFailure
		if errors.As(err, &f) && f.Code == codeExists {
			if st.IfNotExists {
				return s.answer(j, []string{"result"}, []row{{f.Message + "; nothing was written"}})
			}
			f.Hint = "use INSERT INTO, another name, or CREATE TABLE IF NOT EXISTS"
		}
		return err
	}
	return s.runPlanned(j, p)
}

// runPlanned makes the plan durable and runs it.
func (s *Server) runPlanned(j *job, p *planned) error {
	w, err := newWriteState(s, j, p.target, p.mode, p.spec, coordinator.New(j.id, s.journal.Epoch()))
	if err != nil {
		return err
	}
	if w.rec, err = writeRecord(p); err != nil {
		return err
	}
	if err := fault.Hit("scheduler.plan.before-journal"); err != nil {
		return err
	}
	return s.runWrite(w, p.planner, p.first, nil)
}

// explain answers EXPLAIN: it plans, and runs nothing.
func (s *Server) explain(j *job, st *sql.Explain) error {
	if st.Analyze {
		return s.explainAnalyze(j, st)
	}
	text, err := s.explained(j, st.Statement)
	if err != nil {
		return err
	}
	return s.answer(j, []string{"plan"}, []row{{text}})
}
