package stages

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// The nodes below have the members that DuckDB's parser gives them, in its order: what a stage's text parses to is compared with the tree it was made of.

var (
	null  = ast.Raw("null")
	no    = ast.Raw("false")
	yes   = ast.Raw("true")
	place = ast.Raw("0") // query_location; left out of comparisons
)

func list(items ...ast.Value) *ast.Array { return &ast.Array{Items: items} }

func texts(names ...string) *ast.Array {
	a := &ast.Array{}
	for _, n := range names {
		a.Items = append(a.Items, ast.String(n))
	}
	return a
}

// column refers to a column by its name alone.
func column(name string) *ast.Object {
	return ast.New("class", "COLUMN_REF", "type", "COLUMN_REF", "alias", "", "query_location", place, "column_names", texts(name))
}

// columnOf answers the name of a plain reference.
func columnOf(v ast.Value) (string, bool) {
	o, ok := v.(*ast.Object)
	if !ok || o.Str("class") != "COLUMN_REF" || len(o.List("column_names")) != 1 {
		return "", false
	}
	return ast.Text(o.List("column_names")[0]), true
}

func call(name string, args ...ast.Value) *ast.Object {
	return ast.New("class", "FUNCTION", "type", "FUNCTION", "alias", "", "query_location", place, "function_name", name, "schema", "",
		"children", list(args...), "filter", null, "order_bys", orderModifier(list()), "distinct", no, "is_operator", no, "export_state", no, "catalog", "")
}

func operator(name string, left, right ast.Value) *ast.Object {
	o := call(name, left, right)
	o.Set("is_operator", yes)
	return o
}

func integer(n int64) ast.Value {
	return constantOf("INTEGER", ast.Raw(strconv.FormatInt(n, 10)))
}

func text(s string) ast.Value { return constantOf("VARCHAR", ast.String(s)) }

// constantOf makes the bytes that ast keeps of a constant.
func constantOf(typ string, value ast.Value) ast.Value {
	return ast.Raw(ast.Bytes(ast.New("class", "CONSTANT", "type", "VALUE_CONSTANT", "alias", "", "query_location", place, "value",
		ast.New("type", plainType(typ), "is_null", no, "value", value))))
}

func plainType(id string) *ast.Object { return ast.New("id", id, "type_info", null) }

func cast(child ast.Value, typ ast.Value) *ast.Object {
	return ast.New("class", "CAST", "type", "OPERATOR_CAST", "alias", "", "query_location", place, "child", child, "cast_type", typ, "try_cast", no)
}

func isTrue() ast.Value { return cast(text("t"), plainType("BOOLEAN")) }

func equals(left, right ast.Value) *ast.Object {
	return ast.New("class", "COMPARISON", "type", "COMPARE_EQUAL", "alias", "", "query_location", place, "left", left, "right", right)
}

func coalesce(items ...ast.Value) *ast.Object {
	return ast.New("class", "OPERATOR", "type", "OPERATOR_COALESCE", "alias", "", "query_location", place, "children", list(items...))
}

func caseWhen(when, then ast.Value) *ast.Object {
	return ast.New("class", "CASE", "type", "CASE_EXPR", "alias", "", "query_location", place,
		"case_checks", list(ast.New("when_expr", when, "then_expr", then)), "else_expr", nullConstant())
}

func nullConstant() ast.Value {
	return ast.Raw(ast.Bytes(ast.New("class", "CONSTANT", "type", "VALUE_CONSTANT", "alias", "", "query_location", place, "value",
		ast.New("type", plainType("NULL"), "is_null", yes))))
}

// and joins conditions; true if there are none.
func and(conds []ast.Value) ast.Value {
	switch len(conds) {
	case 0:
		return isTrue()
	case 1:
		return conds[0]
	}
	return ast.New("class", "CONJUNCTION", "type", "CONJUNCTION_AND", "alias", "", "query_location", place, "children", list(conds...))
}

func orderModifier(orders ast.Value) *ast.Object {
	return ast.New("type", "ORDER_MODIFIER", "orders", orders)
}

// named gives a select list item its name.
func named(expr ast.Value, name string) ast.Value {
	o, ok := expr.(*ast.Object)
	if !ok {
		return ast.Named(expr, name)
	}
	c, _ := ast.Clone(o).(*ast.Object) // a clone has its original's type
	c.Set("alias", ast.String(name))
	return c
}

// selection is a SELECT in the making.
type selection struct {
	items     []ast.Value
	from      ast.Value
	where     []ast.Value
	groups    int       // GROUP BY the first items, by ordinal
	sets      ast.Value // GROUPING SETS; nil: one set of all
	modifiers []ast.Value
}

func (s selection) node() *ast.Object {
	where := ast.Value(null)
	if len(s.where) > 0 {
		where = and(s.where)
	}
	groups, sets := list(), ast.Value(list())
	if s.groups > 0 {
		all := list()
		for i := range s.groups {
			groups.Items = append(groups.Items, integer(int64(i+1)))
			all.Items = append(all.Items, ast.Raw(strconv.Itoa(i)))
		}
		sets = list(all)
		if s.sets != nil {
			sets = s.sets
		}
	}
	from := s.from
	if from == nil {
		from = ast.New("type", "EMPTY", "alias", "", "sample", null, "query_location", place)
	}
	return ast.New("type", "SELECT_NODE", "modifiers", list(s.modifiers...), "cte_map", ast.New("map", list()), "select_list", list(s.items...),
		"from_table", from, "where_clause", where, "group_expressions", groups, "group_sets", sets, "aggregate_handling", "STANDARD_HANDLING",
		"having", null, "sample", null, "qualify", null)
}

func setOperation(op string, all bool, left, right ast.Value) *ast.Object {
	flag := no
	if all {
		flag = yes
	}
	return ast.New("type", "SET_OPERATION_NODE", "modifiers", list(), "cte_map", ast.New("map", list()), "setop_type", op, "left", left, "right", right,
		"setop_all", flag)
}

func table(name string) *ast.Object {
	return ast.New("type", "BASE_TABLE", "alias", "", "sample", null, "query_location", place, "schema_name", "", "table_name", name,
		"column_name_alias", list(), "catalog_name", "", "at_clause", null)
}

func derived(node ast.Value) *ast.Object {
	return ast.New("type", "SUBQUERY", "alias", "", "sample", null, "query_location", place,
		"subquery", ast.New("node", node, "named_param_map", list()), "column_name_alias", list())
}

func joined(kind string, left, right, cond ast.Value) *ast.Object {
	return ast.New("type", "JOIN", "alias", "", "sample", null, "query_location", place, "left", left, "right", right, "condition", cond,
		"join_type", kind, "ref_type", "REGULAR", "using_columns", list(), "delim_flipped", no, "duplicate_eliminated_columns", list())
}

var locations = regexp.MustCompile(`"query_location":\d+`)

// form is a tree as text, without places and without its own alias, for comparison.
func form(v ast.Value) string {
	if o, ok := v.(*ast.Object); ok && o.Str("alias") != "" && o.Get("class") != nil {
		v = named(o, "")
	}
	return string(locations.ReplaceAllLiteral(ast.Bytes(v), nil))
}

func sameTree(a, b ast.Value) bool {
	return bytes.Equal(canonical(a), canonical(b))
}

// canonical is a tree without places, and without the SELECT * that each rendering of VALUES adds around it.
func canonical(v ast.Value) []byte {
	data := ast.Bytes(v)
	if bytes.Contains(data, []byte(`"EXPRESSION_LIST"`)) {
		data = ast.Bytes(rewrite(v, func(o *ast.Object) ast.Value {
			if inner := bareValues(o); inner != nil {
				return inner
			}
			return nil
		}))
	}
	return locations.ReplaceAllLiteral(data, nil)
}

// bareValues answers the VALUES list that a table is, under however many SELECT *.
func bareValues(o *ast.Object) *ast.Object {
	if o == nil || o.Str("type") == "EXPRESSION_LIST" {
		return o
	}
	if o.Str("type") != "SUBQUERY" || o.Obj("subquery") == nil || len(o.List("column_name_alias")) > 0 {
		return nil
	}
	node := o.Obj("subquery").Obj("node")
	if node == nil || node.Str("type") != "SELECT_NODE" || len(node.List("select_list")) != 1 || !ast.IsNull(node.Get("where_clause")) || len(node.List("modifiers")) > 0 {
		return nil
	}
	if item, ok := node.List("select_list")[0].(*ast.Object); !ok || item.Str("class") != "STAR" || !ast.IsNull(item.Get("expr")) {
		return nil
	}
	if from := node.Obj("from_table"); from != nil {
		return bareValues(from)
	}
	return nil
}

// rewrite is ast.Rewrite for callbacks that never fail.
func rewrite(v ast.Value, f func(*ast.Object) ast.Value) ast.Value {
	out, _ := ast.Rewrite(v, func(o *ast.Object) (ast.Value, error) { return f(o), nil }, nil)
	return out
}

// ordinal answers the number of an integer constant. Decimals are no ordinals.
func ordinal(v ast.Value) (int, bool) {
	o := ast.Node(v)
	if o == nil || o.Obj("value") == nil || o.Obj("value").Obj("type") == nil || o.Obj("value").Obj("type").Str("id") != "INTEGER" {
		return 0, false
	}
	s := string(ast.Bytes(o.Obj("value").Get("value")))
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
