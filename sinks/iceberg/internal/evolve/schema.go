package evolve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// maxDepth bounds nested types, so that a hostile schema cannot exhaust the stack.
const maxDepth = 100

// Schema is one schema of a table. It keeps types that Signet does not know, so that the rest of such a table can be changed.
type Schema struct {
	ID          int32
	Identifiers []int32
	Fields      []*Column
}

// Column is a field at whatever depth.
type Column struct {
	ID             int32
	Name           string
	Required       bool
	Type           *Type
	Doc            string
	InitialDefault json.RawMessage // nil: none
	WriteDefault   json.RawMessage
}

// Type is a primitive type by its name, or struct, list or map with its fields.
type Type struct {
	Name   string
	Fields []*Column
}

const (
	structName = "struct"
	listName   = "list"
	mapName    = "map"
)

func (t *Type) nested() bool { return len(t.Fields) > 0 || t.Name == structName }

type jsonSchema struct {
	Type        string       `json:"type"`
	ID          int32        `json:"schema-id"`
	Identifiers []int32      `json:"identifier-field-ids,omitempty"`
	Fields      []jsonColumn `json:"fields"`
}

type jsonColumn struct {
	ID             int32           `json:"id"`
	Name           string          `json:"name"`
	Required       bool            `json:"required"`
	Type           json.RawMessage `json:"type"`
	Doc            string          `json:"doc,omitempty"`
	InitialDefault json.RawMessage `json:"initial-default,omitempty"`
	WriteDefault   json.RawMessage `json:"write-default,omitempty"`
}

type jsonNested struct {
	Type            string          `json:"type"`
	Fields          []jsonColumn    `json:"fields,omitempty"`
	ElementID       *int32          `json:"element-id,omitempty"`
	Element         json.RawMessage `json:"element,omitempty"`
	ElementRequired *bool           `json:"element-required,omitempty"`
	KeyID           *int32          `json:"key-id,omitempty"`
	Key             json.RawMessage `json:"key,omitempty"`
	ValueID         *int32          `json:"value-id,omitempty"`
	Value           json.RawMessage `json:"value,omitempty"`
	ValueRequired   *bool           `json:"value-required,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Schema) UnmarshalJSON(raw []byte) error {
	var j jsonSchema
	if err := json.Unmarshal(raw, &j); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	fields, err := readColumns(j.Fields, 0)
	*s = Schema{ID: j.ID, Identifiers: j.Identifiers, Fields: fields}
	return err
}

func readColumns(in []jsonColumn, depth int) ([]*Column, error) {
	out := make([]*Column, len(in))
	for i, j := range in {
		t, err := readType(j.Type, depth+1)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", j.Name, err)
		}
		out[i] = &Column{ID: j.ID, Name: j.Name, Required: j.Required, Type: t, Doc: j.Doc, InitialDefault: value(j.InitialDefault), WriteDefault: value(j.WriteDefault)}
	}
	return out, nil
}

// value is a default, nil for none.
func value(raw json.RawMessage) json.RawMessage {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func readType(raw json.RawMessage, depth int) (*Type, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("types nested deeper than %d are %w", maxDepth, meta.ErrUnsupported)
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return &Type{Name: name}, nil
	}
	var j jsonNested
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, err
	}
	inner := func(name string, id *int32, raw json.RawMessage, required bool) (*Column, error) {
		t, err := readType(raw, depth+1)
		if err != nil || id == nil {
			return nil, fmt.Errorf("%s of a %s: %w", name, j.Type, cmpErr(err))
		}
		return &Column{ID: *id, Name: name, Required: required, Type: t}, nil
	}
	t := &Type{Name: j.Type}
	var err error
	switch j.Type {
	case structName:
		t.Fields, err = readColumns(j.Fields, depth)
	case listName:
		t.Fields = make([]*Column, 1)
		t.Fields[0], err = inner("element", j.ElementID, j.Element, j.ElementRequired != nil && *j.ElementRequired)
	case mapName:
		t.Fields = make([]*Column, 2)
		if t.Fields[0], err = inner("key", j.KeyID, j.Key, true); err == nil {
			t.Fields[1], err = inner("value", j.ValueID, j.Value, j.ValueRequired != nil && *j.ValueRequired)
		}
	default:
		err = fmt.Errorf("type %q is %w by Signet", j.Type, meta.ErrUnsupported)
	}
	return t, err
}

func cmpErr(err error) error {
	if err == nil {
		return fmt.Errorf("%w: it has no id", meta.ErrInvalid)
	}
	return err
}

// MarshalJSON implements json.Marshaler.
func (s *Schema) MarshalJSON() ([]byte, error) {
	fields, err := writeColumns(s.Fields)
	if err != nil {
		return nil, err
	}
	return json.Marshal(jsonSchema{Type: structName, ID: s.ID, Identifiers: s.Identifiers, Fields: fields})
}

func writeColumns(in []*Column) ([]jsonColumn, error) {
	out := make([]jsonColumn, len(in))
	for i, c := range in {
		t, err := writeType(c.Type)
		if err != nil {
			return nil, err
		}
		out[i] = jsonColumn{ID: c.ID, Name: c.Name, Required: c.Required, Type: t, Doc: c.Doc, InitialDefault: c.InitialDefault, WriteDefault: c.WriteDefault}
	}
	return out, nil
}

func writeType(t *Type) (json.RawMessage, error) {
	j := jsonNested{Type: t.Name}
	var err error
	switch t.Name {
	case structName:
		fields, err := writeColumns(t.Fields)
		if err != nil {
			return nil, err
		}
		return json.Marshal(struct {
			Type   string       `json:"type"`
			Fields []jsonColumn `json:"fields"`
		}{structName, fields})
	case listName:
		e := t.Fields[0]
		j.ElementID, j.ElementRequired = &e.ID, &e.Required
		j.Element, err = writeType(e.Type)
	case mapName:
		k, v := t.Fields[0], t.Fields[1]
		j.KeyID, j.ValueID, j.ValueRequired = &k.ID, &v.ID, &v.Required
		if j.Key, err = writeType(k.Type); err == nil {
			j.Value, err = writeType(v.Type)
		}
	default:
		return json.Marshal(t.Name)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

func (s *Schema) clone() *Schema {
	return &Schema{ID: s.ID, Identifiers: slices.Clone(s.Identifiers), Fields: cloneColumns(s.Fields)}
}

func cloneColumns(in []*Column) []*Column {
	out := make([]*Column, len(in))
	for i, c := range in {
		n := *c
		n.Type = &Type{Name: c.Type.Name, Fields: cloneColumns(c.Type.Fields)}
		out[i] = &n
	}
	return out
}

// same reports whether two schemas are equal but for their ids.
func (s *Schema) same(o *Schema) bool {
	a, b := *s, *o
	a.ID, b.ID = 0, 0
	x, errX := json.Marshal(&a)
	y, errY := json.Marshal(&b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// place is a column with where it is.
type place struct {
	*Column
	path     string // dotted
	siblings *[]*Column
	parent   *place // nil: a column of the table
}

func (p *place) repeated() bool {
	for q := p.parent; q != nil; q = q.parent {
		if q.Type.Name != structName {
			return true
		}
	}
	return false
}

// walk visits all columns, parents first.
func (s *Schema) walk(visit func(*place)) { walk(&s.Fields, nil, visit) }

func walk(fields *[]*Column, parent *place, visit func(*place)) {
	for _, c := range *fields {
		p := &place{Column: c, path: c.Name, siblings: fields, parent: parent}
		if parent != nil {
			p.path = parent.path + "." + c.Name
		}
		visit(p)
		walk(&c.Type.Fields, p, visit)
	}
}

func (s *Schema) highest() int32 {
	var h int32
	s.walk(func(p *place) { h = max(h, p.ID) })
	return h
}

func (s *Schema) byID(id int32) *place {
	var found *place
	s.walk(func(p *place) {
		if p.ID == id {
			found = p
		}
	})
	return found
}

// find looks a dotted path up: exactly, and then without regard to case where only one column matches so.
func (s *Schema) find(path string) (*place, error) {
	var exact, folded *place
	several := false
	var names []string
	s.walk(func(p *place) {
		names = append(names, p.path)
		switch {
		case p.path == path && exact == nil:
			exact = p
		case strings.EqualFold(p.path, path):
			several = several || folded != nil
			folded = p
		}
	})
	switch {
	case exact != nil:
		return exact, nil
	case folded != nil && !several:
		return folded, nil
	case several:
		return nil, fmt.Errorf("column %s: several columns differ from it in case only; write the name exactly", path)
	}
	return nil, &missingError{path: path, have: names}
}

// missingError says that a column is not there.
type missingError struct {
	path string
	have []string
}

func (e *missingError) Error() string {
	if len(e.have) > 30 {
		return fmt.Sprintf("the table has no column %s", e.path)
	}
	return fmt.Sprintf("the table has no column %s; it has %s", e.path, strings.Join(e.have, ", "))
}

// fromPlan makes a type of a contract's type. Ids are given in the order in which Iceberg's reference implementation gives them: all fields of a
// level before the fields below them.
func fromPlan(t *planv1.Type, next func() int32) *Type {
	if !meta.IsNested(t) {
		return &Type{Name: meta.TypeName(t)}
	}
	out := &Type{Name: meta.TypeName(t)}
	for _, f := range t.GetFields() {
		out.Fields = append(out.Fields, &Column{ID: next(), Name: f.GetName(), Required: f.GetRequired(), Doc: f.GetDoc()})
	}
	for i, f := range t.GetFields() {
		out.Fields[i].Type = fromPlan(f.GetType(), next)
	}
	return out
}
