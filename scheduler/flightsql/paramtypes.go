package flightsql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// parameterSchema is what the statement wants bound: for INSERT INTO t VALUES (?, …) the types of the table's columns, otherwise what DuckDB takes the
// parameters for, and text where it does not say. Clients may bind other types; some, of JDBC for instance, do not, and take a statement without this
// schema for one without parameters.
func (s *server) parameterSchema(ctx context.Context, p *prepared) *arrow.Schema {
	if out := s.insertSchema(ctx, p); out != nil {
		return out
	}
	types := s.engineTypes(ctx, p)
	fields := make([]arrow.Field, p.count)
	for i := range fields {
		fields[i] = arrow.Field{Name: strings.TrimPrefix(p.label(i), "$"), Type: arrow.BinaryTypes.String, Nullable: true}
		if t, ok := parameterType(types[i]); ok {
			fields[i].Type = t
		}
	}
	return arrow.NewSchema(fields, nil)
}

// maxAsked is how many parameters are asked for one by one.
const maxAsked = 8

// engineTypes are DuckDB's types of the parameters. Where it does not know that of one, it tells none; they are asked for one by one then, with NULL in
// place of the others.
func (s *server) engineTypes(ctx context.Context, p *prepared) []string {
	all := make([]string, p.count)
	for i := range all {
		all[i] = "$" + strconv.Itoa(i+1)
	}
	types := s.askTypes(ctx, p, all)
	if len(types) == p.count && !slices.ContainsFunc(types, unknownType) || p.count == 1 || p.count > maxAsked {
		return append(types, make([]string, p.count)...)[:p.count]
	}
	out := make([]string, p.count)
	for i := range out {
		row := p.nulls()
		row[i] = "$1"
		if t := s.askTypes(ctx, p, row); len(t) == 1 {
			out[i] = t[0]
		}
	}
	return out
}

func (s *server) askTypes(ctx context.Context, p *prepared, row []string) []string {
	st := p.defaults
	st.SQL = p.queryWith(row)
	types, err := s.backend.Parameters(ctx, p.principal, st)
	if err != nil { // what is wrong with the statement shows when it is run
		return nil
	}
	return types
}

func unknownType(engine string) bool { return engine == "" || engine == `"NULL"` }

func parameterType(engine string) (arrow.DataType, bool) {
	t, err := columnType(engine)
	if err != nil || unknownType(engine) {
		return nil, false
	}
	switch t.ID() { // all integers are 64 bits wide: clients differ in what they take for one
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16, arrow.UINT32:
		return arrow.PrimitiveTypes.Int64, true
	case arrow.BOOL, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.STRING, arrow.BINARY, arrow.DATE32, arrow.TIME64, arrow.TIMESTAMP, arrow.LIST:
		return t, true
	}
	return nil, false
}

// insertSchema is that of INSERT INTO t VALUES (?, …); nil: the statement is another one.
func (s *server) insertSchema(ctx context.Context, p *prepared) *arrow.Schema {
	ins, ok := p.stmt.(*sql.Insert)
	if !ok || p.valuesAt == 0 {
		return nil
	}
	items := p.items()
	table, err := s.backend.Table(ctx, p.principal, ins.Table.Strings(), p.defaults)
	if items == nil || err != nil { // the statement itself will say what is wrong with the table
		return nil
	}
	columns := table.GetFields()
	if ins.Columns != nil {
		columns = listed(ins.Columns, columns)
	}
	fields := make([]arrow.Field, p.count)
	for i, at := range items {
		if at >= len(columns) || columns[at] == nil {
			return nil
		}
		t, ok := boundType(columns[at].GetType())
		if !ok {
			return nil
		}
		fields[i] = arrow.Field{Name: columns[at].GetName(), Type: t, Nullable: !columns[at].GetRequired()}
	}
	return arrow.NewSchema(fields, nil)
}

func listed(list []sql.Ident, columns []*planv1.Field) []*planv1.Field {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.GetName()
	}
	out := make([]*planv1.Field, len(list))
	for i, id := range list {
		if at, _ := sql.Find(id.Text, names); at >= 0 {
			out[i] = columns[at]
		}
	}
	return out
}

// boundType is the Arrow type to send a column's values in. All integers are 64 bits wide there: clients differ in what they take for one.
func boundType(t *planv1.Type) (arrow.DataType, bool) {
	if k := t.GetKind(); k >= planv1.TypeKind_TYPE_KIND_INT8 && k <= planv1.TypeKind_TYPE_KIND_INT64 {
		return arrow.PrimitiveTypes.Int64, true
	}
	name, err := plan.CastType(t)
	if err != nil {
		return nil, false
	}
	out, err := columnType(name)
	return out, err == nil
}

// items gives for each parameter the ordinal of the column that it is the whole value of; nil if some are part of expressions.
func (t *template) items() []int {
	toks, err := sql.Tokenize(t.text[t.valuesAt : t.query.Offset+len(t.query.Text)])
	if err != nil {
		return nil
	}
	marks := map[int]mark{} // by where they begin
	for _, m := range t.marks {
		marks[m.start-t.valuesAt] = m
	}
	out := make([]int, t.count)
	for i := range out {
		out[i] = -1
	}
	depth, item := 0, 0
	for i, tok := range toks {
		switch {
		case symbol(tok, "("):
			if depth++; depth == 1 {
				item = 0
			}
		case symbol(tok, ")"):
			depth--
		case symbol(tok, ",") && depth == 1:
			item++
		}
		m, ok := marks[tok.Start]
		if !ok {
			continue
		}
		next := i + 1
		for next < len(toks) && toks[next].Start < m.end-t.valuesAt {
			next++
		}
		alone := depth == 1 && i > 0 && (symbol(toks[i-1], "(") || symbol(toks[i-1], ",")) && next < len(toks) && (symbol(toks[next], ")") || symbol(toks[next], ","))
		if !alone || out[m.index] >= 0 && out[m.index] != item {
			return nil
		}
		out[m.index] = item
	}
	return out
}
