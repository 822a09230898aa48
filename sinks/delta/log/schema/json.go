package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxDepth is how deep types may lie in each other. Spark's parser ends there too, in a stack overflow.
const maxDepth = 200

// Parse reads the schemaString of a metaData action. Errors are ErrInvalid, and name the place; or ErrUnsupported, and name every column of a type that is not supported.
func Parse(text string) (*Schema, error) {
	p := parser{}
	if !json.Valid([]byte(text)) { // once, so that each level need only be taken apart
		return nil, fmt.Errorf("%w: it is not JSON", ErrInvalid)
	}
	t, err := p.parse([]byte(text), nil)
	if err != nil {
		return nil, err
	}
	if len(p.unsupported) > 0 {
		return nil, errors.Join(p.unsupported...)
	}
	if t.Kind != Struct {
		return nil, fmt.Errorf("%w: it is of type %s; a table's is a struct", ErrInvalid, t)
	}
	return &Schema{Fields: t.Fields}, nil
}

// ParseType reads the JSON of one type: "long", or an object.
func ParseType(text []byte) (Type, error) {
	p := parser{}
	if !json.Valid(text) {
		return Type{}, fmt.Errorf("%w: it is not JSON", ErrInvalid)
	}
	t, err := p.parse(text, nil)
	return t, errors.Join(err, errors.Join(p.unsupported...))
}

type parser struct{ unsupported []error }

func invalid(path []string, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalid, orTable(path), fmt.Sprintf(format, args...))
}

func (p *parser) parse(text []byte, path []string) (Type, error) {
	if len(path) > maxDepth {
		return Type{}, invalid(path[:1], "types lie in each other more than %d deep", maxDepth)
	}
	var name string
	if json.Unmarshal(text, &name) == nil && !isNull(text) {
		return p.primitive(name, path)
	}
	m, err := members(text)
	if err != nil {
		return Type{}, invalid(path, "a type is a name or an object, not %.40s", text)
	}
	var kind string
	if err := json.Unmarshal(m["type"], &kind); err != nil || isNull(m["type"]) {
		return Type{}, invalid(path, "a type without member \"type\"")
	}
	switch kind {
	case "struct":
		return p.structure(m, path)
	case "array":
		element, err := p.member(m, "elementType", path, "element")
		if err != nil {
			return Type{}, err
		}
		nulls, err := boolean(m, "containsNull", path)
		return Type{Kind: Array, Element: element, Nulls: nulls}, err
	case "map":
		key, err := p.member(m, "keyType", path, "key")
		if err != nil {
			return Type{}, err
		}
		value, err := p.member(m, "valueType", path, "value")
		if err != nil {
			return Type{}, err
		}
		nulls, err := boolean(m, "valueContainsNull", path)
		return Type{Kind: Map, Key: key, Element: value, Nulls: nulls}, err
	}
	p.refuse(kind, path)
	return Type{}, nil
}

func (p *parser) member(m map[string]json.RawMessage, name string, path []string, step string) (*Type, error) {
	text, ok := m[name]
	if !ok {
		return nil, invalid(path, "a type without member %q", name)
	}
	t, err := p.parse(text, append(path[:len(path):len(path)], step))
	return &t, err
}

func boolean(m map[string]json.RawMessage, name string, path []string) (bool, error) {
	var b bool
	text, ok := m[name]
	if !ok || isNull(text) || json.Unmarshal(text, &b) != nil {
		return false, invalid(path, "member %q has to be true or false", name)
	}
	return b, nil
}

func (p *parser) structure(m map[string]json.RawMessage, path []string) (Type, error) {
	var fields []json.RawMessage
	if text, ok := m["fields"]; !ok || isNull(text) || json.Unmarshal(text, &fields) != nil {
		return Type{}, invalid(path, "a struct whose \"fields\" are no array")
	}
	t := Type{Kind: Struct, Fields: make([]Field, len(fields))}
	for i, text := range fields {
		f := &t.Fields[i]
		m, err := members(text)
		if err != nil {
			return Type{}, invalid(path, "field %d is no object", i)
		}
		if text, ok := m["name"]; !ok || isNull(text) || json.Unmarshal(text, &f.Name) != nil {
			return Type{}, invalid(path, "field %d has no name", i)
		}
		sub := append(path[:len(path):len(path)], f.Name)
		kind, err := p.member(m, "type", path, f.Name)
		if err != nil {
			return Type{}, err
		}
		f.Type = *kind
		if f.Nullable, err = boolean(m, "nullable", sub); err != nil {
			return Type{}, err
		}
		if text, ok := m["metadata"]; ok && !isNull(text) {
			if text[0] != '{' {
				return Type{}, invalid(sub, "its metadata is no object")
			}
			if string(text) != "{}" {
				f.Metadata = bytes.Clone(text)
			}
		}
		f.Extra = extra(m)
	}
	return t, nil
}

// extra is the members of a field that are not known, as an object.
func extra(m map[string]json.RawMessage) json.RawMessage {
	var names []string
	for name := range m {
		if name != "name" && name != "type" && name != "nullable" && name != "metadata" {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	sort.Strings(names)
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, name), ':'), m[name]...)
	}
	return append(out, '}')
}

var primitives = func() map[string]Kind {
	m := map[string]Kind{}
	for k := String; k < Struct; k++ {
		m[k.String()] = k
	}
	return m
}()

func (p *parser) primitive(name string, path []string) (Type, error) {
	k, ok := primitives[name]
	if ok && k != Decimal {
		return Type{Kind: k}, nil
	}
	if name == "decimal" { // as Spark reads it
		return Type{Kind: Decimal, Precision: 10}, nil
	}
	if inner, ok := strings.CutPrefix(name, "decimal("); ok && strings.HasSuffix(inner, ")") {
		before, after, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
		precision, errP := strconv.Atoi(strings.TrimSpace(before))
		scale, errS := strconv.Atoi(strings.TrimSpace(after))
		if errP != nil || errS != nil || precision < 1 || precision > 38 || scale < 0 || scale > precision {
			return Type{}, invalid(path, "type %q: a decimal has 1 to 38 digits, of which 0 to all are behind the point", name)
		}
		return Type{Kind: Decimal, Precision: precision, Scale: scale}, nil
	}
	p.refuse(name, path)
	return Type{}, nil
}

func (p *parser) refuse(name string, path []string) {
	p.unsupported = append(p.unsupported, fmt.Errorf("column %s is of type %s, which is %w", PathString(path), name, ErrUnsupported))
}

func isNull(text []byte) bool { return string(text) == "null" }

func members(text []byte) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("null")
	}
	return m, nil
}

// String is the schema as a metaData action holds it, members in Spark's order.
func (s *Schema) String() string {
	out, err := s.JSON()
	if err != nil {
		return err.Error()
	}
	return out
}

// JSON is String, with an error where a type is none.
func (s *Schema) JSON() (string, error) {
	out, err := appendType(nil, s.Type())
	return string(out), err
}

func appendType(out []byte, t Type) ([]byte, error) {
	var err error
	switch {
	case t.Primitive():
		return appendString(out, t.String()), nil
	case t.Kind == Struct:
		out = append(out, `{"type":"struct","fields":[`...)
		for i := range t.Fields {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendField(out, &t.Fields[i]); err != nil {
				return nil, err
			}
		}
		return append(out, "]}"...), nil
	case t.Kind == Array && t.Element != nil:
		if out, err = appendType(append(out, `{"type":"array","elementType":`...), *t.Element); err != nil {
			return nil, err
		}
		return append(strconv.AppendBool(append(out, `,"containsNull":`...), t.Nulls), '}'), nil
	case t.Kind == Map && t.Key != nil && t.Element != nil:
		if out, err = appendType(append(out, `{"type":"map","keyType":`...), *t.Key); err != nil {
			return nil, err
		}
		if out, err = appendType(append(out, `,"valueType":`...), *t.Element); err != nil {
			return nil, err
		}
		return append(strconv.AppendBool(append(out, `,"valueContainsNull":`...), t.Nulls), '}'), nil
	}
	return nil, fmt.Errorf("%w: a type of kind %s without its parts", ErrInvalid, t.Kind)
}

func appendField(out []byte, f *Field) ([]byte, error) {
	out, err := appendType(append(appendString(append(out, `{"name":`...), f.Name), `,"type":`...), f.Type)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", PathString([]string{f.Name}), err)
	}
	out = append(strconv.AppendBool(append(out, `,"nullable":`...), f.Nullable), `,"metadata":`...)
	if len(f.Metadata) == 0 {
		out = append(out, "{}"...)
	} else {
		out = append(out, f.Metadata...)
	}
	if len(f.Extra) > len("{}") {
		out = append(append(out, ','), f.Extra[1:len(f.Extra)-1]...)
	}
	return append(out, '}'), nil
}

// appendString writes a JSON string with no more escapes than JSON demands.
func appendString(out []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a form
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}
