package meta

import (
	"bytes"
	"encoding/json"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// firstPartitionID is where ids of partition fields begin.
const firstPartitionID = 1000

// Spec is one partition spec of a table.
type Spec struct {
	ID     int32
	Fields []SpecField
	JSON   json.RawMessage // the array of fields, compact, as the table has it
}

// SpecField is one field of a partition spec.
type SpecField struct {
	ID        int32
	SourceID  int32
	Name      string
	Transform Transform
	Text      string // the transform as the table writes it
	multi     bool   // several source columns
}

type jsonSpecField struct {
	SourceID  int32   `json:"source-id"`
	SourceIDs []int32 `json:"source-ids,omitempty"`
	FieldID   *int32  `json:"field-id,omitempty"`
	Name      string  `json:"name"`
	Transform string  `json:"transform"`
}

// ParseSpec reads a spec as REST requests carry it.
func ParseSpec(raw json.RawMessage) (*Spec, error) {
	var j jsonSpec
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("partition spec: %w", err)
	}
	return parseSpec(j.ID, j.Fields)
}

func parseSpec(id int32, raw json.RawMessage) (*Spec, error) {
	s := &Spec{ID: id}
	var fields []jsonSpecField
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("partition spec %d: %w", id, err)
	}
	for i, j := range fields {
		f := SpecField{ID: firstPartitionID + int32(i), SourceID: j.SourceID, Name: j.Name, Transform: ParseTransform(j.Transform), Text: j.Transform}
		if j.FieldID != nil { // tables of format version 1 may lack it
			f.ID = *j.FieldID
		}
		if len(j.SourceIDs) == 1 && f.SourceID == 0 {
			f.SourceID = j.SourceIDs[0]
		}
		f.multi = len(j.SourceIDs) > 1
		s.Fields = append(s.Fields, f)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return nil, fmt.Errorf("partition spec %d: %w", id, err)
	}
	s.JSON = text.Bytes()
	return s, nil
}

// Partition gives the spec's fields with the types of their values. It refuses a spec that cannot be written with this schema: a source column
// that is gone, a transform that is not known.
func (s *Spec) Partition(schema *Schema) ([]*planv1.PartitionField, error) {
	out := make([]*planv1.PartitionField, 0, len(s.Fields))
	for _, f := range s.Fields {
		p := &planv1.PartitionField{FieldId: f.ID, Name: f.Name, SourceId: f.SourceID, Transform: f.Transform.Kind, Param: f.Transform.Param}
		node := schema.Node(f.SourceID)
		switch {
		case f.multi:
			return nil, fmt.Errorf("partition field %q has several source columns, which is %w", f.Name, ErrUnsupported)
		case f.Transform.Kind == planv1.TransformKind_TRANSFORM_KIND_UNSPECIFIED:
			return nil, fmt.Errorf("partition field %q: transform %q is %w", f.Name, f.Text, ErrUnsupported)
		case node == nil && f.Transform.Kind == planv1.TransformKind_TRANSFORM_KIND_VOID:
			p.ResultType = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32} // always NULL: any type does
		case node == nil:
			return nil, fmt.Errorf("partition field %q: its source column (field id %d) has been dropped from the schema; replace the partition spec first", f.Name, f.SourceID)
		default:
			t, err := f.Transform.Result(node.Field.GetType())
			if err != nil {
				return nil, fmt.Errorf("partition field %q on column %s: %w", f.Name, node.Path, err)
			}
			p.ResultType = t
		}
		out = append(out, p)
	}
	return out, nil
}

// Describe is Partition for people: what cannot be written has no transform and no type.
func (s *Spec) Describe(schema *Schema) []*planv1.PartitionField {
	out := make([]*planv1.PartitionField, 0, len(s.Fields))
	for _, f := range s.Fields {
		one, err := (&Spec{Fields: []SpecField{f}}).Partition(schema)
		if err != nil {
			one = []*planv1.PartitionField{{FieldId: f.ID, Name: f.Name, SourceId: f.SourceID}}
		}
		out = append(out, one...)
	}
	return out
}

// Clause asks for one partition field of a new table.
type Clause struct {
	Column    string
	Transform Transform
}

// NewSpec makes the partition spec of a new table, with the names that the reference implementation gives.
func NewSpec(schema *Schema, clauses []Clause) (*Spec, error) {
	s := &Spec{}
	wire := make([]jsonSpecField, 0, len(clauses))
	taken, grouped := map[string]bool{}, map[string]string{}
	for i, c := range clauses {
		node, err := source(schema, c.Column, "partition")
		if err != nil {
			return nil, err
		}
		if _, err := c.Transform.Result(node.Field.GetType()); err != nil {
			return nil, fmt.Errorf("partition by column %s: %w", c.Column, err)
		}
		f := SpecField{ID: firstPartitionID + int32(i), SourceID: node.Field.GetId(), Name: c.Column + c.Transform.suffix(), Transform: c.Transform, Text: c.Transform.String()}
		if taken[f.Name] && c.Transform.hasParam() { // bucket(2, x) beside bucket(3, x)
			f.Name = fmt.Sprintf("%s_%d", f.Name, c.Transform.Param)
		}
		if err := checkName(schema, f, taken); err != nil {
			return nil, err
		}
		key := fmt.Sprint(f.SourceID, f.Transform.group())
		if other, ok := grouped[key]; ok {
			return nil, fmt.Errorf("partition by column %s: %s stands beside %s, and one of them is redundant", c.Column, f.Text, other)
		}
		taken[f.Name], grouped[key] = true, f.Text
		s.Fields = append(s.Fields, f)
		wire = append(wire, jsonSpecField{SourceID: f.SourceID, FieldID: &s.Fields[i].ID, Name: f.Name, Transform: f.Text})
	}
	text, err := json.Marshal(wire)
	s.JSON = text
	return s, err
}

// source finds the column of a partition or sort clause.
func source(schema *Schema, column, what string) (*Node, error) {
	node := schema.Lookup(column)
	switch {
	case node == nil:
		return nil, fmt.Errorf("%s by column %s: the table has no such column", what, column)
	case node.Repeated:
		return nil, fmt.Errorf("%s by column %s: it lies inside a list or map", what, column)
	}
	return node, nil
}

func checkName(schema *Schema, f SpecField, taken map[string]bool) error {
	if taken[f.Name] {
		return fmt.Errorf("two partition fields would be named %q", f.Name)
	}
	other := schema.Lookup(f.Name)
	if other == nil || (f.Transform.Kind == planv1.TransformKind_TRANSFORM_KIND_IDENTITY && other.Field.GetId() == f.SourceID) {
		return nil
	}
	return fmt.Errorf("the partition field of %s would be named %q, which is a column of the table; rename the column", f.Text, f.Name)
}

// Equal reports whether two specs give the same tuples.
func (s *Spec) Equal(o *Spec) bool {
	if len(s.Fields) != len(o.Fields) {
		return false
	}
	for i, f := range s.Fields {
		g := o.Fields[i]
		if f.ID != g.ID || f.SourceID != g.SourceID || f.Name != g.Name || f.Text != g.Text {
			return false
		}
	}
	return true
}

// Document is the spec as REST requests carry it.
func (s *Spec) Document() json.RawMessage {
	return fmt.Appendf(nil, `{"spec-id":%d,"fields":%s}`, s.ID, s.JSON)
}
