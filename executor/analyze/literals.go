package analyze

import "github.com/signet-io/signet/executor/analyze/ast"

// literalColumns tells, by output column, whether every value is a string constant of the query's text (or NULL), and whether it is nothing but NULL.
// It knows VALUES lists, select lists, and set operations of them; a * of anything else ends what is known.
func literalColumns(node *ast.Object) (literal, null []bool) {
	cols := columnKinds(node)
	for _, c := range cols {
		literal = append(literal, c == kindString)
		null = append(null, c == kindNull)
	}
	return literal, null
}

type columnKind int

const (
	kindOther columnKind = iota
	kindString
	kindNull
)

func columnKinds(node *ast.Object) []columnKind {
	if node == nil {
		return nil
	}
	switch node.Str("type") {
	case "SET_OPERATION_NODE":
		l, r := columnKinds(node.Obj("left")), columnKinds(node.Obj("right"))
		out := make([]columnKind, min(len(l), len(r)))
		for i := range out {
			out[i] = both(l[i], r[i])
		}
		return out
	case "SELECT_NODE":
		return selectKinds(node)
	default:
		return nil
	}
}

func selectKinds(node *ast.Object) []columnKind {
	items := node.List("select_list")
	if len(items) == 1 && isPlainStar(items[0]) {
		return fromKinds(node.Obj("from_table"))
	}
	var out []columnKind
	for _, item := range items {
		if o, ok := item.(*ast.Object); ok && o.Str("class") == "STAR" {
			return out
		}
		out = append(out, kindOf(item))
	}
	return out
}

// fromKinds follows SELECT * FROM (VALUES ...), which is how VALUES parses, and SELECT * FROM (SELECT ...).
func fromKinds(from *ast.Object) []columnKind {
	if from == nil {
		return nil
	}
	switch from.Str("type") {
	case "EXPRESSION_LIST":
		return valuesKinds(from.List("values"))
	case "SUBQUERY":
		if sub := from.Obj("subquery"); sub != nil {
			return columnKinds(sub.Obj("node"))
		}
	}
	return nil
}

func valuesKinds(rows []ast.Value) []columnKind {
	var out []columnKind
	for n, row := range rows {
		a, ok := row.(*ast.Array)
		if !ok {
			return nil
		}
		for i, v := range a.Items {
			switch k := kindOf(v); {
			case n == 0:
				out = append(out, k)
			case i < len(out):
				out[i] = both(out[i], k)
			}
		}
	}
	return out
}

// valuesRows counts the rows of a plain VALUES statement; 0 for everything else.
func valuesRows(node *ast.Object) int {
	items := node.List("select_list")
	from := node.Obj("from_table")
	if from == nil || from.Str("type") != "EXPRESSION_LIST" || len(items) != 1 || !isPlainStar(items[0]) || len(node.List("modifiers")) > 0 {
		return 0
	}
	if !allConstant(flatten(from.List("values"))) {
		return 0
	}
	return len(from.List("values"))
}

func flatten(rows []ast.Value) []ast.Value {
	var out []ast.Value
	for _, r := range rows {
		if a, ok := r.(*ast.Array); ok {
			out = append(out, a.Items...)
		}
	}
	return out
}

func both(a, b columnKind) columnKind {
	switch {
	case a == b:
		return a
	case a == kindNull && b == kindString, a == kindString && b == kindNull:
		return kindString
	default:
		return kindOther
	}
}

func kindOf(v ast.Value) columnKind {
	isString, isNull, ok := ast.ConstantKind(v)
	switch {
	case !ok:
		return kindOther
	case isNull:
		return kindNull
	case isString:
		return kindString
	default:
		return kindOther
	}
}

func isPlainStar(v ast.Value) bool {
	o, ok := v.(*ast.Object)
	return ok && o.Str("class") == "STAR" && ast.IsNull(o.Get("expr")) && len(o.List("exclude_list")) == 0 && len(o.List("replace_list")) == 0 &&
		len(o.List("rename_list")) == 0 && len(o.List("qualified_exclude_list")) == 0
}
