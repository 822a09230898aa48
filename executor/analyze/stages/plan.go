package stages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// Query is a bound query over views of its sources.
type Query struct {
	SQL     string           // one SELECT
	Node    *ast.Object      // its tree; nil: it is parsed
	Columns []*planv1.Column // as DuckDB binds them
	Sources []Source
	// RowWise: the query may be run over any part of the rows of its only source, as DuckDB's plan shows.
	RowWise bool
	Why     string // why not
}

// Source is what a view of the query reads.
type Source struct {
	View    string
	Columns []*planv1.Column
	Bytes   int64
	Whole   string // why its rows cannot be shared among tasks; empty: they can
}

// Options change where stages are cut, never what they give.
type Options struct {
	// WholeBytes is the size up to which a task reads all of the smaller side of a join straight from its source. Larger sides are hashed. Negative: none.
	WholeBytes int64
}

// DefaultOptions suit queries over files: a megabyte is read faster than it is exchanged.
var DefaultOptions = Options{WholeBytes: 1 << 20}

// refusal is why a query is not staged; everything else that goes wrong is a defect.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func unstaged(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// Plan answers the query's stages. inst has the views of the sources bound; it is left with tables named signet_stage_N, and serves no other plan.
func Plan(ctx context.Context, inst *duckdb.Instance, q Query, o Options) (*executorv1.StagedQuery, error) {
	p := &planner{
		engine: engine{ctx: ctx, inst: inst, types: map[string]ast.Value{}}, query: q, opts: o,
		sources: map[string]*Source{}, typed: map[string]string{},
	}
	for i := range q.Sources {
		p.sources[q.Sources[i].View] = &q.Sources[i]
	}
	staged, err := p.plan()
	if err == nil {
		return staged, nil
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		return Single(q, r.why), nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return Single(q, "the planner failed on it: "+firstLine(err.Error())), nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// Single is the query as one task.
func Single(q Query, why string) *executorv1.StagedQuery {
	stage := &executorv1.QueryStage{Sql: q.SQL, Columns: q.Columns, Label: "query", Single: true}
	for _, s := range q.Sources {
		stage.Inputs = append(stage.Inputs, &executorv1.StageInput{View: s.View, Stage: -1})
	}
	return &executorv1.StagedQuery{Stages: []*executorv1.QueryStage{stage}, NotStaged: why}
}

// Longest is the length of a text up to which it is taken apart: each stage is written and read again.
const Longest = 256 << 10

// planner is the state of one Plan.
type planner struct {
	engine
	query   Query
	opts    Options
	sources map[string]*Source

	next    int
	typed   map[string]string // DuckDB's types of columns, by our names, as far as they are known
	nulls   bool              // the query's text has a NULL: some column may have no type
	subs    []*embedded
	stages  []*stage
	reasons []string // why something was not shared among tasks
}

// fresh makes a name that no other column has.
func (p *planner) fresh(name string) string {
	p.next++
	return fmt.Sprintf("%s#%d", plainName(name), p.next)
}

func (p *planner) plan() (*executorv1.StagedQuery, error) {
	node := p.query.Node
	if node == nil {
		var err error
		if node, err = p.parse(p.query.SQL); err != nil {
			return nil, err
		}
	}
	calls := volatileIn(node)
	if p.query.RowWise {
		return p.rowWise(calls)
	}
	if calls != "" {
		return nil, unstaged("it calls %s()", calls)
	}
	if len(p.query.SQL) > Longest {
		return nil, unstaged("its text is too long to be taken apart")
	}
	if err := unsupported(node); err != nil {
		return nil, err
	}
	p.nulls = mentionsNull(node)
	res, err := p.queryNode(node, nil, nil)
	if err != nil {
		return nil, err
	}
	return p.finish(res)
}

// rowWise is the query as it is, over shares of its source.
func (p *planner) rowWise(volatile string) (*executorv1.StagedQuery, error) {
	for _, c := range p.query.Columns {
		if !carriable(c.GetEngineType()) {
			return nil, unstaged("tasks cannot pass on column %s: its type is %s", c.GetName(), c.GetEngineType())
		}
	}
	out := Single(p.query, "")
	out.Stages[0].Label, out.Stages[0].Single, out.Stages[0].Repeatable = "scan", false, volatile == ""
	out.Stages[0].Inputs[0].Split = true
	return out, nil
}

// volatileIn names a function in the tree whose value is another each time.
func volatileIn(node ast.Value) string {
	found := ""
	ast.Visit(node, func(o *ast.Object) bool {
		name := o.Str("function_name")
		if name == "" && o.Str("class") == "COLUMN_REF" && len(o.List("column_names")) == 1 {
			if n, _ := columnOf(o); strings.HasPrefix(strings.ToLower(n), "current_") || strings.HasPrefix(strings.ToLower(n), "local") {
				name = n
			}
		}
		if found == "" && name != "" && isVolatile(name) {
			found = strings.ToLower(name)
		}
		return found == ""
	})
	return found
}

// mentionsNull reports a NULL constant, or a function that makes one of constants.
func mentionsNull(node ast.Value) bool {
	found := bytes.Contains(ast.Bytes(node), []byte(`"is_null":true`))
	ast.Visit(node, func(o *ast.Object) bool {
		found = found || o.Str("function_name") == "nullif"
		return !found
	})
	return found
}

// unsupported refuses what no part of the planner understands, wherever it stands.
func unsupported(node ast.Value) error {
	var err error
	ast.Visit(node, func(o *ast.Object) bool {
		switch {
		case err != nil:
		case !ast.IsNull(o.Get("sample")):
			err = unstaged("it takes a sample")
		case o.Str("type") == "RECURSIVE_CTE_NODE":
			err = unstaged("it has a recursive common table expression")
		case o.Str("class") == "COLLATE":
			err = unstaged("it uses COLLATE")
		case o.Str("class") == "COLUMN_REF" && slices.ContainsFunc(o.List("column_names"), func(n ast.Value) bool { return isID(ast.Text(n)) }):
			err = unstaged("a column's name ends as the planner's own do")
		case o.Str("class") == "WINDOW" && o.Str("function_name") == "":
			err = unstaged("it has an unknown window function")
		}
		return err == nil
	})
	return err
}
