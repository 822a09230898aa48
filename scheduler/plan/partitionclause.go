package plan

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// FixPartitions binds the items of a PARTITION clause to the columns that a table is partitioned by, and answers the values that it gives, by field
// id. Its errors are *Error.
func FixPartitions(items []sql.PartitionValue, schema *planv1.Schema, spec []*planv1.PartitionField, table string) (map[int32]*planv1.Value, error) {
	b := binder{fields: schema.GetFields(), table: table, clause: "PARTITION clause"}
	if len(spec) == 0 {
		return nil, b.bad("leave the clause out", "%s is not partitioned", table)
	}
	out := map[int32]*planv1.Value{}
	for _, it := range items {
		f, err := b.column([]sql.Ident{it.Column})
		if err != nil {
			return nil, err
		}
		name := sql.DisplayIdent(f.GetName())
		own := slices.IndexFunc(spec, func(p *planv1.PartitionField) bool {
			return p.GetSourceId() == f.GetId() && (it.Value == nil || p.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_IDENTITY)
		})
		if own < 0 {
			return nil, b.bad("REPLACE WHERE takes any column", "%s is not partitioned by the values of column %s", table, name)
		}
		if it.Value == nil {
			continue
		}
		v, err := LiteralValue(*it.Value, f.GetType())
		if err != nil {
			return nil, b.bad("", "column %s: %v", name, err)
		}
		if v.GetKind() == nil && f.GetRequired() {
			return nil, b.bad("", "column %s of %s is required", name, table)
		}
		out[f.GetId()] = v
	}
	return out, nil
}

// MapInsert is MapColumns for a statement that gives some columns, by field id, a value itself. The query fills the others.
func MapInsert(t Target, fixed map[int32]*planv1.Value, query []*planv1.Column) ([]*planv1.OutputColumn, error) {
	if len(fixed) == 0 {
		return MapColumns(t, query)
	}
	rest := t
	rest.Schema = &planv1.Schema{}
	for _, f := range t.Schema.GetFields() {
		if _, ok := fixed[f.GetId()]; !ok {
			rest.Schema.Fields = append(rest.Schema.Fields, f)
			continue
		}
		if err := t.givenTwice(f, query); err != nil {
			return nil, err
		}
	}
	rest.Table += " without the columns of the PARTITION clause"
	filled, err := MapColumns(rest, query)
	if err != nil {
		return nil, err
	}
	out := make([]*planv1.OutputColumn, 0, len(t.Schema.GetFields()))
	for _, f := range t.Schema.GetFields() {
		v, ok := fixed[f.GetId()]
		if !ok {
			out, filled = append(out, filled[0]), filled[1:]
			continue
		}
		cast, err := CastType(f.GetType())
		if err != nil {
			return nil, &Error{Message: fmt.Sprintf("column %s of %s cannot be written: %v", sql.DisplayIdent(f.GetName()), t.Table, err)}
		}
		f = proto.CloneOf(f)
		f.WriteDefault = v // what a column gets that no column of the query fills
		out = append(out, &planv1.OutputColumn{Field: f, Input: -1, CastType: cast})
	}
	return out, nil
}

// givenTwice refuses a column that both the PARTITION clause and the list, or the query by name, give.
func (t Target) givenTwice(f *planv1.Field, query []*planv1.Column) error {
	names := t.List
	if t.ByName {
		names = columnNames(query)
	}
	for _, n := range names {
		if at, _ := sql.Find(n, []string{f.GetName()}); at >= 0 {
			return &Error{Message: fmt.Sprintf("column %s has its value in the PARTITION clause, and is given once more", sql.DisplayIdent(f.GetName())), Hint: "leave one out"}
		}
	}
	return nil
}

// PartitionsText says how many partitions a write may touch, as far as the transforms and fixed values, by field id, tell; empty: the table has none.
func PartitionsText(spec *planv1.WriteSpec, fixed map[int32]*planv1.Value) string {
	most, open, fields := int64(1), false, 0
	for _, f := range spec.GetPartition() {
		_, given := fixed[f.GetSourceId()]
		switch {
		case f.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_VOID:
			continue
		case given:
		case f.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_BUCKET:
			most = min(most*(int64(f.GetParam())+1), manyPartitions) // NULL has one of its own
		default:
			open = true
		}
		fields++
	}
	switch {
	case fields == 0:
		return ""
	case open:
		return "as many as there are values; VALIDATE counts the files"
	}
	return fmt.Sprintf("at most %d", most)
}
