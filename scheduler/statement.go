package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/schedule"
	"github.com/signet-io/signet/scheduler/sql"
)

// run takes a job from its submission to its end.
func (s *Server) run(j *job) {
	defer s.freeOutputs(j)
	defer close(j.done)
	defer j.cancel(nil)
	defer s.admitted.leave(j.turn)
	defer func() {
		if r := recover(); r != nil { // a defect here must not take the other jobs along
			s.log.Error("job panicked", "job", j.id, "panic", r, "stack", stack())
			s.end(j, fail(codeInternal, "this is a defect; the scheduler's log has the stack", "internal error: %v", r))
		}
	}()
	s.end(j, s.inTurn(j))
	s.keepResult(j)
	s.trim()
}

// end finishes a job by the error its statement ended with. A write whose fate the commit has decided is already finished.
func (s *Server) end(j *job, err error) {
	switch {
	case err == nil:
		s.finish(j, journal.StateSuccessful, nil)
	case s.stoppedByShutdown(j):
		// It stays open in the journal and goes on with the next start.
	case errors.Is(err, errCancelled), errors.Is(context.Cause(j.ctx), errCancelled):
		j.mu.Lock()
		who := j.cancelBy
		j.mu.Unlock()
		s.finish(j, journal.StateCancelled, cancelledBy(who))
	default:
		s.finish(j, journal.StateFailed, asFailure(err))
	}
}

func (s *Server) execute(j *job) error {
	j.setPhase(schedulerv1.JobState_JOB_STATE_PLANNING, "", "")
	if who := j.cancelledBy(); who != "" { // before a restart
		j.update(func() { j.cancelBy = who })
		return errCancelled
	}
	if j.rec.Write != nil { // planned by an earlier incarnation
		return s.resumeWrite(j)
	}
	if j.rec.RootBegun {
		return errRootInterrupted()
	}
	switch j.rec.Kind {
	case kindSession:
		return s.runSession(j)
	case kindPlan:
		return s.runPhysical(j)
	}
	start := time.Now()
	stmt, err := sql.Parse(j.rec.SQL)
	if err != nil {
		return syntaxFailure(err)
	}
	j.timed("parse", start)
	j.update(func() { j.rec.Kind = kindOf(stmt) })
	if j.cancelledBy() != "" { // from now on a cancel sees the kind
		return errCancelled
	}
	switch st := stmt.(type) {
	case *sql.Select:
		return s.runSelect(j, st.Query)
	case *sql.Insert:
		return s.runInsert(j, st)
	case *sql.Delete, *sql.Update, *sql.Merge:
		return s.runRowLevel(j, st)
	case *sql.CreateTable:
		if st.Query != nil {
			return s.runCreateAs(j, st)
		}
		if st.Replace {
			return s.replaceTable(j, st)
		}
		return s.createTable(j, st)
	case *sql.Truncate:
		return s.runTruncate(j, st)
	case *sql.AddFiles:
		return s.runAddFiles(j, st)
	case *sql.Validate:
		return s.runValidate(j, st)
	case *sql.CreateSchema:
		return s.createSchema(j, st)
	case *sql.DropTable:
		return s.dropTable(j, st)
	case *sql.AlterTable:
		return s.alterTable(j, st)
	case *sql.Call:
		return s.callProcedure(j, st)
	case *sql.ShowProperties:
		return s.showProperties(j, st)
	case *sql.ShowHistory:
		return s.showHistory(j, st)
	case *sql.DescribeHistory:
		return s.describeHistory(j, st)
	case *sql.Vacuum:
		return s.runVacuum(j, st)
	case *sql.Cache:
		return s.runCache(j, st)
	case *sql.Uncache:
		return s.runUncache(j, st)
	case *sql.ShowCatalogs:
		return s.answer(j, []string{"catalog"}, oneColumn(s.visibleCatalogs(j.owner)))
	case *sql.ShowSchemas:
		return s.showSchemas(j, st)
	case *sql.ShowTables:
		return s.showTables(j, st)
	case *sql.ShowCreate:
		return s.showCreate(j, st)
	case *sql.Describe:
		return s.describeTable(j, st)
	case *sql.Explain:
		return s.explain(j, st)
	}
	return fail(codeUser, "", "statements of this kind are not supported")
}

// Kinds of job.
const (
	kindInsert  = "insert"
	kindCreate  = "ctas"
	kindSelect  = "select"
	kindDDL     = "ddl"
	kindShow    = "show"
	kindExplain = "explain"
	kindSession = "session"
	kindCache   = "cache"
	kindPlan    = "plan"
	// Writes that are no INSERT.
	kindTruncate = "truncate"
	kindValidate = "validate"
	kindAddFiles = "add_files"
)

func kindOf(st sql.Statement) string {
	switch st := st.(type) {
	case *sql.Select:
		return kindSelect
	case *sql.Insert:
		return kindInsert
	case *sql.Delete:
		return kindDelete
	case *sql.Update:
		return kindUpdate
	case *sql.Merge:
		return kindMerge
	case *sql.CreateTable:
		if st.Query != nil {
			return kindCreate
		}
		return kindDDL
	case *sql.CreateSchema, *sql.DropTable, *sql.AlterTable, *sql.Call, *sql.Vacuum, *sql.Uncache:
		return kindDDL
	case *sql.Truncate:
		return kindTruncate
	case *sql.AddFiles:
		return kindAddFiles
	case *sql.Validate:
		return kindValidate
	case *sql.Cache:
		return kindCache
	case *sql.Explain:
		return kindExplain
	default:
		return kindShow
	}
}

func syntaxFailure(err error) error {
	return &jobFailure{journal.JobError{Code: codeUser, Message: err.Error()}, err}
}

// answer gives the job an inline result that the scheduler made.
func (s *Server) answer(j *job, columns []string, rows []row) error {
	res, err := inlineResult(columns, rows)
	if err != nil {
		return err
	}
	j.update(func() { j.rec.Result = res })
	return nil
}

func oneColumn(values []string) []row {
	rows := make([]row, len(values))
	for i, v := range values {
		rows[i] = row{v}
	}
	return rows
}

// catalogError gives the catalog's sentinels the form that clients see.
func catalogError(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrNotFound):
		return fail(codeNotFound, "", "%s does not exist", what)
	case errors.Is(err, catalog.ErrExists):
		return fail(codeExists, "", "%s exists already", what)
	case errors.Is(err, catalog.ErrPermanent):
		return fail(codeUser, "", "%s: %s", what, strings.TrimSuffix(err.Error(), ": "+catalog.ErrPermanent.Error()))
	}
	return &jobFailure{journal.JobError{Code: codeInternal, Message: fmt.Sprintf("%s: %v", what, err)}, err}
}

func (s *Server) createSchema(j *job, st *sql.CreateSchema) error {
	parts := st.Name.Strings()
	preferred, name := j.rec.DefaultCatalog, ""
	if len(parts) > 1 {
		name, parts = parts[0], parts[1:]
	}
	e, err := s.resolveCatalog(j.owner, name, preferred)
	if err != nil {
		return err
	}
	if e.catalog == nil && e.log == "" {
		return fail(codeUser, "CREATE TABLE makes the directory", "catalog %s has no schemas to create: its tables are directories", e.name)
	}
	if err := plainSchema(e, parts); err != nil {
		return err
	}
	what := "schema " + sql.JoinName(append([]string{e.name}, parts...))
	if err := s.permit(j.owner, e, parts, toCreate, what); err != nil {
		return err
	}
	s.warnOfTwinSchema(j, e, parts)
	if e.catalog == nil {
		return s.createDirectory(j, e, parts, st.IfNotExists)
	}
	// After a restart the schema may be there because this very statement made it.
	err = catalogError(e.catalog.CreateNamespace(j.ctx, parts, j.again), what)
	var f *jobFailure
	switch {
	case st.IfNotExists && errors.As(err, &f) && f.Code == codeExists:
		return s.answer(j, []string{"result"}, []row{{what + " exists already"}})
	case err != nil:
		return hinted(err, codeExists, "CREATE SCHEMA IF NOT EXISTS does nothing then")
	}
	j.madeSchema(e, parts)
	return s.answer(j, []string{"result"}, []row{{"created " + what}})
}

// hinted adds a hint to a failure of one code.
func hinted(err error, code, hint string) error {
	var f *jobFailure
	if errors.As(err, &f) && f.Code == code && f.Hint == "" {
		f.Hint = hint
	}
	return err
}

func (s *Server) showSchemas(j *job, st *sql.ShowSchemas) error {
	name := ""
	if st.Catalog != nil {
		name = st.Catalog.Text
	}
	e, err := s.resolveCatalog(j.owner, name, j.rec.DefaultCatalog)
	if err != nil {
		return err
	}
	schemas, err := s.visibleSchemas(j.ctx, j.owner, e)
	if err != nil {
		return err
	}
	names := make([]string, len(schemas))
	for i, ns := range schemas {
		names[i] = schemaText(ns)
	}
	return s.answer(j, []string{"schema"}, oneColumn(names))
}

func (s *Server) showTables(j *job, st *sql.ShowTables) error {
	var parts []string
	if st.Schema != nil {
		parts = st.Schema.Strings()
	}
	name := ""
	switch {
	case len(parts) == 0 && j.rec.DefaultSchema != "":
		parts = strings.Split(j.rec.DefaultSchema, ".")
	case len(parts) > 1:
		name, parts = parts[0], parts[1:]
	}
	e, err := s.resolveCatalog(j.owner, name, j.rec.DefaultCatalog)
	if err != nil {
		return err
	}
	if len(parts) > 0 {
		if parts, err = s.schemaToShow(j.ctx, j.owner, e, parts); err != nil {
			return err
		}
		tables, err := s.visibleTables(j.ctx, j.owner, e, parts)
		if err != nil {
			return err
		}
		return s.answer(j, []string{"table"}, oneColumn(tables))
	}
	schemas, err := s.visibleSchemas(j.ctx, j.owner, e)
	if err != nil {
		return err
	}
	var rows []row
	for _, sc := range schemas {
		tables, err := s.visibleTables(j.ctx, j.owner, e, sc)
		if err != nil {
			return err
		}
		for _, t := range tables {
			rows = append(rows, row{schemaText(sc), t})
		}
	}
	return s.answer(j, []string{"schema", "table"}, rows)
}

func (s *Server) describeTable(j *job, st *sql.Describe) error {
	_, d, err := s.described(j, st.Table)
	if err != nil {
		return err
	}
	var rows []row
	for _, f := range d.Schema.GetFields() {
		null := "YES"
		if f.Required {
			null = "NO"
		}
		rows = append(rows, row{f.Name, plan.TypeText(f.Type), null, orNil(partitionText(d, f.Id)), orNil(f.Doc)})
	}
	return s.answer(j, []string{"column", "type", "null", "partition", "comment"}, rows)
}

// described resolves a name and describes the table.
func (s *Server) described(j *job, name sql.Name) (*target, *sinkv1.DescribeTableResponse, error) {
	t, err := s.resolveTable(name.Strings(), j, toRead)
	if err != nil {
		return nil, nil, err
	}
	d, err := s.describe(j.ctx, j, t)
	if other := s.respelt(j.ctx, t, err); other != nil {
		t = other
		d, err = s.describe(j.ctx, j, t)
	}
	return t, d, err
}

func (s *Server) showCreate(j *job, st *sql.ShowCreate) error {
	t, d, err := s.described(j, st.Table)
	if err != nil {
		return err
	}
	return s.answer(j, []string{"statement"}, []row{{plan.CreateText(t.String(), d)}})
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func partitionText(d *sinkv1.DescribeTableResponse, id int32) string {
	var out []string
	for _, p := range d.Partition {
		if p.SourceId == id {
			out = append(out, plan.TransformText(p.Transform, p.Param, columnName(d, id)))
		}
	}
	return strings.Join(out, ", ")
}

func columnName(d *sinkv1.DescribeTableResponse, id int32) string {
	if f := plan.FieldByID(d.Schema.GetFields(), id); f != nil {
		return sql.DisplayIdent(f.Name)
	}
	return "?"
}

func (s *Server) describe(ctx context.Context, j *job, t *target) (d *sinkv1.DescribeTableResponse, err error) {
	err = s.overCrashes(ctx, "DescribeTable", func() error {
		lease, sink, err := s.readLease(ctx, j.id, t)
		if err != nil {
			return err
		}
		defer lease.Close()
		if d, err = sink.DescribeTable(ctx, &sinkv1.DescribeTableRequest{Lease: lease.Token(), Table: t.ref()}); err != nil {
			return s.sinkFailure(ctx, t, err)
		}
		return nil
	})
	return d, err
}

// createdBy is what a statement does that makes a table.
func createdBy(st *sql.CreateTable) action {
	if st.Replace {
		return toCreate | toDrop
	}
	return toCreate
}

func (s *Server) createTable(j *job, st *sql.CreateTable) error {
	t, err := s.resolveTable(st.Table.Strings(), j, createdBy(st))
	if err != nil {
		return err
	}
	def, err := plan.Definition(st, nil)
	if err != nil {
		return planFailure(err)
	}
	if err := s.ensureSchema(j.ctx, t); err != nil {
		return err
	}
	s.warnOfTwin(j, t)
	var res *sinkv1.CreateTableResponse
	err = s.overCrashes(j.ctx, "CreateTable", func() error {
		lease, sink, err := s.lease(j.ctx, t, broker.LeaseSpec{JobID: j.id, AllowCreate: true})
		if err != nil {
			return err
		}
		defer lease.Close()
		if res, err = sink.CreateTable(j.ctx, &sinkv1.CreateTableRequest{Lease: lease.Token(), Table: t.ref(), Definition: def}); err != nil {
			return s.interrupted(j, s.sinkFailure(j.ctx, t, err))
		}
		return nil
	})
	if err != nil {
		var f *jobFailure
		if errors.As(err, &f) && f.Code == codeExists {
			if st.IfNotExists {
				return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("table %s exists already", t)}})
			}
			if j.again {
				j.did(auditCreate, t, perhaps)
				return fail(codeLost, "DESCRIBE shows what is there", "this statement was interrupted and begun again, and table %s exists now: made by it, or by another", t)
			}
			f.Hint = "CREATE TABLE IF NOT EXISTS does nothing then"
		}
		return err
	}
	j.warn(res.Warnings...)
	j.did(auditCreate, t)
	return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("created table %s", t)}})
}

// ensureSchema refuses a new table whose schema does not exist, and gives the schema's name the case that it has.
func (s *Server) ensureSchema(ctx context.Context, t *target) error {
	if t.isPlace() {
		return nil
	}
	n := len(t.ident) - 1
	found, err := s.findSchema(ctx, t.entry, t.ident[:n])
	switch {
	case err != nil:
		return err
	case found != nil:
		t.ident = append(slices.Clone(found), t.ident[n])
		return s.permit(t.who, t.entry, found, t.does, "table "+t.String())
	case t.entry.catalog == nil: // the directory is made with the table
		return nil
	}
	if n > 1 {
		return fail(codeNotFound, "SHOW SCHEMAS FROM "+sql.DisplayIdent(t.entry.name)+" lists what is there; nested schemas are made by other engines", "schema %s does not exist", sql.JoinName([]string{t.entry.name, schemaText(t.ident[:n])}))
	}
	name := sql.JoinName(append([]string{t.entry.name}, t.ident[:n]...))
	return fail(codeNotFound, "CREATE SCHEMA "+name+" makes it", "schema %s does not exist", name)
}

func (s *Server) dropTable(j *job, st *sql.DropTable) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toDrop)
	if err != nil {
		return err
	}
	if t.isPlace() {
		if _, err := uri.Below(t.entry.root, t.ident[0]); err != nil {
			return fail(codeUser, "remove it with the means of its store", "table %s: DROP TABLE removes the files of tables below the catalog's root, %s, only", t, t.entry.root)
		}
	}
	if t.entry.log != "" {
		switch existed, err := s.dropDirectory(j, t); {
		case err != nil:
			return s.interrupted(j, catalogError(err, "table "+t.String()))
		case existed:
			j.did(auditDrop, t)
			return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("dropped table %s and its files", t)}})
		case j.again:
			j.did(auditDrop, t, perhaps)
		case !st.IfExists:
			return s.noSuchTable(j.ctx, t)
		}
		return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("table %s does not exist", t)}})
	}
	err = s.overCrashes(j.ctx, "DropTable", func() error {
		lease, sink, err := s.lease(j.ctx, t, broker.LeaseSpec{JobID: j.id, AllowDrop: true})
		if err != nil {
			return err
		}
		defer lease.Close()
		if _, err := sink.DropTable(j.ctx, &sinkv1.DropTableRequest{Lease: lease.Token(), Table: t.ref()}); err != nil {
			return s.interrupted(j, s.sinkFailure(j.ctx, t, err))
		}
		return nil
	})
	if err != nil {
		var f *jobFailure
		if errors.As(err, &f) && f.Code == codeNotFound {
			if j.again {
				j.did(auditDrop, t, perhaps)
			}
			if st.IfExists || j.again {
				return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("table %s does not exist", t)}})
			}
			if t.entry.catalog != nil {
				return s.noSuchTable(j.ctx, t)
			}
		}
		return err
	}
	j.did(auditDrop, t)
	s.noteMaintenance(schedule.Dropped{Table: tableOf(t.entry.name, t.ident)})
	return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("dropped table %s; its files stay", t)}})
}
