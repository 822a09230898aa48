package analyze

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// queryNode is the root of a parsed statement.
type queryNode = *ast.Object

func refuse(hint, format string, args ...any) error {
	return &duckdb.UserError{Message: fmt.Sprintf(format, args...), Hint: hint}
}

func newRewriter(nowMicros int64) *rewriter {
	return &rewriter{byKey: map[string]*source{}, aliases: map[string]bool{}, columns: map[string]bool{}, clock: clock{nowMicros}}
}

func (r *rewriter) hide(column string) { r.columns[strings.ToLower(column)] = true }

// scalarQuery runs a query of ours that answers one text.
func (a *analysis) scalarQuery(query, arg string) ([]byte, error) {
	var out []byte
	err := a.inst.Conn().QueryRowContext(a.ctx, query, arg).Scan(&out)
	return out, err
}

// parse checks that the text is one SELECT and answers its tree.
func (a *analysis) parse(sql string) (queryNode, error) {
	text, err := a.scalarQuery("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", sql)
	if err != nil {
		return nil, err
	}
	v, err := ast.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("DuckDB's parse tree: %w", err)
	}
	root, ok := v.(*ast.Object)
	if !ok {
		return nil, fmt.Errorf("DuckDB's parse tree is no object")
	}
	if msg := root.Str("error_message"); msg != "" {
		return nil, parseError(root, msg, sql)
	}
	switch stmts := root.List("statements"); len(stmts) {
	case 0:
		return nil, refuse("write a SELECT or VALUES", "the statement is empty")
	case 1:
		if s, ok := stmts[0].(*ast.Object); ok && s.Obj("node") != nil {
			if len(s.List("named_param_map")) > 0 && !a.req.GetParameters() {
				return nil, refuse("write the values out", "the statement has parameters, but no values came with it")
			}
			return s.Obj("node"), nil
		}
		return nil, fmt.Errorf("DuckDB's parse tree has no query")
	default:
		return nil, refuse("send them one by one", "want one statement, found %d", len(stmts))
	}
}

func parseError(root *ast.Object, msg, sql string) error {
	if root.Str("error_type") == "not implemented" {
		hint := "only SELECT and VALUES can be a query"
		if strings.Contains(strings.ToUpper(sql), "PIVOT") { // DuckDB makes several statements of one that finds its values itself
			hint = "PIVOT needs its values named: SELECT * FROM (PIVOT t ON c IN ('a', 'b') USING ...)"
		}
		return refuse(hint, "want a SELECT or VALUES statement")
	}
	if pos, err := strconv.Atoi(root.Str("position")); err == nil && pos >= 0 && pos <= len(sql) {
		line := strings.Count(sql[:pos], "\n") + 1
		col := pos - strings.LastIndexByte(sql[:pos], '\n')
		return refuse("", "%s (line %d, column %d)", msg, line, col)
	}
	return refuse("", "%s", msg)
}

// sqlOf is DuckDB's rendering of a tree.
func (a *analysis) sqlOf(node queryNode) (string, error) {
	var b bytes.Buffer
	b.WriteString(`{"error":false,"statements":[{"node":`)
	b.Write(ast.Bytes(node))
	b.WriteString(`,"named_param_map":[]}]}`)
	text, err := a.scalarQuery("SELECT json_deserialize_sql(CAST(? AS JSON))", b.String())
	return string(text), err
}

// expressionText is DuckDB's rendering of an expression, which is also the name it gives a column of it.
func (a *analysis) expressionText(expr ast.Value) (string, error) {
	node := ast.New("type", "SELECT_NODE", "modifiers", &ast.Array{}, "cte_map", ast.New("map", &ast.Array{}),
		"select_list", &ast.Array{Items: []ast.Value{withoutAlias(expr)}},
		"from_table", ast.New("type", "EMPTY", "alias", "", "sample", ast.Raw("null"), "query_location", ast.Raw("0")),
		"where_clause", ast.Raw("null"), "group_expressions", &ast.Array{}, "group_sets", &ast.Array{},
		"aggregate_handling", "STANDARD_HANDLING", "having", ast.Raw("null"), "sample", ast.Raw("null"), "qualify", ast.Raw("null"))
	text, err := a.sqlOf(node)
	return strings.TrimPrefix(text, "SELECT "), err
}

// withoutAlias drops the name of a named argument (name := value).
func withoutAlias(expr ast.Value) ast.Value {
	if ast.Alias(expr) == "" {
		return expr
	}
	o, ok := expr.(*ast.Object)
	if !ok {
		return ast.Unname(expr)
	}
	c := ast.New()
	_ = o.Each(func(k string, v ast.Value) error { // the callback never fails
		c.Set(k, v)
		return nil
	})
	c.Set("alias", ast.String(""))
	return c
}
