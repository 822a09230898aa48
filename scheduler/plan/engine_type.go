package plan

import (
	"fmt"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// EngineType is a DuckDB type. It has more kinds than a table can store: planv1.Type would lose them.
type EngineType struct {
	Name      string // upper case: INTEGER, DECIMAL, STRUCT, LIST, ARRAY, MAP, ENUM, UNION, "NULL", …
	Precision int32  // DECIMAL
	Scale     int32  // DECIMAL
	Size      int64  // ARRAY
	Fields    []EngineField
	Values    []string // ENUM
}

// EngineField is a member of a STRUCT or UNION, the element of a LIST or ARRAY, or the key and value of a MAP.
type EngineField struct {
	Name string // empty: row(1, 'x') makes structs whose fields have no names
	Type EngineType
}

// String writes the type as DuckDB does.
func (t EngineType) String() string {
	switch t.Name {
	case "NULL":
		return `"NULL"`
	case "DECIMAL":
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case "LIST":
		return t.Fields[0].Type.String() + "[]"
	case "ARRAY":
		return t.Fields[0].Type.String() + "[" + strconv.FormatInt(t.Size, 10) + "]"
	case "MAP":
		return "MAP(" + t.Fields[0].Type.String() + ", " + t.Fields[1].Type.String() + ")"
	case "STRUCT", "UNION":
		return t.Name + "(" + joinFields(t.Fields) + ")"
	case "ENUM":
		quoted := make([]string, len(t.Values))
		for i, v := range t.Values {
			quoted[i] = sql.QuoteString(v)
		}
		return "ENUM(" + strings.Join(quoted, ", ") + ")"
	}
	return t.Name
}

func joinFields(fields []EngineField) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Type.String()
		if f.Name != "" {
			parts[i] = sql.DisplayIdent(f.Name) + " " + parts[i]
		}
	}
	return strings.Join(parts, ", ")
}

// maxTypeDepth bounds nesting, so that no text exhausts the stack.
const maxTypeDepth = 128

// ParseEngineType reads a type as DuckDB's DESCRIBE and typeof print it. A name it does not know is kept: it is a type that no table
// stores.
func ParseEngineType(text string) (EngineType, error) {
	toks, err := sql.Tokenize(text)
	if err != nil {
		return EngineType{}, fmt.Errorf("DuckDB type %q: %w", text, err)
	}
	p := &typeParser{text: text, toks: toks}
	t, err := p.typ()
	if err == nil && p.pos < len(p.toks) {
		err = p.fail("the end")
	}
	return t, err
}

type typeParser struct {
	text  string
	toks  []sql.Token
	pos   int
	depth int
}

func (p *typeParser) at(off int) sql.Token {
	if i := p.pos + off; i < len(p.toks) {
		return p.toks[i]
	}
	return sql.Token{}
}

func (p *typeParser) symbol(off int, s string) bool {
	t := p.at(off)
	return t.Kind == sql.KindSymbol && t.Value == s
}

func (p *typeParser) accept(s string) bool {
	if p.symbol(0, s) {
		p.pos++
		return true
	}
	return false
}

func (p *typeParser) fail(wanted string) error {
	return fmt.Errorf("DuckDB type %q: expected %s at byte %d", p.text, wanted, p.at(0).Start)
}

func (p *typeParser) typ() (EngineType, error) {
	if p.depth++; p.depth > maxTypeDepth {
		return EngineType{}, fmt.Errorf("DuckDB type of more than %d levels", maxTypeDepth)
	}
	defer func() { p.depth-- }()
	t, err := p.base()
	for levels := 0; err == nil && p.accept("["); levels++ {
		outer := EngineType{Name: "LIST", Fields: []EngineField{{Name: "element", Type: t}}}
		if n := p.at(0); n.Kind == sql.KindNumber {
			outer.Name = "ARRAY"
			if outer.Size, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
				return t, p.fail("a length")
			}
			p.pos++
		}
		if !p.accept("]") || levels >= maxTypeDepth {
			return t, p.fail("']'")
		}
		t = outer
	}
	return t, err
}

// engineAliases are names by which the same type goes in DuckDB's output and in casts.
var engineAliases = map[string]string{
	"INT": "INTEGER", "INT4": "INTEGER", "LONG": "BIGINT", "INT8": "BIGINT", "SHORT": "SMALLINT", "INT2": "SMALLINT", "INT1": "TINYINT",
	"TEXT": "VARCHAR", "STRING": "VARCHAR", "BOOL": "BOOLEAN", "REAL": "FLOAT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE", "BYTEA": "BLOB",
	"BINARY": "BLOB", "VARBINARY": "BLOB", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "TIMETZ": "TIME WITH TIME ZONE",
	"DATETIME": "TIMESTAMP", "TIMESTAMP_US": "TIMESTAMP", "NUMERIC": "DECIMAL", "VARINT": "BIGNUM",
}

func (p *typeParser) base() (EngineType, error) {
	t := p.at(0)
	if t.Kind != sql.KindIdent && t.Kind != sql.KindQuoted {
		return EngineType{}, p.fail("a type")
	}
	p.pos++
	name := strings.ToUpper(t.Value)
	if alias, ok := engineAliases[name]; ok {
		name = alias
	}
	out := EngineType{Name: name}
	switch name {
	case "DECIMAL":
		return p.decimal()
	case "STRUCT", "UNION":
		return p.fields(out)
	case "MAP":
		return p.mapType()
	case "ENUM":
		return p.enum()
	case "TIMESTAMP", "TIME":
		if p.word(0, "WITH") && p.word(1, "TIME") && p.word(2, "ZONE") {
			p.pos += 3
			out.Name += " WITH TIME ZONE"
		}
	default:
		p.skipArguments()
	}
	return out, nil
}

func (p *typeParser) word(off int, w string) bool {
	t := p.at(off)
	return t.Kind == sql.KindIdent && strings.EqualFold(t.Value, w)
}

// skipArguments passes the arguments of a type that is only carried along, such as GEOMETRY('OGC:CRS84').
func (p *typeParser) skipArguments() {
	if !p.symbol(0, "(") {
		return
	}
	depth := 0
	for p.pos < len(p.toks) {
		switch {
		case p.symbol(0, "("):
			depth++
		case p.symbol(0, ")"):
			depth--
		}
		p.pos++
		if depth == 0 {
			return
		}
	}
}

func (p *typeParser) decimal() (EngineType, error) {
	out := EngineType{Name: "DECIMAL", Precision: 18, Scale: 3}
	if !p.accept("(") {
		return out, nil
	}
	var err error
	if out.Precision, err = p.number(); err != nil {
		return out, err
	}
	out.Scale = 0
	if p.accept(",") {
		if out.Scale, err = p.number(); err != nil {
			return out, err
		}
	}
	if !p.accept(")") {
		return out, p.fail("')'")
	}
	if out.Precision < 1 || out.Precision > 38 || out.Scale > out.Precision {
		return out, fmt.Errorf("DuckDB type %q: no such decimal", p.text)
	}
	return out, nil
}

func (p *typeParser) number() (int32, error) {
	t := p.at(0)
	v, err := strconv.ParseInt(t.Value, 10, 32)
	if t.Kind != sql.KindNumber || err != nil {
		return 0, p.fail("a number")
	}
	p.pos++
	return int32(v), nil
}

func (p *typeParser) enum() (EngineType, error) {
	out := EngineType{Name: "ENUM"}
	if !p.accept("(") {
		return out, nil
	}
	for {
		t := p.at(0)
		if t.Kind != sql.KindString {
			return out, p.fail("a value")
		}
		p.pos++
		out.Values = append(out.Values, t.Value)
		if p.accept(",") {
			continue
		}
		if !p.accept(")") {
			return out, p.fail("')'")
		}
		return out, nil
	}
}

func (p *typeParser) mapType() (EngineType, error) {
	out := EngineType{Name: "MAP"}
	if !p.accept("(") {
		return out, p.fail("'('")
	}
	key, err := p.typ()
	if err != nil {
		return out, err
	}
	if !p.accept(",") {
		return out, p.fail("','")
	}
	value, err := p.typ()
	if err != nil {
		return out, err
	}
	if !p.accept(")") {
		return out, p.fail("')'")
	}
	out.Fields = []EngineField{{Name: "key", Type: key}, {Name: "value", Type: value}}
	return out, nil
}

// fields reads the members of a STRUCT or UNION. A member is a name and a type, or a type alone: a name is always followed by the
// first word of its type, a type alone never is.
func (p *typeParser) fields(out EngineType) (EngineType, error) {
	if !p.accept("(") {
		return out, p.fail("'('")
	}
	for {
		var f EngineField
		named := p.at(1).Kind == sql.KindQuoted || p.at(1).Kind == sql.KindIdent && !p.word(1, "WITH")
		if named {
			f.Name = p.at(0).Value
			p.pos++
		}
		var err error
		if f.Type, err = p.typ(); err != nil {
			return out, err
		}
		out.Fields = append(out.Fields, f)
		if p.accept(",") {
			continue
		}
		if !p.accept(")") {
			return out, p.fail("')'")
		}
		return out, nil
	}
}

// engineTypeOf gives a query column's type: by DuckDB's own name, or by the storable type where only that is known.
func engineTypeOf(c *planv1.Column) (EngineType, error) {
	if c.GetEngineType() != "" {
		return ParseEngineType(c.GetEngineType())
	}
	text, err := CastType(c.GetType())
	if err != nil {
		return EngineType{}, err
	}
	return ParseEngineType(text)
}
