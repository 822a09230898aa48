package stages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// engine has DuckDB write, parse and bind what the planner makes.
type engine struct {
	ctx   context.Context
	inst  *duckdb.Instance
	types map[string]ast.Value // type nodes by DuckDB's name of the type
}

func (e *engine) scalar(query, arg string) ([]byte, error) {
	var out []byte
	err := e.inst.Conn().QueryRowContext(e.ctx, query, arg).Scan(&out)
	return out, err
}

func (e *engine) parse(sql string) (*ast.Object, error) {
	data, err := e.scalar("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", sql)
	if err != nil {
		return nil, err
	}
	v, err := ast.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("DuckDB's parse tree: %w", err)
	}
	root, _ := v.(*ast.Object)
	if root == nil || len(root.List("statements")) != 1 {
		return nil, errors.New("DuckDB's parse tree has no statement")
	}
	stmt, _ := root.List("statements")[0].(*ast.Object)
	if stmt == nil || stmt.Obj("node") == nil {
		return nil, errors.New("DuckDB's parse tree has no query")
	}
	return stmt.Obj("node"), nil
}

// write is DuckDB's rendering of a tree, unchecked.
func (e *engine) write(node ast.Value) (string, error) {
	var b bytes.Buffer
	b.WriteString(`{"error":false,"statements":[{"node":`)
	b.Write(ast.Bytes(node))
	b.WriteString(`,"named_param_map":[]}]}`)
	out, err := e.scalar("SELECT json_deserialize_sql(CAST(? AS JSON))", b.String())
	return string(out), err
}

// render is DuckDB's rendering of a tree, which must parse to the tree again: it is not faithful in all (executor/analyze/splice.go).
func (e *engine) render(node *ast.Object) (string, error) {
	sql, err := e.write(node)
	if err != nil {
		return "", unstaged("DuckDB cannot write a part of it as text: %v", err)
	}
	again, err := e.parse(sql)
	if err != nil {
		return "", err
	}
	if !sameTree(node, again) {
		return "", unstaged("DuckDB cannot write a part of it as text")
	}
	return sql, nil
}

// name is what DuckDB calls a column of an expression that has no alias.
func (e *engine) name(expr ast.Value) (string, error) {
	if o, ok := expr.(*ast.Object); ok && o.Str("class") == "COLUMN_REF" {
		names := o.List("column_names")
		return ast.Text(names[len(names)-1]), nil
	}
	sql, err := e.write(selection{items: []ast.Value{expr}}.node())
	return strings.TrimPrefix(sql, "SELECT "), err
}

func (e *engine) describe(sql string) ([]*planv1.Column, error) {
	cols, err := e.inst.Describe(e.ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, sql)
	}
	return cols, nil
}

// typesOf binds a selection and answers the types of its items.
func (e *engine) typesOf(s selection) ([]string, error) {
	sql, err := e.write(s.node()) // the types of the stage itself are checked later
	if err != nil {
		return nil, err
	}
	cols, err := e.describe(sql)
	if err != nil {
		return nil, err
	}
	if len(cols) != len(s.items) {
		return nil, unstaged("one of its expressions gives several columns")
	}
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.GetEngineType()
	}
	return out, nil
}

// findNulls corrects the type of columns that are nothing but NULL and have none. Keys stay what they are: both sides of a join have keys of one type.
func (e *engine) findNulls(sql string, cols []*planv1.Column, keys []string) error {
	untyped, err := e.inst.Untyped(e.ctx, sql, cols)
	if err != nil {
		return err
	}
	for i, c := range cols {
		if untyped[i] && !slices.Contains(keys, c.GetName()) {
			c.EngineType = `"NULL"`
		}
	}
	return nil
}

// standIn stands for rows that are not there yet, so that what reads them can be bound, and planned as it will be when it runs: DuckDB would plan nothing
// over a view without rows. No table has a column without a type.
func (e *engine) standIn(name string, cols []*planv1.Column) error {
	items := make([]string, len(cols))
	body := "TABLE " + duckdb.Ident(name) + " ("
	untyped := slices.ContainsFunc(cols, func(c *planv1.Column) bool { return c.GetEngineType() == `"NULL"` })
	for i, c := range cols {
		items[i] = duckdb.Ident(c.GetName()) + " " + c.GetEngineType()
		if untyped {
			items[i] = "CAST(NULL AS " + c.GetEngineType() + ") AS " + duckdb.Ident(c.GetName())
		}
	}
	body += strings.Join(items, ", ") + ")"
	if untyped {
		body = "VIEW " + duckdb.Ident(name) + " AS SELECT " + strings.Join(items, ", ") + " WHERE false"
	}
	_, err := e.inst.Conn().ExecContext(e.ctx, "CREATE TEMP "+body)
	return err
}

// typeNode is a type as a cast in the tree has it.
func (e *engine) typeNode(name string) (ast.Value, error) {
	if n, ok := e.types[name]; ok {
		return n, nil
	}
	node, err := e.parse("SELECT CAST(NULL AS " + name + ")")
	if err != nil {
		return nil, err
	}
	item, _ := node.List("select_list")[0].(*ast.Object)
	if item == nil || item.Get("cast_type") == nil {
		return nil, fmt.Errorf("no type %s", name)
	}
	e.types[name] = item.Get("cast_type")
	return e.types[name], nil
}

func (e *engine) castTo(v ast.Value, typ string) (ast.Value, error) {
	t, err := e.typeNode(typ)
	if err != nil {
		return nil, err
	}
	return cast(v, t), nil
}

// exactConstant writes DOUBLE and FLOAT constants as casts of text: DuckDB's rendering makes decimals of them.
func exactConstant(r ast.Raw) ast.Value {
	if !bytes.Contains(r, []byte(`"id":"DOUBLE"`)) && !bytes.Contains(r, []byte(`"id":"FLOAT"`)) {
		return r
	}
	o := ast.Node(r)
	if o == nil || o.Obj("value") == nil || o.Obj("value").Obj("type") == nil {
		return r
	}
	typ := o.Obj("value").Obj("type").Str("id")
	num, _ := o.Obj("value").Get("value").(ast.Raw)
	if typ != "DOUBLE" && typ != "FLOAT" || num == nil {
		return r
	}
	if f, err := strconv.ParseFloat(string(num), 64); err == nil {
		num = ast.Raw(strconv.FormatFloat(f, 'g', -1, 64))
	}
	c := cast(text(string(num)), plainType(typ))
	c.Set("alias", o.Get("alias"))
	return c
}
