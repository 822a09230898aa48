package meta

import (
	"bytes"
	"encoding/json"
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Schema is one schema of a table.
type Schema struct {
	ID      int32
	Fields  []*planv1.Field
	JSON    json.RawMessage // compact, as the table has it
	nodes   map[int32]*Node
	paths   map[string]int32
	dup     string         // a path that two fields have
	initial map[int32]bool // fields with an initial-default that is not NULL
}

// Node is one field of a schema, at whatever depth.
type Node struct {
	Field    *planv1.Field
	Path     string // dotted, with element, key and value for lists and maps
	Parent   int32  // 0: none
	Repeated bool   // below a list or a map
	Optional bool   // the field or one above it may be NULL
}

// Leaf reports whether the field has values of its own.
func (n *Node) Leaf() bool { return !IsNested(n.Field.GetType()) }

// ParseSchema reads a schema of a metadata.json. It fails for a column of a type that plan.v1 does not have, with the column's name.
func ParseSchema(raw json.RawMessage) (*Schema, error) {
	var j struct {
		ID     int32       `json:"schema-id"`
		Fields []jsonField `json:"fields"`
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	p := parser{initial: map[int32]bool{}}
	fields, err := p.fields(j.Fields, "", 0)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s := &Schema{ID: j.ID, Fields: fields, JSON: text.Bytes(), initial: p.initial}
	return s, s.index()
}

// NewSchema makes a schema of fields that have their ids.
func NewSchema(id int32, fields []*planv1.Field) (*Schema, error) {
	j, err := fieldsJSON(fields)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(struct {
		Type   string      `json:"type"`
		ID     int32       `json:"schema-id"`
		Fields []jsonField `json:"fields"`
	}{"struct", id, j})
	if err != nil {
		return nil, err
	}
	s := &Schema{ID: id, Fields: fields, JSON: text, initial: map[int32]bool{}}
	if err := s.index(); err != nil {
		return nil, err
	}
	for id, n := range s.nodes {
		if n.Field.GetInitialDefault().GetKind() != nil {
			s.initial[id] = true
		}
	}
	return s, nil
}

func (s *Schema) index() error {
	s.nodes, s.paths = map[int32]*Node{}, map[string]int32{}
	return s.indexFields(s.Fields, Node{})
}

func (s *Schema) indexFields(fields []*planv1.Field, parent Node) error {
	for _, f := range fields {
		n := &Node{Field: f, Path: f.GetName(), Repeated: parent.Repeated, Optional: parent.Optional || !f.GetRequired()}
		if parent.Field != nil {
			n.Path, n.Parent = parent.Path+"."+n.Path, parent.Field.GetId()
			n.Repeated = n.Repeated || parent.Field.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT
		}
		if other := s.nodes[f.GetId()]; other != nil {
			return fmt.Errorf("columns %s and %s have the same field id %d", other.Path, n.Path, f.GetId())
		}
		s.nodes[f.GetId()] = n
		if _, ok := s.paths[n.Path]; ok {
			s.dup = n.Path
		}
		s.paths[n.Path] = f.GetId()
		if err := s.indexFields(f.GetType().GetFields(), *n); err != nil {
			return err
		}
	}
	return nil
}

// Node returns the field of that id, or nil.
func (s *Schema) Node(id int32) *Node { return s.nodes[id] }

// Lookup returns the field of that dotted path, or nil. Names are case-sensitive.
func (s *Schema) Lookup(path string) *Node {
	id, ok := s.paths[path]
	if !ok {
		return nil
	}
	return s.nodes[id]
}

// Ambiguous names a path that two fields share (a column "a.b" beside a struct a with a field b), or "".
func (s *Schema) Ambiguous() string { return s.dup }

// HasInitialDefault reports whether files that lack the field stand for something else than NULL there.
func (s *Schema) HasInitialDefault(id int32) bool { return s.initial[id] }

// Walk visits all fields in the order of the schema, parents first.
func (s *Schema) Walk(visit func(*Node)) { s.walk(s.Fields, visit) }

func (s *Schema) walk(fields []*planv1.Field, visit func(*Node)) {
	for _, f := range fields {
		visit(s.nodes[f.GetId()])
		s.walk(f.GetType().GetFields(), visit)
	}
}

// Highest is the highest field id in use.
func (s *Schema) Highest() int32 {
	var h int32
	for id := range s.nodes {
		h = max(h, id)
	}
	return h
}

// AssignIDs numbers fields from 1 as Iceberg's reference implementation does: all fields of a level before the fields below them.
func AssignIDs(fields []*planv1.Field) {
	next := int32(0)
	assignIDs(fields, &next)
}

func assignIDs(fields []*planv1.Field, next *int32) {
	for _, f := range fields {
		*next++
		f.Id = *next
	}
	for _, f := range fields {
		assignIDs(f.GetType().GetFields(), next)
	}
}
