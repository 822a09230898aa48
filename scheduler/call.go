package scheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// argKind is what an argument of a procedure has to be.
type argKind int

const (
	argText argKind = iota + 1
	argInt
	argTime // a string, as a timestamp in UTC; or milliseconds since 1970
	argBool
	argInts
	argMap // of strings
)

// param is one parameter of a procedure.
type param struct {
	name     string
	kind     argKind
	required bool
}

// procedure is one that CALL runs. Names, parameters and results are those of Iceberg's Spark procedures, where they have it.
type procedure struct {
	params []param
	does   action // to its table
	run    func(s *Server, j *job, c *procedureCall) error
}

// procedures are what CALL knows, by name.
var procedures = map[string]procedure{}

func register(name string, does action, run func(*Server, *job, *procedureCall) error, params ...param) {
	procedures[name] = procedure{params: append([]param{{"table", argText, true}}, params...), does: does, run: run}
}

// procedureCall is a call whose arguments have been read: strings, int64, bool, time.Time or []int64. Absent and NULL ones are left out.
type procedureCall struct {
	name  string
	table *target
	args  map[string]any
}

func (c *procedureCall) text(name string) string {
	v, _ := c.args[name].(string)
	return v
}

func (c *procedureCall) flag(name string) bool {
	v, _ := c.args[name].(bool)
	return v
}

func (c *procedureCall) int(name string) (int64, bool) {
	v, ok := c.args[name].(int64)
	return v, ok
}

func (c *procedureCall) time(name string) (time.Time, bool) {
	v, ok := c.args[name].(time.Time)
	return v, ok
}

func (s *Server) callProcedure(j *job, st *sql.Call) error {
	p, ok := procedures[strings.ToLower(st.Procedure.Text)]
	if !ok {
		names := make([]string, 0, len(procedures))
		for name := range procedures {
			names = append(names, name)
		}
		slices.Sort(names)
		hint := "there are " + strings.Join(names, ", ")
		if near := sql.Suggest(st.Procedure.Text, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return fail(codeUser, hint, "there is no procedure system.%s", sql.DisplayIdent(st.Procedure.Text))
	}
	c := &procedureCall{name: strings.ToLower(st.Procedure.Text)}
	var err error
	if c.args, err = arguments(c.name, p.params, st.Args); err != nil {
		return err
	}
	name, err := sql.ParseTableName(c.text("table"))
	if err != nil {
		return fail(codeUser, "for example table => 'demo.t'", "%s: table %q is no table's name: %v", c.name, c.text("table"), firstLine(err))
	}
	parts := name.Strings()
	if st.Catalog != nil && len(parts) < 3 {
		if len(parts) == 1 && j.rec.DefaultSchema != "" {
			parts = append(strings.Split(j.rec.DefaultSchema, "."), parts...)
		}
		parts = append([]string{st.Catalog.Text}, parts...)
	}
	if c.table, err = s.resolveTable(parts, j, p.does); err != nil {
		return err
	}
	if c.table, err = s.existingTable(j, c.table); err != nil {
		return err
	}
	j.calls = c.name
	return p.run(s, j, c)
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// existingTable is the table, or the one that its name means but for case.
func (s *Server) existingTable(j *job, t *target) (*target, error) {
	var err error
	if t.entry.catalog == nil {
		_, err = s.describe(j.ctx, j, t)
	} else {
		_, err = t.entry.catalog.Load(j.ctx, t.ident)
		err = catalogError(err, "table "+t.String())
	}
	if err == nil {
		return t, nil
	}
	if other := s.respelt(j.ctx, t, err); other != nil {
		return other, nil
	}
	if t.entry.catalog != nil && failed(err, codeNotFound) {
		return nil, s.noSuchTable(j.ctx, t)
	}
	return nil, err
}

// ofSnapshots makes a procedure one for tables whose metadata a catalog has: what it reads there, tables of storage sinks do not have.
func ofSnapshots(run func(*Server, *job, *procedureCall) error) func(*Server, *job, *procedureCall) error {
	return func(s *Server, j *job, c *procedureCall) error {
		if c.table.entry.catalog == nil {
			return fail(codeUser, "DESCRIBE HISTORY "+c.table.String()+" lists its versions, and SELECT … FROM t VERSION AS OF n reads one",
				"%s is about Iceberg's snapshots, branches and manifests: table %s is one of sink %s and has none", c.name, c.table, c.table.entry.sink)
		}
		return run(s, j, c)
	}
}

func (c *procedureCall) options(name string) map[string]string {
	v, _ := c.args[name].(map[string]string)
	return v
}

// arguments puts values to their parameters.
func arguments(procedure string, params []param, given []sql.Arg) (map[string]any, error) {
	out := map[string]any{}
	bad := func(format string, args ...any) error {
		return fail(codeUser, signature(procedure, params), "%s: %s", procedure, fmt.Sprintf(format, args...))
	}
	seen := map[string]bool{}
	for i, a := range given {
		at := i
		if a.Name != nil {
			at = slices.IndexFunc(params, func(p param) bool { return strings.EqualFold(p.name, a.Name.Text) })
			if at < 0 {
				return nil, bad("there is no argument %s", a.Name.Text)
			}
		}
		if at >= len(params) {
			return nil, bad("it takes %d arguments", len(params))
		}
		p := params[at]
		if seen[p.name] {
			return nil, bad("the argument %s is given twice", p.name)
		}
		seen[p.name] = true
		v, err := argument(p, a.Value)
		if err != nil {
			return nil, bad("argument %s: %v", p.name, err)
		}
		if v != nil {
			out[p.name] = v
		}
	}
	for _, p := range params {
		if _, ok := out[p.name]; !ok && p.required {
			return nil, bad("the argument %s is missing", p.name)
		}
	}
	return out, nil
}

func signature(procedure string, params []param) string {
	parts := make([]string, len(params))
	kinds := map[argKind]string{argText: "'…'", argInt: "n", argTime: "TIMESTAMP '…'", argBool: "true", argInts: "ARRAY[…]", argMap: "MAP('…', '…')"}
	for i, p := range params {
		parts[i] = p.name + " => " + kinds[p.kind]
	}
	return "CALL system." + procedure + "(" + strings.Join(parts, ", ") + ")"
}

func argument(p param, l sql.Constant) (any, error) {
	if l.IsMap {
		if p.kind != argMap {
			return nil, fmt.Errorf("it is no map")
		}
		return optionsOf(l)
	}
	if l.IsList {
		if p.kind != argInts {
			return nil, fmt.Errorf("it is one value, not an array")
		}
		ids := make([]int64, 0, len(l.Items))
		for _, it := range l.Items {
			n, ok := it.Value.GetKind().(*planv1.Value_Integer)
			if !ok {
				return nil, fmt.Errorf("its items are whole numbers")
			}
			ids = append(ids, n.Integer)
		}
		return ids, nil
	}
	switch v := l.Value.GetKind().(type) {
	case nil:
		return nil, nil
	case *planv1.Value_String_:
		switch p.kind {
		case argText:
			return v.String_, nil
		case argTime:
			return parseTime(v.String_)
		}
	case *planv1.Value_Integer:
		switch p.kind {
		case argInt:
			return v.Integer, nil
		case argText:
			return strconv.FormatInt(v.Integer, 10), nil
		case argTime:
			return time.UnixMilli(v.Integer), nil
		}
	case *planv1.Value_Boolean:
		if p.kind == argBool {
			return v.Boolean, nil
		}
	}
	wants := map[argKind]string{
		argText: "a string", argInt: "a whole number", argTime: "a timestamp, or milliseconds since 1970", argBool: "true or false", argInts: "an array of whole numbers",
		argMap: "a map of strings, for example MAP('rewrite-all', 'true')",
	}
	return nil, fmt.Errorf("it is %s", wants[p.kind])
}

// optionsOf reads a map whose keys are strings, and whose values are strings, numbers or booleans.
func optionsOf(l sql.Constant) (map[string]string, error) {
	out := map[string]string{}
	for i := 0; i < len(l.Items); i += 2 {
		key, ok := l.Items[i].Value.GetKind().(*planv1.Value_String_)
		if !ok {
			return nil, fmt.Errorf("keys of a map are strings")
		}
		if _, twice := out[key.String_]; twice {
			return nil, fmt.Errorf("the key %q is there twice", key.String_)
		}
		switch v := l.Items[i+1].Value.GetKind().(type) {
		case *planv1.Value_String_:
			out[key.String_] = v.String_
		case *planv1.Value_Integer:
			out[key.String_] = strconv.FormatInt(v.Integer, 10)
		case *planv1.Value_Boolean:
			out[key.String_] = strconv.FormatBool(v.Boolean)
		default:
			return nil, fmt.Errorf("the value of %q is a string, a whole number, true or false", key.String_)
		}
	}
	return out, nil
}

// timeLayouts are how timestamps are written, in UTC where they name no zone.
var timeLayouts = []string{
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02",
}

func parseTime(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	if len(text) > 10 && text[10] == 'T' {
		text = text[:10] + " " + text[11:]
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no timestamp: write 2026-01-31 23:59:59, which is UTC, or 2026-01-31 23:59:59+02:00", text)
}
