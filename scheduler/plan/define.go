package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/tableprops"
	"github.com/signet-io/signet/scheduler/sql"
)

// Definition turns CREATE TABLE into what a sink creates. For CREATE TABLE AS, query holds the query's columns; otherwise it is nil.
func Definition(c *sql.CreateTable, query []*planv1.Column) (*sinkv1.TableDefinition, error) {
	var bad problems
	out := &sinkv1.TableDefinition{Schema: &planv1.Schema{}, Properties: c.Properties}
	if c.Query == nil {
		for _, col := range c.Columns {
			out.Schema.Fields = append(out.Schema.Fields, &planv1.Field{Name: col.Name.Text, Type: col.Type, Required: col.Required, Doc: col.Comment, WriteDefault: col.Default})
		}
	} else {
		fields, err := queryFields(c, query)
		if err != nil {
			return nil, err
		}
		out.Schema.Fields = fields
	}
	checkNames(&bad, out.Schema.GetFields(), "")
	for _, f := range out.Schema.GetFields() {
		if err := Storable(f.GetName(), f.GetType()); err != nil {
			bad.add(f.GetName(), err.Message, err.Hint)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Properties)) {
		if tableprops.Reserved(key) {
			bad.add(key, "the property "+sql.QuoteString(key)+" is reserved", "properties that begin with signet. are Signet's own, but for "+strings.Join(tableprops.Settable, ", "))
		}
	}
	partitionClauses(&bad, out, c.Partition)
	sortClauses(&bad, out, c.Sort)
	if err := bad.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// queryFields makes columns of a query's columns: all optional, with the types of casts.md.
func queryFields(c *sql.CreateTable, query []*planv1.Column) ([]*planv1.Field, error) {
	if c.Columns != nil && len(c.Columns) != len(query) {
		return nil, &Error{
			Message: fmt.Sprintf("the table is given %s and the query has %d", count(len(c.Columns), "column name"), len(query)),
			Hint:    "name every column of the query, or none",
		}
	}
	if len(query) == 0 {
		return nil, &Error{Message: "the query has no columns"}
	}
	var bad problems
	out := make([]*planv1.Field, len(query))
	for i, q := range query {
		f := &planv1.Field{Name: q.GetName()}
		if c.Columns != nil {
			f.Name, f.Doc = c.Columns[i].Name.Text, c.Columns[i].Comment
		}
		engine, err := engineTypeOf(q)
		if err == nil {
			f.Type, err = StorableType(engine)
		}
		if err != nil {
			bad.add(f.GetName(), fmt.Sprintf("column %s: %v", sql.DisplayIdent(f.GetName()), err), advice(err, q, i))
		}
		out[i] = f
	}
	return out, bad.err()
}

func advice(err error, q *planv1.Column, at int) string {
	var unstorable *unstorableError
	if !errors.As(err, &unstorable) {
		return ""
	}
	name, where := expression(q, at)
	if unstorable.engine.Name == "STRUCT" {
		return "a row without names cannot be stored: write {'a': …, 'b': …}"
	}
	text, ok := instead[unstorable.engine.Name]
	if !ok {
		text = "write CAST(%[1]s AS …) to a type that tables store"
	}
	return fmt.Sprintf(text, name) + where
}

// Storable refuses a column of a type that the format has and the engine lacks: no statement could read or write it.
func Storable(column string, t *planv1.Type) *Error {
	if t.GetKind() == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS {
		return &Error{
			Message: "column " + sql.DisplayIdent(column) + ": tables here cannot store the type TIMESTAMPTZ_NS",
			Hint:    "use TIMESTAMPTZ, in microseconds, or TIMESTAMP_NS with times in UTC",
		}
	}
	for _, f := range t.GetFields() {
		if err := Storable(column, f.GetType()); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses empty names, and names that differ in case only: of such a pair most engines, DuckDB among them, read only one,
// and which one depends on the engine.
func checkNames(bad *problems, fields []*planv1.Field, path string) {
	seen := map[string]string{}
	for i, f := range fields {
		name := f.GetName()
		where := strings.TrimPrefix(path+"."+sql.DisplayIdent(name), ".")
		fold := strings.ToLower(name)
		switch before, twice := seen[fold]; {
		case name == "":
			bad.add(name, fmt.Sprintf("column %d has no name", i+1), "give it one with AS")
		case twice && before == name:
			bad.add(name, fmt.Sprintf("there are two columns %s", where), "rename one with AS")
		case twice:
			bad.add(name, fmt.Sprintf("the columns %s and %s differ in case only", sql.QuoteIdent(before), sql.QuoteIdent(name)), "rename one: most engines cannot tell them apart")
		}
		seen[fold] = name
		if kind := f.GetType().GetKind(); kind >= planv1.TypeKind_TYPE_KIND_STRUCT {
			checkNames(bad, f.GetType().GetFields(), where)
		}
	}
}

func partitionClauses(bad *problems, out *sinkv1.TableDefinition, terms []sql.PartitionTerm) {
	seen := map[string]bool{}
	for _, t := range terms {
		f := findColumn(bad, out.GetSchema().GetFields(), t.Column.Text, "PARTITIONED BY")
		if f == nil {
			continue
		}
		text := TransformText(t.Transform, t.Param, sql.DisplayIdent(f.GetName()))
		if !applies(t.Transform, f.GetType().GetKind()) {
			bad.add(f.GetName(), fmt.Sprintf("PARTITIONED BY %s: column %s is %s", text, sql.DisplayIdent(f.GetName()), TypeText(f.GetType())), transformHint(t.Transform))
			continue
		}
		if seen[text] {
			bad.add(f.GetName(), "PARTITIONED BY has "+text+" twice", "")
			continue
		}
		seen[text] = true
		out.Partition = append(out.Partition, &sinkv1.PartitionClause{Column: f.GetName(), Transform: t.Transform, Param: t.Param})
	}
}

func sortClauses(bad *problems, out *sinkv1.TableDefinition, terms []sql.SortTerm) {
	for _, t := range terms {
		f := findColumn(bad, out.GetSchema().GetFields(), t.Column.Text, "ORDERED BY")
		if f == nil {
			continue
		}
		if !applies(t.Transform, f.GetType().GetKind()) {
			text := TransformText(t.Transform, t.Param, sql.DisplayIdent(f.GetName()))
			bad.add(f.GetName(), fmt.Sprintf("ORDERED BY %s: column %s is %s", text, sql.DisplayIdent(f.GetName()), TypeText(f.GetType())), transformHint(t.Transform))
			continue
		}
		out.Sort = append(out.Sort, &sinkv1.SortClause{
			Column: f.GetName(), Transform: t.Transform, Param: t.Param, Descending: t.Descending, NullsFirst: t.NullsFirst,
		})
	}
}

func findColumn(bad *problems, fields []*planv1.Field, name, clause string) *planv1.Field {
	names := fieldNames(fields)
	at, candidates := sql.Find(name, names)
	if at >= 0 {
		return fields[at]
	}
	t := Target{Table: "the table"}
	bad.add(name, clause+": "+t.unknown(name, names, candidates), t.suggest(name, names, candidates))
	return nil
}

// applies reports whether a transform is defined for a type, as the Iceberg specification lists them.
func applies(t planv1.TransformKind, k planv1.TypeKind) bool {
	timestamp := k >= planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS && k <= planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS
	primitive := k != planv1.TypeKind_TYPE_KIND_UNSPECIFIED && k < planv1.TypeKind_TYPE_KIND_STRUCT
	switch t {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY, planv1.TransformKind_TRANSFORM_KIND_VOID:
		return primitive
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		return primitive && k != planv1.TypeKind_TYPE_KIND_BOOLEAN && k != planv1.TypeKind_TYPE_KIND_FLOAT32 && k != planv1.TypeKind_TYPE_KIND_FLOAT64
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return isInteger(k) || k == planv1.TypeKind_TYPE_KIND_DECIMAL || k == planv1.TypeKind_TYPE_KIND_STRING || k == planv1.TypeKind_TYPE_KIND_BINARY
	case planv1.TransformKind_TRANSFORM_KIND_HOUR:
		return timestamp
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY:
		return timestamp || k == planv1.TypeKind_TYPE_KIND_DATE
	}
	return false
}

func transformHint(t planv1.TransformKind) string {
	switch t {
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		return "bucket takes integers, decimals, dates, times, strings, UUIDs and binary"
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return "truncate takes integers, decimals, strings and binary"
	case planv1.TransformKind_TRANSFORM_KIND_HOUR:
		return "hour takes timestamps"
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY:
		return "year, month and day take dates and timestamps"
	}
	return "structs, lists and maps cannot partition or order a table"
}

// TransformText writes a transform as PARTITIONED BY has it.
func TransformText(t planv1.TransformKind, param int32, column string) string {
	name := strings.ToLower(strings.TrimPrefix(t.String(), "TRANSFORM_KIND_"))
	switch t {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		return column
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET, planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return fmt.Sprintf("%s(%d, %s)", name, param, column)
	}
	return name + "(" + column + ")"
}
