package stages

import (
	"slices"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
)

// Unrepeatable says why another run of a query over the same input may give other rows; empty: it gives the same. Unlike a stage's rows, whose order does not
// count, what a query does with the order of its input counts here.
func Unrepeatable(node ast.Value) string {
	if name := volatileIn(node); name != "" {
		return "it calls " + name + "()"
	}
	why := ""
	ast.Visit(node, func(o *ast.Object) bool {
		name := strings.ToLower(o.Str("function_name"))
		switch {
		case o.Str("type") == "LIMIT_MODIFIER" || o.Str("type") == "LIMIT_PERCENT_MODIFIER":
			why = "it has a LIMIT"
		case o.Str("type") == "DISTINCT_MODIFIER" && len(o.List("distinct_on_targets")) > 0:
			why = "it has a DISTINCT ON"
		case o.Str("class") == "WINDOW":
			why = "it has a window function"
		case !ast.IsNull(o.Get("sample")):
			why = "it takes a sample"
		case name != "" && slices.Contains(ordered, name):
			why = "it calls " + name + "(), which depends on the order of the rows"
		}
		return why == ""
	})
	return why
}

// PerRow says what in an expression is not of one row alone, outside of subqueries; empty: nothing.
func PerRow(expr ast.Value) string {
	why := ""
	ast.Visit(expr, func(o *ast.Object) bool {
		name := strings.ToLower(o.Str("function_name"))
		switch {
		case o.Str("class") == "SUBQUERY":
			return false
		case o.Str("class") == "WINDOW":
			why = "a window function"
		case name != "" && (isAggregate(name) || o.Get("distinct") != nil && string(ast.Bytes(o.Get("distinct"))) == "true"):
			why = "the aggregate " + name + "()"
		case o.Str("class") == "STAR":
			why = "*"
		case slices.Contains(manyRows, name):
			why = name + "(), which makes several rows of one,"
		}
		return why == ""
	})
	return why
}
