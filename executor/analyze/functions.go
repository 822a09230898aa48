package analyze

import (
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// clock makes constants of the job's time. Micros 0 means that the time is unknown; then nothing is replaced.
type clock struct{ micros int64 }

// timeFunctions are DuckDB's readings of the clock, as functions or as bare names, with their types.
var timeFunctions = map[string]string{
	"now": "TIMESTAMP WITH TIME ZONE", "current_timestamp": "TIMESTAMP WITH TIME ZONE", "get_current_timestamp": "TIMESTAMP WITH TIME ZONE",
	"transaction_timestamp": "TIMESTAMP WITH TIME ZONE", "today": "DATE", "current_date": "DATE",
	"current_time": "TIME WITH TIME ZONE", "get_current_time": "TIME WITH TIME ZONE",
	"localtime": "TIME", "current_localtime": "TIME", "localtimestamp": "TIMESTAMP", "current_localtimestamp": "TIMESTAMP",
}

// bareTimeNames are those that SQL writes without parentheses.
var bareTimeNames = []string{"current_timestamp", "current_date", "current_time", "localtime", "localtimestamp"}

// refused are scalar functions that tell about the machine or the session rather than about data, or write somewhere.
var refused = []string{
	"getenv", "current_setting", "getvariable", "write_log", "current_query", "current_query_id", "current_connection_id", "current_transaction_id",
	"txid_current", "nextval", "currval", "sleep_ms",
}

var layouts = map[string]string{
	"TIMESTAMP WITH TIME ZONE": "2006-01-02 15:04:05.000000+00", "TIMESTAMP": "2006-01-02 15:04:05.000000", "DATE": "2006-01-02",
	"TIME": "15:04:05.000000", "TIME WITH TIME ZONE": "15:04:05.000000+00",
}

func (c clock) value(typ string) string { return time.UnixMicro(c.micros).UTC().Format(layouts[typ]) }

// text is the constant as SQL.
func (c clock) text(typ string) string {
	return "CAST(" + duckdb.Literal(c.value(typ)) + " AS " + typ + ")"
}

// constant is the same as a node, with the alias and place of the node that it replaces.
func (c clock) constant(typ string, at *ast.Object) *ast.Object {
	alias, where := ast.Value(ast.String("")), ast.Value(ast.Raw("0"))
	if at != nil {
		alias, where = at.Get("alias"), at.Get("query_location")
	}
	literal := ast.New("class", "CONSTANT", "type", "VALUE_CONSTANT", "alias", "", "query_location", where, "value",
		ast.New("type", typeNode("VARCHAR"), "is_null", ast.Raw("false"), "value", c.value(typ)))
	return ast.New("class", "CAST", "type", "OPERATOR_CAST", "alias", alias, "query_location", where, "child", literal,
		"cast_type", typeNode(typ), "try_cast", ast.Raw("false"))
}

func typeNode(id string) *ast.Object { return ast.New("id", id, "type_info", ast.Raw("null")) }

func (r *rewriter) function(o *ast.Object, sc *scope) error {
	name := strings.ToLower(o.Str("function_name"))
	if slices.Contains(refused, name) {
		return refuse("", "function %s is not allowed", o.Str("function_name"))
	}
	if name == "setseed" {
		r.seeded = true
	}
	args := o.List("children")
	if typ, ok := timeFunctions[name]; ok && len(args) == 0 && r.clock.micros != 0 {
		r.edit(editTime, o.Get("query_location"), 0, r.clock.text(typ))
		o.Replace(r.clock.constant(typ, o))
		return nil
	}
	if name == "age" && len(args) == 1 && r.clock.micros != 0 { // age(t) is the distance to today
		today := r.clock.constant("DATE", nil)
		cast := ast.New("class", "CAST", "type", "OPERATOR_CAST", "alias", "", "query_location", o.Get("query_location"), "child", today,
			"cast_type", typeNode("TIMESTAMP"), "try_cast", ast.Raw("false"))
		r.edit(editFirstArg, o.Get("query_location"), 0, "CAST("+r.clock.text("DATE")+" AS TIMESTAMP), ")
		o.Set("children", &ast.Array{Items: []ast.Value{cast, args[0]}})
	}
	return r.members(o, sc)
}

// columnRef replaces current_date and the like, which parse as columns, unless a column of that name exists.
func (r *rewriter) columnRef(o *ast.Object) {
	names := o.List("column_names")
	if len(names) > 1 {
		r.references = append(r.references, o)
		return
	}
	if len(names) == 0 || r.clock.micros == 0 {
		return
	}
	name := strings.ToLower(ast.Text(names[0]))
	if slices.Contains(bareTimeNames, name) && !r.columns[name] {
		r.edit(editTime, o.Get("query_location"), 0, r.clock.text(timeFunctions[name]))
		o.Replace(r.clock.constant(timeFunctions[name], o))
	}
}

// mentionsTime reports whether a node holds anything that may be replaced.
func mentionsTime(v ast.Value) bool {
	found := false
	visit(v, func(n *ast.Object) {
		name := strings.ToLower(n.Str("function_name"))
		_, isTime := timeFunctions[name]
		names := n.List("column_names")
		found = found || isTime || name == "age" || len(names) == 1 && slices.Contains(bareTimeNames, strings.ToLower(ast.Text(names[0])))
	})
	return found
}
