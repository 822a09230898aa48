package duckdb

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxTypeDepth bounds nested types: what is deeper is refused before it can exhaust a stack.
const maxTypeDepth = 64

// engineType is a DuckDB type, parsed from the spelling that TypeOf gives.
type engineType struct {
	name   string        // BIGINT, TIME WITH TIME ZONE, ...; DECIMAL, ENUM, STRUCT, UNION, MAP, LIST or ARRAY
	text   string        // of DECIMAL and ENUM: the whole; of ARRAY: its length
	fields []engineField // of STRUCT and UNION; of LIST and ARRAY the element; of MAP key and value
}

type engineField struct {
	name string
	typ  *engineType
}

// parseEngineType reads a type. Struct fields without a name are an error: no cast finds them.
func parseEngineType(text string) (*engineType, error) {
	p := &typeParser{rest: text}
	t, err := p.parse(0)
	if err == nil && p.rest != "" {
		err = fmt.Errorf("%q follows", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", text, err)
	}
	return t, nil
}

type typeParser struct{ rest string }

func (p *typeParser) parse(depth int) (*engineType, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxTypeDepth)
	}
	t, err := p.base(depth)
	for err == nil && p.take("[") {
		number, rest, ok := strings.Cut(p.rest, "]")
		if !ok {
			return nil, errors.New("missing ]")
		}
		p.rest = rest
		t = &engineType{name: "LIST", fields: []engineField{{"", t}}}
		if number != "" {
			if _, err := strconv.ParseUint(number, 10, 32); err != nil {
				return nil, fmt.Errorf("[%s] is no length", number)
			}
			t.name, t.text = "ARRAY", number
		}
		if depth++; depth > maxTypeDepth {
			return nil, fmt.Errorf("nested more than %d levels deep", maxTypeDepth)
		}
	}
	return t, err
}

func (p *typeParser) take(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *typeParser) base(depth int) (*engineType, error) {
	if strings.HasPrefix(p.rest, `"`) { // "NULL" is spelled as an identifier
		name, err := p.quoted('"')
		return &engineType{name: Ident(name)}, err
	}
	end := strings.IndexAny(p.rest, "([,)")
	if end < 0 {
		end = len(p.rest)
	}
	name := strings.ToUpper(strings.TrimSpace(p.rest[:end]))
	p.rest = p.rest[end:]
	switch {
	case name == "":
		return nil, errors.New("no name")
	case !p.take("("):
		return &engineType{name: name}, nil
	case name == "STRUCT" || name == "UNION":
		fields, err := p.fields(depth)
		return &engineType{name: name, fields: fields}, err
	case name == "MAP":
		return p.mapEntry(depth)
	case name == "DECIMAL", name == "ENUM":
		args, err := p.arguments()
		return &engineType{name: name, text: name + "(" + args + ")"}, err
	default:
		return nil, fmt.Errorf("%s(...) is not known", name)
	}
}

func (p *typeParser) fields(depth int) ([]engineField, error) {
	var out []engineField
	for {
		var name string
		if strings.HasPrefix(p.rest, `"`) {
			var err error
			if name, err = p.quoted('"'); err != nil {
				return nil, err
			}
			if !p.take(" ") {
				return nil, fmt.Errorf("field %q has no type", name)
			}
		} else {
			var ok bool
			if name, p.rest, ok = strings.Cut(p.rest, " "); !ok {
				return nil, errors.New("a field has no name or no type")
			}
		}
		if name == "" {
			return nil, errors.New("a field has no name")
		}
		t, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, engineField{name, t})
		switch {
		case p.take(", "), p.take(","):
		case p.take(")"):
			return out, nil
		default:
			return nil, errors.New("missing )")
		}
	}
}

func (p *typeParser) mapEntry(depth int) (*engineType, error) {
	key, err := p.parse(depth + 1)
	if err != nil {
		return nil, err
	}
	if !p.take(", ") && !p.take(",") {
		return nil, errors.New("MAP without a value")
	}
	value, err := p.parse(depth + 1)
	if err == nil && !p.take(")") {
		err = errors.New("missing )")
	}
	return &engineType{name: "MAP", fields: []engineField{{"key", key}, {"value", value}}}, err
}

// arguments reads up to the closing bracket; brackets in strings do not count.
func (p *typeParser) arguments() (string, error) {
	whole := p.rest
	for p.rest != "" {
		switch p.rest[0] {
		case '\'':
			if _, err := p.quoted('\''); err != nil {
				return "", err
			}
		case ')':
			args := whole[:len(whole)-len(p.rest)]
			p.rest = p.rest[1:]
			return args, nil
		default:
			p.rest = p.rest[1:]
		}
	}
	return "", errors.New("missing )")
}

func (p *typeParser) quoted(quote byte) (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] != quote {
			b.WriteByte(p.rest[i])
			continue
		}
		if i+1 < len(p.rest) && p.rest[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		p.rest = p.rest[i+1:]
		return b.String(), nil
	}
	return "", errors.New("a quote is not closed")
}

// String is the type as TypeOf spells it.
func (t *engineType) String() string {
	switch t.name {
	case "DECIMAL", "ENUM":
		return t.text
	case "LIST":
		return t.fields[0].typ.String() + "[]"
	case "ARRAY":
		return t.fields[0].typ.String() + "[" + t.text + "]"
	case "MAP":
		return "MAP(" + t.fields[0].typ.String() + ", " + t.fields[1].typ.String() + ")"
	case "STRUCT", "UNION":
		parts := make([]string, len(t.fields))
		for n, f := range t.fields {
			parts[n] = Ident(f.name) + " " + f.typ.String()
		}
		return t.name + "(" + strings.Join(parts, ", ") + ")"
	default:
		return t.name
	}
}
