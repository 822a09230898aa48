package avro

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindString
	kindFixed
	kindEnum
	kindArray
	kindMap
	kindUnion
	kindRecord
)

var primitiveKinds = map[string]kind{
	"null": kindNull, "boolean": kindBoolean, "int": kindInt, "long": kindLong, "float": kindFloat, "double": kindDouble, "bytes": kindBytes, "string": kindString,
}

// maxDepth bounds nesting of schemas and values.
const maxDepth = 64

// Schema is a writer's schema.
type Schema struct {
	kind     kind
	size     int       // fixed
	items    *Schema   // array, map
	branches []*Schema // union
	fields   []field   // record
	spans    bool      // records keep the bytes of their fields
}

type field struct {
	name string
	id   int // Iceberg field id, 0 if the writer gave none
	typ  *Schema
	skip bool
}

type jsonNode struct {
	Type   json.RawMessage `json:"type"`
	Name   string          `json:"name"`
	Space  string          `json:"namespace"`
	Fields []struct {
		Name string          `json:"name"`
		Type json.RawMessage `json:"type"`
		ID   int             `json:"field-id"`
	} `json:"fields"`
	Items  json.RawMessage `json:"items"`
	Values json.RawMessage `json:"values"`
	Size   int             `json:"size"`
}

// ParseSchema reads a schema in JSON.
func ParseSchema(raw []byte) (*Schema, error) {
	return (&schemaParser{named: map[string]*Schema{}}).parse(raw, 0)
}

type schemaParser struct{ named map[string]*Schema }

func (p *schemaParser) parse(raw json.RawMessage, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: schema nested deeper than %d", ErrFormat, maxDepth)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, fmt.Errorf("%w: schema without a type", ErrFormat)
	}
	switch raw[0] {
	case '"':
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, fmt.Errorf("%w: schema: %w", ErrFormat, err)
		}
		return p.reference(name)
	case '[':
		return p.union(raw, depth)
	}
	var j jsonNode
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("%w: schema: %w", ErrFormat, err)
	}
	return p.complex(&j, depth)
}

func (p *schemaParser) reference(name string) (*Schema, error) {
	if k, ok := primitiveKinds[name]; ok {
		return &Schema{kind: k}, nil
	}
	if s := p.named[simple(name)]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: schema names type %q, which it does not define", ErrFormat, name)
}

func simple(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func (p *schemaParser) union(raw json.RawMessage, depth int) (*Schema, error) {
	var branches []json.RawMessage
	if err := json.Unmarshal(raw, &branches); err != nil {
		return nil, fmt.Errorf("%w: schema: %w", ErrFormat, err)
	}
	s := &Schema{kind: kindUnion}
	for _, b := range branches {
		n, err := p.parse(b, depth+1)
		if err != nil {
			return nil, err
		}
		s.branches = append(s.branches, n)
	}
	return s, nil
}

func (p *schemaParser) complex(j *jsonNode, depth int) (*Schema, error) {
	var name string
	if err := json.Unmarshal(j.Type, &name); err != nil { // {"type": {...}}: one level more
		return p.parse(j.Type, depth+1)
	}
	s := &Schema{}
	switch name {
	case "record":
		s.kind = kindRecord
		p.named[simple(j.Name)] = s
		for _, f := range j.Fields {
			t, err := p.parse(f.Type, depth+1)
			if err != nil {
				return nil, err
			}
			s.fields = append(s.fields, field{name: f.Name, id: f.ID, typ: t})
		}
		return s, nil
	case "array", "map":
		s.kind = kindArray
		items := j.Items
		if name == "map" {
			s.kind, items = kindMap, j.Values
		}
		var err error
		s.items, err = p.parse(items, depth+1)
		return s, err
	case "fixed":
		if j.Size < 0 || j.Size > maxBlock {
			return nil, fmt.Errorf("%w: fixed of %d bytes", ErrFormat, j.Size)
		}
		s.kind, s.size = kindFixed, j.Size
		p.named[simple(j.Name)] = s
		return s, nil
	case "enum":
		s.kind = kindEnum
		p.named[simple(j.Name)] = s
		return s, nil
	}
	return p.reference(name)
}

// Keep makes the reader skip all fields of the record that is reached by path (field ids, from the top) but those with the given ids or names.
func (s *Schema) Keep(path []int, ids []int, names ...string) {
	rec := s
	for _, id := range path {
		if rec = rec.child(id); rec == nil {
			return
		}
	}
	for i := range rec.fields {
		f := &rec.fields[i]
		f.skip = true
		for _, id := range ids {
			f.skip = f.skip && f.id != id
		}
		for _, n := range names {
			f.skip = f.skip && (f.id != 0 || f.name != n)
		}
	}
}

func (s *Schema) child(id int) *Schema {
	for _, f := range s.fields {
		if f.id == id && f.typ.kind == kindRecord {
			return f.typ
		}
	}
	return nil
}
