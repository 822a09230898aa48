package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ErrUnsupported is wrapped by every refusal of something that Iceberg has and this sink does not.
var ErrUnsupported = errors.New("not supported")

// maxDepth bounds nested types, so that a hostile schema cannot exhaust the stack.
const maxDepth = 100

var primitives = map[string]planv1.TypeKind{
	"boolean":        planv1.TypeKind_TYPE_KIND_BOOLEAN,
	"int":            planv1.TypeKind_TYPE_KIND_INT32,
	"long":           planv1.TypeKind_TYPE_KIND_INT64,
	"float":          planv1.TypeKind_TYPE_KIND_FLOAT32,
	"double":         planv1.TypeKind_TYPE_KIND_FLOAT64,
	"date":           planv1.TypeKind_TYPE_KIND_DATE,
	"time":           planv1.TypeKind_TYPE_KIND_TIME_MICROS,
	"timestamp":      planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS,
	"timestamptz":    planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
	"timestamp_ns":   planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS,
	"timestamptz_ns": planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS,
	"string":         planv1.TypeKind_TYPE_KIND_STRING,
	"uuid":           planv1.TypeKind_TYPE_KIND_UUID,
	"binary":         planv1.TypeKind_TYPE_KIND_BINARY,
}

var names = func() map[planv1.TypeKind]string {
	m := make(map[planv1.TypeKind]string, len(primitives))
	for name, kind := range primitives {
		m[kind] = name
	}
	return m
}()

var (
	decimalText = regexp.MustCompile(`^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$`)
	fixedText   = regexp.MustCompile(`^fixed\[\s*(\d+)\s*\]$`)
)

// IsNested reports whether values of the type have fields.
func IsNested(t *planv1.Type) bool {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRUCT, planv1.TypeKind_TYPE_KIND_LIST, planv1.TypeKind_TYPE_KIND_MAP:
		return true
	}
	return false
}

// MinVersion is the lowest table format version whose columns may have the type.
func MinVersion(t *planv1.Type) int {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return 3
	}
	v := 1
	for _, f := range t.GetFields() {
		v = max(v, MinVersion(f.GetType()))
	}
	return v
}

// TypeName is the type as Iceberg's documents write it, for messages.
func TypeName(t *planv1.Type) string {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return fmt.Sprintf("decimal(%d, %d)", t.GetPrecision(), t.GetScale())
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return fmt.Sprintf("fixed[%d]", t.GetLength())
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return "struct"
	case planv1.TypeKind_TYPE_KIND_LIST:
		return "list"
	case planv1.TypeKind_TYPE_KIND_MAP:
		return "map"
	}
	if n, ok := names[t.GetKind()]; ok {
		return n
	}
	return t.GetKind().String()
}

func parsePrimitive(name string) (*planv1.Type, error) {
	if kind, ok := primitives[name]; ok {
		return &planv1.Type{Kind: kind}, nil
	}
	if m := decimalText.FindStringSubmatch(name); m != nil {
		p, err1 := strconv.ParseInt(m[1], 10, 32)
		s, err2 := strconv.ParseInt(m[2], 10, 32)
		if err1 != nil || err2 != nil || p < 1 || p > 38 || s > p {
			return nil, fmt.Errorf("%w: type %s: precision must be 1 to 38, and the scale at most the precision", ErrUnsupported, name)
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: int32(p), Scale: int32(s)}, nil
	}
	if m := fixedText.FindStringSubmatch(name); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: type %s: the length must be positive", ErrUnsupported, name)
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: int32(n)}, nil
	}
	return nil, fmt.Errorf("type %s is %w by Signet", name, ErrUnsupported)
}

type jsonType struct {
	Type            string          `json:"type"`
	Fields          []jsonField     `json:"fields"`
	ElementID       int32           `json:"element-id"`
	Element         json.RawMessage `json:"element"`
	ElementRequired bool            `json:"element-required"`
	KeyID           int32           `json:"key-id"`
	Key             json.RawMessage `json:"key"`
	ValueID         int32           `json:"value-id"`
	Value           json.RawMessage `json:"value"`
	ValueRequired   bool            `json:"value-required"`
}

type jsonField struct {
	ID             int32           `json:"id"`
	Name           string          `json:"name"`
	Required       bool            `json:"required"`
	Type           json.RawMessage `json:"type"`
	Doc            string          `json:"doc,omitempty"`
	InitialDefault json.RawMessage `json:"initial-default,omitempty"`
	WriteDefault   json.RawMessage `json:"write-default,omitempty"`
}

// parser collects what plan.v1 has no place for.
type parser struct {
	initial map[int32]bool
}

func (p *parser) typ(raw json.RawMessage, path string, depth int) (*planv1.Type, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("column %s: types nested deeper than %d are %w", path, maxDepth, ErrUnsupported)
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, fmt.Errorf("column %s: %w", path, err)
		}
		t, err := parsePrimitive(name)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", path, err)
		}
		return t, nil
	}
	var j jsonType
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("column %s: %w", path, err)
	}
	return p.nested(&j, path, depth+1)
}

func (p *parser) nested(j *jsonType, path string, depth int) (*planv1.Type, error) {
	child := func(name string, id int32, raw json.RawMessage, required bool) (*planv1.Field, error) {
		t, err := p.typ(raw, path+"."+name, depth)
		if err != nil {
			return nil, err
		}
		return &planv1.Field{Id: id, Name: name, Type: t, Required: required}, nil
	}
	switch j.Type {
	case "struct":
		fields, err := p.fields(j.Fields, path+".", depth)
		if err != nil {
			return nil, err
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: fields}, nil
	case "list":
		e, err := child("element", j.ElementID, j.Element, j.ElementRequired)
		if err != nil {
			return nil, err
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{e}}, nil
	case "map":
		k, err := child("key", j.KeyID, j.Key, true)
		if err != nil {
			return nil, err
		}
		v, err := child("value", j.ValueID, j.Value, j.ValueRequired)
		if err != nil {
			return nil, err
		}
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{k, v}}, nil
	}
	return nil, fmt.Errorf("column %s: type %q is %w by Signet", path, j.Type, ErrUnsupported)
}

func (p *parser) fields(in []jsonField, prefix string, depth int) ([]*planv1.Field, error) {
	out := make([]*planv1.Field, 0, len(in))
	for i := range in {
		j := &in[i]
		t, err := p.typ(j.Type, prefix+j.Name, depth)
		if err != nil {
			return nil, err
		}
		f := &planv1.Field{Id: j.ID, Name: j.Name, Type: t, Required: j.Required, Doc: j.Doc}
		if !isNull(j.InitialDefault) {
			p.initial[j.ID] = true
			if f.InitialDefault, err = ParseValue(t, j.InitialDefault); err != nil && !errors.Is(err, ErrUnsupported) {
				return nil, fmt.Errorf("column %s: initial-default %s: %w", prefix+j.Name, j.InitialDefault, err)
			}
		}
		if !isNull(j.WriteDefault) {
			if f.WriteDefault, err = ParseValue(t, j.WriteDefault); err != nil {
				return nil, fmt.Errorf("column %s: write-default %s: %w", prefix+j.Name, j.WriteDefault, err)
			}
		}
		out = append(out, f)
	}
	return out, nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// typeJSON is the JSON form of a type.
func typeJSON(t *planv1.Type) (any, error) {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL, planv1.TypeKind_TYPE_KIND_FIXED:
		return TypeName(t), nil
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		fields, err := fieldsJSON(t.GetFields())
		return struct {
			Type   string      `json:"type"`
			Fields []jsonField `json:"fields"`
		}{"struct", fields}, err
	case planv1.TypeKind_TYPE_KIND_LIST:
		e := t.GetFields()[0]
		el, err := typeJSON(e.GetType())
		return struct {
			Type     string `json:"type"`
			ID       int32  `json:"element-id"`
			Element  any    `json:"element"`
			Required bool   `json:"element-required"`
		}{"list", e.GetId(), el, e.GetRequired()}, err
	case planv1.TypeKind_TYPE_KIND_MAP:
		k, v := t.GetFields()[0], t.GetFields()[1]
		kt, err := typeJSON(k.GetType())
		if err != nil {
			return nil, err
		}
		vt, err := typeJSON(v.GetType())
		return struct {
			Type     string `json:"type"`
			KeyID    int32  `json:"key-id"`
			Key      any    `json:"key"`
			ValueID  int32  `json:"value-id"`
			Value    any    `json:"value"`
			Required bool   `json:"value-required"`
		}{"map", k.GetId(), kt, v.GetId(), vt, v.GetRequired()}, err
	}
	if n, ok := names[t.GetKind()]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("type %s is %w", t.GetKind(), ErrUnsupported)
}

func fieldsJSON(in []*planv1.Field) ([]jsonField, error) {
	out := make([]jsonField, 0, len(in))
	for _, f := range in {
		t, err := typeJSON(f.GetType())
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.GetName(), err)
		}
		raw, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		j := jsonField{ID: f.GetId(), Name: f.GetName(), Required: f.GetRequired(), Type: raw, Doc: f.GetDoc()}
		if f.GetInitialDefault().GetKind() != nil {
			if j.InitialDefault, err = FormatValue(f.GetType(), f.GetInitialDefault()); err != nil {
				return nil, fmt.Errorf("column %s: initial default: %w", f.GetName(), err)
			}
		}
		if f.GetWriteDefault().GetKind() != nil {
			if j.WriteDefault, err = FormatValue(f.GetType(), f.GetWriteDefault()); err != nil {
				return nil, fmt.Errorf("column %s: default: %w", f.GetName(), err)
			}
		}
		out = append(out, j)
	}
	return out, nil
}
