package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// sameTries bounds how often a table is looked at until what is read is what the write was prepared for.
const sameTries = 10

// errMoved: the table is another one than it was at the first look.
var errMoved = errors.New("the table has changed")

// rowRead is what a row-level statement reads.
type rowRead struct {
	target *planv1.Source   // the table that is changed: the files that may have rows which the statement is about
	beside []*planv1.Source // the rest, and the table once more where the statement names it again
	again  []string         // views of those that are the table
	// filters are what the conditions of the statement say about the rows that it needs, by view.
	filters map[string]*executorv1.SourceFilter
}

// prepareRowLevel asks the sink how the table is written and which of its files the statement is about, of one version and schema.
func (s *Server) prepareRowLevel(j *job, p *planned, r *plan.RowLevel) (*rowRead, error) {
	defer j.timed("scan", time.Now())
	for range sameTries {
		p.scope = nil
		if err := s.prepareInsert(j.ctx, j, p); err != nil {
			return nil, err
		}
		r.Table, r.Schema = p.target.String(), p.spec.GetSchema()
		if err := distinctColumns(p.target, r.Schema.GetFields()); err != nil {
			return nil, err
		}
		if err := s.positionNames(p.target, r.Schema); err != nil {
			return nil, err
		}
		read, err := s.readChanged(j, p, r)
		if errors.Is(err, errMoved) {
			continue
		}
		return read, err
	}
	return nil, fail(codeConflict, "run the statement again", "table %s changed each of the %d times that it was looked at", p.target, sameTries)
}

// readChanged resolves what the statement reads, and leaves out the files without a row for which its condition may be true. The condition is the scope of the
// write: what others add outside of it is no conflict.
func (s *Server) readChanged(j *job, p *planned, r *plan.RowLevel) (*rowRead, error) {
	changes, err := r.Changes()
	if err != nil {
		return nil, planFailure(err)
	}
	read, unresolved, err := s.readBeside(j, p, r, changes.SQL)
	if err != nil {
		return nil, err
	}
	if p.scope = read.scope(); p.scope != nil {
		first := p.spec
		if err := s.prepareInsert(j.ctx, j, p); err != nil {
			return nil, err
		}
		if p.spec.GetTableUuid() != first.GetTableUuid() || p.spec.GetBaseVersion() != first.GetBaseVersion() || !sameNames(p.spec.GetSchema(), first.GetSchema()) {
			return nil, errMoved
		}
	}
	scan, err := s.scanWritten(j.ctx, j, p, read.filterOf(plan.TargetView))
	if err != nil {
		return nil, err
	}
	if err := distinctFiles(p.target, scan.GetFiles()); err != nil {
		return nil, err
	}
	scan.WithPositions = true
	read.target = read.targetSource(p, scan)
	return read, s.pruneBeside(j, read, unresolved)
}

// scope is what rows of the table decide what the statement does; nil: all. The table that is read once more, in a subquery or as a source, counts.
func (r *rowRead) scope() *planv1.Scope {
	var terms []*planv1.Predicate
	for _, view := range append([]string{plan.TargetView}, r.again...) {
		f := r.filterOf(view)
		if f == nil {
			return nil
		}
		terms = append(terms, f)
	}
	return &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: plan.Or(terms...)}}
}

// readBeside resolves what the statement reads besides the rows that it changes, and asks what its conditions say about all of them.
func (s *Server) readBeside(j *job, p *planned, r *plan.RowLevel, text string) (*rowRead, []*executorv1.UnresolvedSource, error) {
	if s.pool.Connected() == 0 {
		j.waitsForExecutor()
	}
	read := &rowRead{}
	bare := read.targetSource(p, &planv1.TableScan{Schema: p.spec.GetSchema(), Table: p.target.String()})
	ask := func() (*executorv1.AnalyzeResult, error) {
		req := read.request(j, r, text)
		req.Filters, req.Sources = true, append([]*planv1.Source{bare}, bareSources(read.beside)...)
		return s.analyzeOnce(j.ctx, req)
	}
	res, err := ask()
	if err != nil {
		return nil, nil, err
	}
	unresolved := res.GetUnresolved()
	for _, u := range unresolved {
		src, err := s.resolveBeside(j, p, read, u)
		if err != nil {
			return nil, nil, err
		}
		read.beside = append(read.beside, src)
	}
	if len(unresolved) > 0 {
		if res, err = ask(); err != nil {
			return nil, nil, err
		}
	}
	read.filters = res.GetFilters()
	return read, unresolved, nil
}

// pruneBeside leaves out files of the tables that are read besides.
func (s *Server) pruneBeside(j *job, read *rowRead, unresolved []*executorv1.UnresolvedSource) error {
	for i, src := range read.beside {
		if filter := read.filterOf(src.GetView()); filter != nil && len(src.GetTable().GetFiles()) > fewScanned {
			if err := s.pruneScan(j.ctx, j, scanOf(unresolved[i]), filter, src); err != nil {
				return err
			}
		}
	}
	return nil
}

// filterOf is what the statement's conditions say about the rows that it needs of a source; nil: nothing.
func (r *rowRead) filterOf(view string) *planv1.Predicate {
	p := r.filters[view].GetPredicate()
	if p.GetKind() == nil || p.GetConstant() {
		return nil
	}
	return p
}

func (*rowRead) targetSource(p *planned, scan *planv1.TableScan) *planv1.Source {
	return &planv1.Source{View: plan.TargetView, Alias: p.target.String(), Kind: &planv1.Source_Table{Table: scan}}
}

// request is the analysis of the query that finds the changes.
func (*rowRead) request(j *job, r *plan.RowLevel, text string) *executorv1.Analyze {
	req := &executorv1.Analyze{
		RequestId: uuid.NewString(), Sql: text, NowMicros: j.rec.Submitted.UnixMicro(),
		Target: &executorv1.RowTarget{View: plan.TargetView, Alias: r.Alias()},
	}
	if !r.Aliased() {
		req.Target.Table = r.Name
	}
	return req
}

// resolveBeside resolves what the statement reads besides the rows that it changes. The table itself is read as it is before the statement.
func (s *Server) resolveBeside(j *job, p *planned, read *rowRead, u *executorv1.UnresolvedSource) (*planv1.Source, error) {
	if len(u.GetTable()) > 0 && u.GetVersion() == "" && u.AsOfMicros == nil {
		t, branch, err := s.resolveWritten(u.GetTable(), j, toRead)
		if err == nil && strings.EqualFold(t.String(), p.target.String()) && branch == p.branch {
			scan, err := s.scanWritten(j.ctx, j, p, nil)
			if err != nil {
				return nil, err
			}
			scan.RowLineage = false
			read.again = append(read.again, u.GetView())
			return &planv1.Source{View: u.GetView(), Alias: u.GetAlias(), Kind: &planv1.Source_Table{Table: scan}}, nil
		}
	}
	return s.resolveSource(j.ctx, j, u)
}

// scanWritten lists the files of the branch that is written, those without a row for which filter is true left out, at the version and schema that the write
// was prepared for. errMoved: it has another one by now.
func (s *Server) scanWritten(ctx context.Context, j *job, p *planned, filter *planv1.Predicate) (scan *planv1.TableScan, err error) {
	err = s.overCrashes(ctx, "PlanScan", func() (err error) {
		scan, err = s.planReadOnce(ctx, j, p.target, tableRead{ref: p.branch, filter: filter})
		return err
	})
	if err != nil {
		return nil, err
	}
	if scan.GetVersion() != p.spec.GetBaseVersion() || !sameNames(scan.GetSchema(), p.spec.GetSchema()) {
		return nil, errMoved
	}
	return scan, nil
}

// sameNames tells whether two schemas are the same for reading and writing.
func sameNames(a, b *planv1.Schema) bool {
	return slices.EqualFunc(a.GetFields(), b.GetFields(), func(x, y *planv1.Field) bool {
		return x.GetId() == y.GetId() && x.GetName() == y.GetName() && x.GetRequired() == y.GetRequired()
	})
}
