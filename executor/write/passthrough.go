package write

import (
	"context"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// passThrough finds the columns of the task's only source that its query hands on as they are, one for each column of the table. reason says why there are
// none: the query does more, or a value changes on its way. constants are the columns, by field id, that neither file has: partition columns of both tables. They
// have places among the source's constants.
func (p *plan) passThrough(ctx context.Context, inst *duckdb.Instance) (columns []splice.Column, constants map[int32]int, reason string, err error) {
	if reason := p.unspliceable(); reason != "" {
		return nil, nil, reason, nil
	}
	src := p.task.GetSources()[0]
	names, reason, err := selected(ctx, inst, p.task.GetSql(), src)
	if err != nil || reason != "" {
		return nil, nil, reason, err
	}
	if len(names) != p.inputs {
		return nil, nil, "the query's columns are not those of its source", nil
	}
	constants = map[int32]int{}
	for _, c := range p.columns {
		switch {
		case c.input < 0:
			return nil, nil, fmt.Sprintf("column %q gets its default", c.field.GetName()), nil
		case c.expr != fmt.Sprintf("i%d", c.input):
			return nil, nil, fmt.Sprintf("column %q is cast", c.field.GetName()), nil
		}
		col := splice.Column{Field: c.field, Name: c.alias, From: names[c.input], Omit: c.omit}
		if ts := src.GetTable(); ts != nil {
			var at int
			if col.ByID, at, reason = scanned(ts, names[c.input]); at >= 0 && c.omit && !isFloat(c.field.GetType().GetKind()) { // 0.0 and -0.0 are one partition
				constants[c.field.GetId()] = at
				continue
			}
			if reason != "" {
				return nil, nil, reason, nil
			}
		}
		columns = append(columns, col)
	}
	return columns, constants, "", nil
}

// unspliceable is what the task itself says against copying.
func (p *plan) unspliceable() string {
	w, sources := p.task.GetWrite(), p.task.GetSources()
	switch {
	case !w.GetSplice():
		return "it is switched off"
	case w.GetSpec().GetFiles().GetNoSplice():
		return "it is switched off for the table"
	case w.GetRowLineage():
		return "the rows keep their ids"
	case w.GetRewrite().GetChangesSql() != "" || w.GetRewrite().GetPositionsSql() != "":
		return "rows change"
	case p.sorted:
		return "the table has a sort order"
	case len(sources) != 1:
		return fmt.Sprintf("the query reads %d sources", len(sources))
	}
	switch src := sources[0]; {
	case src.GetTable() != nil:
		return ""
	case src.GetFile() == nil:
		return "its rows come from another stage"
	default:
		return optionsReason(src.GetFile())
	}
}

// optionsReason refuses options that may change what is read. Directory keys never hide a column of the file unless the user says so.
func optionsReason(fs *planv1.FileSource) string {
	if parquet, _ := duckdb.IsParquetReader(fs.GetFunction()); !parquet {
		return "the source is not Parquet"
	}
	for name, value := range fs.GetOptions() {
		switch lower := strings.ToLower(name); {
		case lower == "union_by_name":
		case lower == "hive_partitioning" && strings.EqualFold(value, "false"), lower == "hive_partitioning" && strings.EqualFold(value, "CAST('f' AS BOOLEAN)"):
		default:
			return "the source is read with option " + lower
		}
	}
	return ""
}

// scanned finds a column of a table scan. constant is its place among those that are constant for each file; -1: it is in the files. field is nil where
// it is found there by its name.
func scanned(ts *planv1.TableScan, name string) (field *planv1.Field, constant int, reason string) {
	for _, f := range ts.GetSchema().GetFields() {
		if !strings.EqualFold(f.GetName(), name) {
			continue
		}
		if at := slices.Index(ts.GetConstantIds(), f.GetId()); at >= 0 {
			return nil, at, fmt.Sprintf("column %q is not in the files but constant for each", name)
		}
		if ts.GetByName() {
			if len(ts.GetNames()) > 0 {
				return nil, -1, fmt.Sprintf("column %q has another name in the files", name)
			}
			return nil, -1, ""
		}
		return f, -1, ""
	}
	return nil, -1, fmt.Sprintf("column %q is not a column of the files", name)
}

// columnsOf are the names of a source's columns, in the order of SELECT *.
func columnsOf(src *planv1.Source) []string {
	var out []string
	for _, f := range src.GetTable().GetSchema().GetFields() {
		out = append(out, f.GetName())
	}
	for _, c := range src.GetFile().GetColumns() {
		out = append(out, c.GetName())
	}
	return out
}

// selected are the source's columns that a query gives, if it is SELECT over plain columns of that source and nothing else.
func selected(ctx context.Context, inst *duckdb.Instance, sql string, src *planv1.Source) (names []string, reason string, err error) {
	var text []byte
	if err := inst.Conn().QueryRowContext(ctx, "SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", sql).Scan(&text); err != nil {
		return nil, "", err
	}
	v, err := ast.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("DuckDB's parse tree: %w", err)
	}
	root, _ := v.(*ast.Object)
	if root == nil || len(root.List("statements")) != 1 {
		return nil, "the query is more than one SELECT", nil
	}
	st, _ := root.List("statements")[0].(*ast.Object)
	node := st.Obj("node")
	if node == nil {
		return nil, "the query is more than one SELECT", nil
	}
	if reason := plainSelect(node); reason != "" {
		return nil, reason, nil
	}
	from := node.Obj("from_table")
	if from.Str("type") != "BASE_TABLE" || !strings.EqualFold(from.Str("table_name"), src.GetView()) || from.Str("schema_name") != "" || !empty(from.Get("column_name_alias")) {
		return nil, "the query reads more than its source as it is", nil
	}
	known := columnsOf(src)
	for _, item := range node.List("select_list") {
		got, reason := selectedItem(item, from, known, src)
		if reason != "" {
			return nil, reason, nil
		}
		names = append(names, got...)
	}
	return names, "", nil
}

// clauses are the members of a SELECT that change its rows, with what they are called.
var clauses = []struct{ member, what string }{
	{"where_clause", "WHERE"},
	{"group_expressions", "GROUP BY"},
	{"group_sets", "GROUP BY"},
	{"having", "HAVING"},
	{"qualify", "QUALIFY"},
	{"sample", "a sample"},
	{"modifiers", "DISTINCT, ORDER BY or LIMIT"},
}

func plainSelect(node *ast.Object) string {
	if node.Str("type") != "SELECT_NODE" || node.Obj("from_table") == nil {
		return "the query is more than one SELECT"
	}
	for _, c := range clauses {
		if !empty(node.Get(c.member)) {
			return "the query has " + c.what
		}
	}
	if node.Str("aggregate_handling") != "STANDARD_HANDLING" || !empty(node.Obj("cte_map").Get("map")) || !empty(node.Obj("from_table").Get("sample")) ||
		!empty(node.Obj("from_table").Get("at_clause")) {
		return "the query is more than one SELECT"
	}
	return ""
}

// empty says that a member says nothing.
func empty(v ast.Value) bool {
	switch x := v.(type) {
	case nil:
		return true
	case *ast.Array:
		return len(x.Items) == 0
	case ast.Raw:
		return string(x) == "null" || string(x) == "false" || string(x) == `""`
	case *ast.Object:
		none := true
		_ = x.Each(func(_ string, v ast.Value) error { // the callback never fails
			none = none && empty(v)
			return nil
		})
		return none
	}
	return false
}

func selectedItem(item ast.Value, from *ast.Object, known []string, src *planv1.Source) ([]string, string) {
	o, ok := item.(*ast.Object)
	if !ok {
		return nil, "the query computes a column"
	}
	switch o.Str("class") {
	case "STAR":
		for _, member := range []string{"exclude_list", "replace_list", "columns", "expr", "qualified_exclude_list", "rename_list", "unpacked"} {
			if !empty(o.Get(member)) {
				return nil, "the query changes what * stands for"
			}
		}
		if src.GetTable().GetWithPositions() {
			return nil, "the query reads places of rows"
		}
		return known, ""
	case "COLUMN_REF":
		parts := o.List("column_names")
		if len(parts) == 2 && isSource(ast.Text(parts[0]), from) {
			parts = parts[1:]
		}
		if len(parts) == 1 {
			for _, name := range known {
				if strings.EqualFold(name, ast.Text(parts[0])) {
					return []string{name}, ""
				}
			}
		}
	}
	return nil, "the query computes a column"
}

// isSource says whether a name in front of a column is the source's.
func isSource(name string, from *ast.Object) bool {
	if alias := from.Str("alias"); alias != "" {
		return strings.EqualFold(name, alias)
	}
	return strings.EqualFold(name, from.Str("table_name"))
}
