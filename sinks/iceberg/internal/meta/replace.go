package meta

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ReplaceSchema makes the schema of a table that takes the place of this one: columns with the name and the type of one that the table has keep its id, and
// the others get new ones. isNew is false for a schema that the table has already.
func (m *Metadata) ReplaceSchema(fields []*planv1.Field) (s *Schema, isNew bool, err error) {
	now, err := m.CurrentSchema()
	if err != nil {
		return nil, false, err
	}
	next := max(m.LastColumnID, now.Highest())
	replaceIDs(now, fields, "", &next)
	highest := int32(-1)
	for _, id := range slices.Sorted(maps.Keys(m.schemas)) {
		highest = max(highest, id)
		old, err := m.Schema(id)
		if err != nil {
			continue // it cannot be the same
		}
		if proto.Equal(&planv1.Schema{Fields: old.Fields}, &planv1.Schema{Fields: fields}) && len(old.initial) == 0 && !identified(m.schemas[id]) {
			return old, false, nil
		}
	}
	s, err = NewSchema(highest+1, fields)
	return s, true, err
}

// identified reports whether a schema names identifier fields.
func identified(raw json.RawMessage) bool {
	var j struct {
		IDs []int32 `json:"identifier-field-ids"`
	}
	return json.Unmarshal(raw, &j) != nil || len(j.IDs) > 0
}

func replaceIDs(now *Schema, fields []*planv1.Field, prefix string, next *int32) {
	for _, f := range fields {
		if n := now.Lookup(prefix + f.GetName()); n != nil && sameKind(n.Field.GetType(), f.GetType()) {
			f.Id = n.Field.GetId()
			continue
		}
		*next++
		f.Id = *next
	}
	for _, f := range fields {
		replaceIDs(now, f.GetType().GetFields(), prefix+f.GetName()+".", next)
	}
}

// sameKind compares types without what is nested in them.
func sameKind(a, b *planv1.Type) bool {
	return a.GetKind() == b.GetKind() && a.GetPrecision() == b.GetPrecision() && a.GetScale() == b.GetScale() && a.GetLength() == b.GetLength()
}

// ReplaceSpec makes a spec one of this table: fields that some spec of it has keep their ids, and so does a spec that it has.
func (m *Metadata) ReplaceSpec(spec *Spec) (s *Spec, isNew bool, err error) {
	known := map[string]int32{}
	next, highest := m.LastPartitionID, int32(-1)
	var all []*Spec
	for _, id := range slices.Sorted(maps.Keys(m.specs)) {
		old, err := m.Spec(id)
		if err != nil {
			return nil, false, err
		}
		all, highest = append(all, old), max(highest, id)
		for _, f := range old.Fields {
			known[fmt.Sprintf("%d %s", f.SourceID, f.Text)] = f.ID
			next = max(next, f.ID)
		}
	}
	s = &Spec{ID: highest + 1}
	wire := make([]jsonSpecField, 0, len(spec.Fields))
	for _, f := range spec.Fields {
		id, ok := known[fmt.Sprintf("%d %s", f.SourceID, f.Text)]
		if !ok {
			next++
			id = next
		}
		f.ID = id
		s.Fields = append(s.Fields, f)
		wire = append(wire, jsonSpecField{SourceID: f.SourceID, FieldID: &id, Name: f.Name, Transform: f.Text})
	}
	for _, old := range all {
		if old.Equal(s) {
			return old, false, nil
		}
	}
	s.JSON, err = json.Marshal(wire)
	return s, true, err
}

// ReplaceSortOrder makes a sort order one of this table.
func (m *Metadata) ReplaceSortOrder(o *SortOrder) (s *SortOrder, isNew bool, err error) {
	highest := int32(0)
	for _, id := range slices.Sorted(maps.Keys(m.sortOrders)) {
		highest = max(highest, id)
		old, err := parseSortOrder(m.sortOrders[id])
		if err != nil {
			continue // it cannot be the same
		}
		if slices.EqualFunc(old.Fields, o.Fields, func(a, b *planv1.SortField) bool { return proto.Equal(a, b) }) {
			return old, false, nil
		}
	}
	id := highest + 1
	if len(o.Fields) == 0 {
		id = 0
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(o.JSON, &doc); err != nil {
		return nil, false, err
	}
	doc["order-id"] = fmt.Appendf(nil, "%d", id)
	text, err := json.Marshal(doc)
	return &SortOrder{ID: id, Fields: o.Fields, JSON: text, texts: o.texts}, true, err
}
