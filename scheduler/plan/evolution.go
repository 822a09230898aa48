package plan

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// AcceptAnySchema is the table property by which INSERT BY NAME may add columns to the table, and widen their types.
const AcceptAnySchema = "signet.accept-any-schema"

// Evolution is what a table has to change so that it can take the columns of a query that come by name.
type Evolution struct {
	Changes []*sinkv1.Change
	Text    []string // for people, one line each
}

// Evolve finds the columns, and fields of structs, that a query has and a table lacks, and those whose type has to become a wider one. Columns that the
// query lacks stay. What no change of the table would make fit is left to MapColumns, which refuses it. Its errors are *Error.
func Evolve(t Target, query []*planv1.Column) (*Evolution, error) {
	e := &Evolution{}
	var bad problems
	names := fieldNames(t.Schema.GetFields())
	for i, q := range query {
		at, candidates := sql.Find(q.GetName(), names)
		if at < 0 && len(candidates) > 0 {
			continue // MapColumns says that it is ambiguous
		}
		engine, err := engineTypeOf(q)
		if err != nil {
			bad.add(q.GetName(), fmt.Sprintf("column %s of the query: %v", sql.DisplayIdent(q.GetName()), err), "")
			continue
		}
		if at >= 0 {
			if !q.GetStringLiteral() {
				e.fit(t.Schema.GetFields()[at], engine, nil)
			}
			continue
		}
		typ, err := StorableType(engine)
		if err != nil {
			bad.add(q.GetName(), fmt.Sprintf("column %s: %v", sql.DisplayIdent(q.GetName()), err), advice(err, q, i))
			continue
		}
		e.add(nil, q.GetName(), typ)
		names = append(names, q.GetName()) // of two columns that differ in case only, MapColumns refuses the second
	}
	return e, bad.err()
}

func (e *Evolution) add(parent []string, name string, typ *planv1.Type) {
	e.Changes = append(e.Changes, &sinkv1.Change{Kind: &sinkv1.Change_AddColumn{AddColumn: &sinkv1.AddColumn{
		Parent: parent, Field: &planv1.Field{Name: name, Type: typ}, IfNotExists: true,
	}}})
	e.Text = append(e.Text, "adds column "+sql.JoinName(append(slices.Clone(parent), name))+" "+TypeText(typ))
}

// fit widens a column for a query's type, or adds fields to it.
func (e *Evolution) fit(f *planv1.Field, from EngineType, parent []string) {
	path := append(slices.Clone(parent), f.GetName())
	if f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT && from.Name == "STRUCT" {
		names := fieldNames(f.GetType().GetFields())
		for _, inner := range from.Fields {
			at, candidates := sql.Find(inner.Name, names)
			switch {
			case at >= 0:
				e.fit(f.GetType().GetFields()[at], inner.Type, path)
			case len(candidates) == 0 && inner.Name != "":
				if typ, err := StorableType(inner.Type); err == nil {
					e.add(path, inner.Name, typ)
				}
			}
		}
		return
	}
	wider := widened(f.GetType(), from)
	if wider == nil {
		return
	}
	e.Changes = append(e.Changes, &sinkv1.Change{Kind: &sinkv1.Change_ChangeColumn{ChangeColumn: &sinkv1.ChangeColumn{Path: path, Type: wider}}})
	e.Text = append(e.Text, "column "+sql.JoinName(path)+" becomes "+TypeText(wider)+", from "+TypeText(f.GetType()))
}

// widened is the type that a column has to be promoted to for all values of an engine type, by the promotions of the Iceberg specification; nil: it need not, or
// cannot.
func widened(t *planv1.Type, from EngineType) *planv1.Type {
	bits, integer := integerBits[from.Name]
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32:
		if integer && (bits == 64 || bits == -32) {
			return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}
		}
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		if from.Name == "DOUBLE" {
			return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}
		}
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if from.Name == "DECIMAL" && from.Scale <= t.GetScale() {
			if digits := from.Precision - from.Scale + t.GetScale(); digits > t.GetPrecision() && digits <= 38 {
				return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: digits, Scale: t.GetScale()}
			}
		}
	}
	return nil
}

// Apply is the schema as it will be, for a statement that only looks: new fields have ids that the table may give others.
func (e *Evolution) Apply(s *planv1.Schema) *planv1.Schema {
	out := proto.CloneOf(s)
	next := maxFieldID(out.GetFields())
	for _, c := range e.Changes {
		if add := c.GetAddColumn(); add != nil {
			f := proto.CloneOf(add.GetField())
			numberFields(f, &next)
			if parent := fieldAt(out.GetFields(), add.GetParent()); parent != nil {
				parent.Type.Fields = append(parent.Type.Fields, f)
			} else {
				out.Fields = append(out.Fields, f)
			}
		}
		if ch := c.GetChangeColumn(); ch != nil {
			if f := fieldAt(out.GetFields(), ch.GetPath()); f != nil {
				f.Type = ch.GetType()
			}
		}
	}
	return out
}

func fieldAt(fields []*planv1.Field, path []string) *planv1.Field {
	var f *planv1.Field
	for _, name := range path {
		at := slices.IndexFunc(fields, func(f *planv1.Field) bool { return f.GetName() == name })
		if at < 0 {
			return nil
		}
		f = fields[at]
		fields = f.GetType().GetFields()
	}
	return f
}

func maxFieldID(fields []*planv1.Field) int32 {
	most := int32(0)
	for _, f := range fields {
		most = max(most, f.GetId(), maxFieldID(f.GetType().GetFields()))
	}
	return most
}

func numberFields(f *planv1.Field, next *int32) {
	*next++
	f.Id = *next
	for _, inner := range f.GetType().GetFields() {
		numberFields(inner, next)
	}
}
