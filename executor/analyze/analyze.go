package analyze

import (
	"context"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/stages"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/internal/fault"
)

// Analyze answers a request; whatever goes wrong is in AnalyzeResult.Error.
func Analyze(ctx context.Context, pool *duckdb.Pool, req *executorv1.Analyze) *executorv1.AnalyzeResult {
	out := &executorv1.AnalyzeResult{RequestId: req.GetRequestId()}
	if err := analyze(ctx, pool, req, out); err != nil {
		return &executorv1.AnalyzeResult{RequestId: req.GetRequestId(), Error: err}
	}
	return out
}

func analyze(ctx context.Context, pool *duckdb.Pool, req *executorv1.Analyze, out *executorv1.AnalyzeResult) *planv1.Error {
	if err := fault.Hit("executor.analyze.before-open"); err != nil {
		return duckdb.PlanError(err)
	}
	inst, done, err := borrow(ctx, pool, req)
	if err != nil {
		return duckdb.PlanError(err)
	}
	a := &analysis{ctx: ctx, inst: inst, req: req, out: out}
	perr := inst.PlanError(a.run())
	done(perr == nil || perr.GetClass() == planv1.ErrorClass_ERROR_CLASS_USER)
	return perr
}

// borrow gets an instance that sees the sources and nothing else.
func borrow(ctx context.Context, pool *duckdb.Pool, req *executorv1.Analyze) (inst *duckdb.Instance, done func(healthy bool), err error) {
	if len(req.GetSources()) == 0 || req.GetFilters() {
		return pool.Bare(ctx)
	}
	inst, err = pool.Open(ctx, duckdb.Access{ReadFiles: duckdb.FilesOf(req.GetSources()), Threads: 1, KeepOrder: true, NoDeletes: true})
	return inst, func(bool) { pool.Discard(inst) }, err
}

// analysis is the state of one request.
type analysis struct {
	ctx  context.Context
	inst *duckdb.Instance
	req  *executorv1.Analyze
	out  *executorv1.AnalyzeResult

	text     string // of the request, without what DuckDB does not know
	rewriter *rewriter
	node     queryNode // the rewritten statement
	reads    bool      // its plan reads rows
	literals []bool    // by output column: string_literal
	nulls    []bool    // by output column: nothing but NULL
	values   int       // rows, if the statement is a VALUES list and nothing else
}

func (a *analysis) run() error {
	var err error
	var at map[int]travel
	if a.text, at, err = cutTravel(a.req.GetSql()); err != nil {
		return err
	}
	node, err := a.parse(a.text)
	if err != nil {
		return err
	}
	a.literals, a.nulls = literalColumns(node)
	a.values = valuesRows(node)
	a.rewriter = newRewriter(a.req.GetNowMicros())
	a.rewriter.travels = at
	if a.req.GetBindOnly() {
		a.rewriter.given = viewsOf(a.req.GetSources())
	}
	a.target()
	if err := a.checkTarget(node); err != nil {
		return err
	}
	pending, err := a.resolve(node)
	if err != nil || pending {
		return err
	}
	if err := a.filters(node); err != nil || a.req.GetFilters() {
		return err
	}
	if a.out.Sql, err = a.rewritten(node); err != nil {
		return err
	}
	if a.req.GetParameters() {
		a.out.Parameters, err = a.inst.Parameters(a.ctx, a.out.GetSql())
		return err
	}
	a.node = node
	if a.out.Unrepeatable = stages.Unrepeatable(node); a.out.GetUnrepeatable() == "" && a.rewriter.seeded {
		a.out.Unrepeatable = "it calls setseed()"
	}
	return a.bind()
}

// resolve rewrites the statement and binds its sources. pending: some are not known yet, and the result says which.
func (a *analysis) resolve(node queryNode) (pending bool, err error) {
	if a.req.GetFilters() {
		a.hideTableColumns()
	} else if err := a.bindSources(); err != nil {
		return false, err
	}
	for _, s := range a.out.GetStats() {
		for _, c := range s.GetColumns() {
			a.rewriter.hide(c.GetName())
		}
	}
	if err := a.rewriter.statement(node); err != nil {
		return false, err
	}
	for range a.rewriter.travels { // what is left stands behind something else than a table
		return false, refuse(travelHint, "a version or a time is given for something that is not a table")
	}
	if a.req.GetBindOnly() && len(a.rewriter.sources) > 0 {
		return false, refuse("name it as an input, and read it by the name of its view", "%s is none of the inputs of this task", a.rewriter.sources[0].alias)
	}
	known := map[string]bool{}
	for _, s := range a.req.GetSources() {
		known[s.GetView()] = true
	}
	for _, s := range a.rewriter.sources {
		if known[s.view] {
			continue
		}
		u, err := a.unresolved(s)
		if err != nil {
			return false, err
		}
		a.out.Unresolved = append(a.out.Unresolved, u)
	}
	if len(a.out.GetUnresolved()) > 0 {
		a.out.Stats = nil
		return true, nil
	}
	return false, nil
}

// hideTableColumns does what bound sources do, for those that are not bound.
func (a *analysis) hideTableColumns() {
	for _, s := range a.req.GetSources() {
		for _, f := range s.GetTable().GetSchema().GetFields() {
			a.rewriter.hide(f.GetName())
		}
	}
}

// viewsOf are names that a query of which all inputs are given may read as they are: the views of a task of a physical plan, in lower case.
func viewsOf(sources []*planv1.Source) map[string]bool {
	out := map[string]bool{}
	for _, s := range sources {
		out[strings.ToLower(s.GetView())] = true
	}
	return out
}

func (a *analysis) unresolved(s *source) (*executorv1.UnresolvedSource, error) {
	u := &executorv1.UnresolvedSource{View: s.view, Alias: s.alias, Table: s.table, Path: s.path, Function: s.function, Paths: s.paths, Version: s.travel.version}
	if s.travel.time != "" {
		micros, err := a.travelMicros(s.travel)
		if err != nil {
			return nil, err
		}
		u.AsOfMicros = &micros
	}
	for _, opt := range s.options {
		text, err := a.expressionText(opt.expr)
		if err != nil {
			return nil, err
		}
		if u.Options == nil {
			u.Options = map[string]string{}
		}
		u.Options[opt.name] = text
	}
	return u, nil
}

// bind binds the rewritten query and fills in the rest of the answer.
func (a *analysis) bind() error {
	cols, err := a.inst.Describe(a.ctx, a.out.GetSql())
	if err != nil {
		return err
	}
	untyped := make([]bool, len(cols))
	if strings.Contains(strings.ToLower(a.out.GetSql()), "null") { // else there is none, and the query need not be bound once more
		if untyped, err = a.inst.Untyped(a.ctx, a.out.GetSql(), cols); err != nil {
			return err
		}
	}
	bound := make([]*planv1.Column, len(cols)) // as DuckDB has them, whatever is said of literals
	for i, c := range cols {
		bound[i] = &planv1.Column{Name: c.GetName(), Type: c.GetType(), EngineType: c.GetEngineType()}
		if i < len(a.literals) && a.literals[i] {
			c.StringLiteral = true
		}
		if i < len(a.nulls) && a.nulls[i] || untyped[i] { // an untyped NULL goes into a column of any type
			c.StringLiteral, c.EngineType = true, `"NULL"`
			c.Type = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}
		}
	}
	a.out.Columns = cols
	if err := a.explain(); err != nil {
		return err
	}
	if a.req.GetTarget() != nil { // its tasks are divided by the files of the target
		return nil
	}
	return a.stage(bound)
}
