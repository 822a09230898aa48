package ast

import "bytes"

type parser struct {
	data []byte
	pos  int
}

// constantPrefix opens every constant in DuckDB's rendering.
var constantPrefix = []byte(`{"class":"CONSTANT"`)

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (Value, error) {
	p.space()
	if p.pos >= len(p.data) || depth > maxDepth {
		return nil, errSyntax
	}
	switch p.data[p.pos] {
	case '{':
		if bytes.HasPrefix(p.data[p.pos:], constantPrefix) {
			return p.skip()
		}
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.str()
	default:
		return p.scalar()
	}
}

func (p *parser) object(depth int) (Value, error) {
	o := &Object{}
	p.pos++
	for first := true; ; first = false {
		p.space()
		if p.pos < len(p.data) && p.data[p.pos] == '}' {
			p.pos++
			return o, nil
		}
		if !first && !p.take(',') {
			return nil, errSyntax
		}
		p.space()
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(':') {
			return nil, errSyntax
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.keys, o.vals = append(o.keys, Text(key)), append(o.vals, v)
	}
}

func (p *parser) array(depth int) (Value, error) {
	a := &Array{}
	p.pos++
	for first := true; ; first = false {
		p.space()
		if p.pos < len(p.data) && p.data[p.pos] == ']' {
			p.pos++
			return a, nil
		}
		if !first && !p.take(',') {
			return nil, errSyntax
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		a.Items = append(a.Items, v)
	}
}

func (p *parser) take(c byte) bool {
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) str() (Raw, error) {
	start := p.pos
	if !p.take('"') {
		return nil, errSyntax
	}
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case '\\':
			p.pos += 2
		case '"':
			p.pos++
			return Raw(p.data[start:p.pos]), nil
		default:
			p.pos++
		}
	}
	return nil, errSyntax
}

func (p *parser) scalar() (Value, error) {
	start := p.pos
	for p.pos < len(p.data) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(p.data[p.pos])) {
		p.pos++
	}
	if p.pos == start {
		return nil, errSyntax
	}
	return Raw(p.data[start:p.pos]), nil
}

// skip passes over an object without looking into it.
func (p *parser) skip() (Value, error) {
	start, open := p.pos, 0
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case '"':
			if _, err := p.str(); err != nil {
				return nil, err
			}
			continue
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				p.pos++
				return Raw(p.data[start:p.pos]), nil
			}
		}
		p.pos++
	}
	return nil, errSyntax
}

// Constant answers the value of a constant node: its text, whether it is a string, whether it is NULL. ok is false for other nodes.
func Constant(v Value) (text string, isString, isNull, ok bool) {
	r, raw := v.(Raw)
	if !raw || !bytes.HasPrefix(r, constantPrefix) {
		return "", false, false, false
	}
	p := &parser{data: r}
	node, err := p.object(0)
	if err != nil {
		return "", false, false, false
	}
	value := node.(*Object).Obj("value")
	if value == nil {
		return "", false, false, false
	}
	if string(rawOf(value.Get("is_null"))) == "true" {
		return "", false, true, true
	}
	if t := value.Obj("type"); t != nil && t.Str("id") == "VARCHAR" {
		return value.Str("value"), true, false, true
	}
	return string(rawOf(value.Get("value"))), false, false, true
}

// ConstantKind is Constant without the text, for long lists.
func ConstantKind(v Value) (isString, isNull, ok bool) {
	r, raw := v.(Raw)
	if !raw || !bytes.HasPrefix(r, constantPrefix) {
		return false, false, false
	}
	// quotes inside texts are escaped, so these can only be the members
	return bytes.Contains(r, []byte(`"value":{"type":{"id":"VARCHAR"`)) && bytes.Contains(r, []byte(`"is_null":false`)),
		bytes.Contains(r, []byte(`"is_null":true`)), true
}

// Alias answers the alias of an expression node, constants included.
func Alias(v Value) string {
	switch n := v.(type) {
	case *Object:
		return n.Str("alias")
	case Raw:
		if bytes.HasPrefix(n, constantPrefix) {
			if o, err := (&parser{data: n}).object(0); err == nil {
				return o.(*Object).Str("alias")
			}
		}
	}
	return ""
}

func rawOf(v Value) Raw {
	r, _ := v.(Raw)
	return r
}

// Unname answers a constant node without its alias.
func Unname(v Value) Value { return Named(v, "") }

// Named answers a constant node with an alias; other nodes as they are.
func Named(v Value, alias string) Value {
	r, ok := v.(Raw)
	if !ok || !bytes.HasPrefix(r, constantPrefix) {
		return v
	}
	node, err := (&parser{data: r}).object(0)
	if err != nil {
		return v
	}
	o, _ := node.(*Object)
	o.Set("alias", String(alias))
	return Raw(Bytes(o))
}

// Node opens a constant node; nil for everything else.
func Node(v Value) *Object {
	r, ok := v.(Raw)
	if !ok || !bytes.HasPrefix(r, constantPrefix) {
		return nil
	}
	node, err := (&parser{data: r}).object(0)
	if err != nil {
		return nil
	}
	o, _ := node.(*Object)
	return o
}
