package ast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Value is an *Object, an *Array or a Raw.
type Value interface{ write(*bytes.Buffer) }

// Raw is a scalar, or a constant node that nobody needs to look into, as it came.
type Raw []byte

// Array is a JSON array.
type Array struct{ Items []Value }

// Object is a JSON object with its members in order.
type Object struct {
	keys []string
	vals []Value
}

var errSyntax = errors.New("malformed JSON")

// maxDepth bounds the nesting of what is parsed; DuckDB's own parser allows 1,000 levels of expressions.
const maxDepth = 20_000

// Parse reads one JSON value. The result refers to data.
func Parse(data []byte) (Value, error) {
	p := &parser{data: data}
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("%w at byte %d", err, p.pos)
	}
	if p.space(); p.pos != len(p.data) {
		return nil, fmt.Errorf("%w: more after byte %d", errSyntax, p.pos)
	}
	return v, nil
}

// Bytes writes a value.
func Bytes(v Value) []byte {
	var b bytes.Buffer
	v.write(&b)
	return b.Bytes()
}

func (r Raw) write(b *bytes.Buffer) { b.Write(r) }

func (a *Array) write(b *bytes.Buffer) {
	b.WriteByte('[')
	for i, v := range a.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		v.write(b)
	}
	b.WriteByte(']')
}

func (o *Object) write(b *bytes.Buffer) {
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(String(k))
		b.WriteByte(':')
		o.vals[i].write(b)
	}
	b.WriteByte('}')
}

// Get answers a member; nil if there is none.
func (o *Object) Get(key string) Value {
	for i, k := range o.keys {
		if k == key {
			return o.vals[i]
		}
	}
	return nil
}

// Set replaces or adds a member.
func (o *Object) Set(key string, v Value) {
	for i, k := range o.keys {
		if k == key {
			o.vals[i] = v
			return
		}
	}
	o.keys, o.vals = append(o.keys, key), append(o.vals, v)
}

// Replace makes o the same as n.
func (o *Object) Replace(n *Object) { o.keys, o.vals = n.keys, n.vals }

// Each calls f for every member; f may replace the value.
func (o *Object) Each(f func(key string, v Value) error) error {
	for i := 0; i < len(o.keys); i++ {
		if err := f(o.keys[i], o.vals[i]); err != nil {
			return err
		}
	}
	return nil
}

// Str answers a string member; "" if there is none or it is no string.
func (o *Object) Str(key string) string { return Text(o.Get(key)) }

// Obj answers an object member; nil if it is none.
func (o *Object) Obj(key string) *Object {
	v, _ := o.Get(key).(*Object)
	return v
}

// List answers the items of an array member.
func (o *Object) List(key string) []Value {
	if a, ok := o.Get(key).(*Array); ok {
		return a.Items
	}
	return nil
}

// Text decodes a JSON string; "" for everything else.
func Text(v Value) string {
	r, ok := v.(Raw)
	if !ok || len(r) < 2 || r[0] != '"' {
		return ""
	}
	if bytes.IndexByte(r, '\\') < 0 {
		return string(r[1 : len(r)-1])
	}
	var s string
	if json.Unmarshal(r, &s) != nil {
		return ""
	}
	return s
}

// IsNull reports a missing member or a JSON null.
func IsNull(v Value) bool {
	r, ok := v.(Raw)
	return v == nil || ok && string(r) == "null"
}

// String encodes a string.
func String(s string) Raw {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // a string always encodes
		return Raw(`""`)
	}
	return Raw(bytes.TrimRight(b.Bytes(), "\n"))
}

// New makes an object of keys and values in turn; strings become JSON strings.
func New(members ...any) *Object {
	o := &Object{}
	for i := 0; i+1 < len(members); i += 2 {
		v, ok := members[i+1].(Value)
		if s, isString := members[i+1].(string); isString {
			v, ok = String(s), true
		}
		if !ok {
			v = Raw("null")
		}
		key, _ := members[i].(string)
		o.Set(key, v)
	}
	return o
}
