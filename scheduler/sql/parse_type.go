package sql

import (
	"fmt"
	"strconv"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ParseType reads a column type, in DuckDB's or in Iceberg's words.
func ParseType(text string) (*planv1.Type, error) {
	toks, err := Tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, toks: toks}
	t, err := p.typ()
	if err != nil {
		return nil, err
	}
	return t, p.end("the type")
}

// simpleTypes take no arguments.
var simpleTypes = map[string]planv1.TypeKind{
	"BOOLEAN": planv1.TypeKind_TYPE_KIND_BOOLEAN, "BOOL": planv1.TypeKind_TYPE_KIND_BOOLEAN, "LOGICAL": planv1.TypeKind_TYPE_KIND_BOOLEAN,
	"TINYINT": planv1.TypeKind_TYPE_KIND_INT8, "INT1": planv1.TypeKind_TYPE_KIND_INT8, "BYTE": planv1.TypeKind_TYPE_KIND_INT8,
	"SMALLINT": planv1.TypeKind_TYPE_KIND_INT16, "INT2": planv1.TypeKind_TYPE_KIND_INT16, "INT16": planv1.TypeKind_TYPE_KIND_INT16,
	"SHORT": planv1.TypeKind_TYPE_KIND_INT16, "INTEGER": planv1.TypeKind_TYPE_KIND_INT32, "INT": planv1.TypeKind_TYPE_KIND_INT32,
	"INT4": planv1.TypeKind_TYPE_KIND_INT32, "INT32": planv1.TypeKind_TYPE_KIND_INT32, "SIGNED": planv1.TypeKind_TYPE_KIND_INT32,
	"BIGINT": planv1.TypeKind_TYPE_KIND_INT64, "LONG": planv1.TypeKind_TYPE_KIND_INT64, "INT8": planv1.TypeKind_TYPE_KIND_INT64,
	"INT64": planv1.TypeKind_TYPE_KIND_INT64, "FLOAT": planv1.TypeKind_TYPE_KIND_FLOAT32, "REAL": planv1.TypeKind_TYPE_KIND_FLOAT32,
	"FLOAT4": planv1.TypeKind_TYPE_KIND_FLOAT32, "FLOAT32": planv1.TypeKind_TYPE_KIND_FLOAT32, "DOUBLE": planv1.TypeKind_TYPE_KIND_FLOAT64,
	"FLOAT8": planv1.TypeKind_TYPE_KIND_FLOAT64, "FLOAT64": planv1.TypeKind_TYPE_KIND_FLOAT64, "DATE": planv1.TypeKind_TYPE_KIND_DATE,
	"STRING": planv1.TypeKind_TYPE_KIND_STRING, "TEXT": planv1.TypeKind_TYPE_KIND_STRING, "VARCHAR": planv1.TypeKind_TYPE_KIND_STRING,
	"UUID": planv1.TypeKind_TYPE_KIND_UUID, "BLOB": planv1.TypeKind_TYPE_KIND_BINARY, "BYTEA": planv1.TypeKind_TYPE_KIND_BINARY,
	"VARBINARY": planv1.TypeKind_TYPE_KIND_BINARY, "TIMESTAMP_NTZ": planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS,
	"TIMESTAMP_US": planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, "TIMESTAMP_NS": planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS,
	"TIMESTAMPTZ_NS": planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS, "TIMESTAMP_LTZ": planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
}

// unstorable types exist in DuckDB but in no table format; the text says what to take instead.
var unstorable = map[string]string{
	"UTINYINT": "SMALLINT", "UINT8": "SMALLINT", "USMALLINT": "INTEGER", "UINT16": "INTEGER", "UINTEGER": "BIGINT", "UINT32": "BIGINT",
	"UBIGINT": "DECIMAL(20, 0)", "UINT64": "DECIMAL(20, 0)", "HUGEINT": "DECIMAL(38, 0)", "INT128": "DECIMAL(38, 0)",
	"UHUGEINT": "DECIMAL(38, 0)", "UINT128": "DECIMAL(38, 0)", "BIGNUM": "DECIMAL(38, 0) or VARCHAR", "VARINT": "DECIMAL(38, 0) or VARCHAR",
	"TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "DATETIME": "TIMESTAMP", "TIMETZ": "TIME", "INTERVAL": "BIGINT, or VARCHAR",
	"JSON": "VARCHAR", "ENUM": "VARCHAR", "UNION": "a STRUCT with one field for each member", "BIT": "BLOB", "BITSTRING": "BLOB",
	"VARIANT": "VARCHAR with JSON text", "GEOMETRY": "BLOB with WKB", "GEOGRAPHY": "BLOB with WKB", "CHAR": "VARCHAR", "CHARACTER": "VARCHAR", "BPCHAR": "VARCHAR",
	"NVARCHAR": "VARCHAR", "OID": "BIGINT", "UNSIGNED": "BIGINT",
}

// typ reads a type with its [] suffixes.
func (p *parser) typ() (*planv1.Type, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(fmt.Sprintf("types may nest %d levels deep", maxDepth), "")
	}
	defer func() { p.depth-- }()
	t, err := p.baseType()
	if err != nil {
		return nil, err
	}
	for levels := 0; p.peek().is("["); levels++ {
		if levels >= maxDepth {
			return nil, p.fail(fmt.Sprintf("types may nest %d levels deep", maxDepth), "")
		}
		if !p.accept("[", "]") {
			return nil, p.fail("lists of a fixed length are not supported", "write []")
		}
		t = listOf(t, false)
	}
	return t, nil
}

func listOf(element *planv1.Type, required bool) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Name: "element", Type: element, Required: required}}}
}

func mapOf(key, value *planv1.Type, required bool) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{
		{Name: "key", Type: key, Required: true}, {Name: "value", Type: value, Required: required},
	}}
}

func (p *parser) baseType() (*planv1.Type, error) {
	t := p.peek()
	word := keyword(t)
	if t.Kind == KindQuoted {
		return nil, p.fail("a type is a word without quotes", "")
	}
	if word == "" {
		return nil, p.unexpected("a type", "for example BIGINT, VARCHAR, DECIMAL(18, 2), TIMESTAMP, VARCHAR[] or STRUCT(a INTEGER)")
	}
	p.pos++
	switch word {
	case "DECIMAL", "NUMERIC", "DEC":
		return p.decimalType()
	case "TIME", "TIMESTAMP", "TIMESTAMPTZ":
		return p.timeType(t, word)
	case "FIXED", "BINARY":
		return p.fixedType(word)
	case "STRUCT", "ROW":
		return p.structType()
	case "LIST", "ARRAY":
		return p.listType()
	case "MAP":
		return p.mapType()
	case "DOUBLE":
		p.accept("PRECISION")
	}
	if kind, ok := simpleTypes[word]; ok {
		return &planv1.Type{Kind: kind}, p.noArguments(t, word)
	}
	if instead, ok := unstorable[word]; ok {
		return nil, p.failAt(t, "tables cannot store the type "+word, "use "+instead)
	}
	hint := ""
	if near := nearest(word, typeNames()); near != "" {
		hint = "did you mean " + near + "?"
	}
	return nil, p.failAt(t, "unknown type "+p.show(t), hint)
}

func typeNames() []string {
	return []string{
		"DECIMAL", "NUMERIC", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "BINARY", "FIXED", "STRUCT", "LIST", "ARRAY", "MAP", "BOOLEAN", "TINYINT",
		"SMALLINT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DATE", "STRING", "TEXT", "VARCHAR", "UUID", "BLOB",
	}
}

func (p *parser) noArguments(t Token, word string) error {
	if !p.peek().is("(") {
		return nil
	}
	if word == "VARCHAR" || word == "STRING" || word == "TEXT" {
		return p.failAt(t, "tables do not enforce a string's length", "write "+word+" without a length")
	}
	return p.fail("the type "+word+" takes no arguments", "")
}

// number reads an integer in the given range.
func (p *parser) number(what string, low, high int64) (int32, error) {
	t := p.peek()
	v, err := strconv.ParseInt(t.Value, 10, 32)
	if t.Kind != KindNumber || err != nil || v < low || v > high {
		return 0, p.unexpected(fmt.Sprintf("%s from %d to %d", what, low, high), "")
	}
	p.pos++
	return int32(v), nil
}

// decimalType: without arguments it is DuckDB's DECIMAL(18, 3), with one its scale is 0.
func (p *parser) decimalType() (*planv1.Type, error) {
	t := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 18, Scale: 3}
	if !p.accept("(") {
		return t, nil
	}
	var err error
	if t.Precision, err = p.number("a precision", 1, 38); err != nil {
		return nil, err
	}
	t.Scale = 0
	if p.accept(",") {
		if t.Scale, err = p.number("a scale", 0, int64(t.Precision)); err != nil {
			return nil, err
		}
	}
	return t, p.expect(")", "")
}

// timeType reads TIME, TIMESTAMP and TIMESTAMPTZ with digits and zone: up to 6 digits are microseconds, 7 to 9 nanoseconds.
func (p *parser) timeType(at Token, word string) (*planv1.Type, error) {
	digits, zoned := int32(6), word == "TIMESTAMPTZ"
	if p.accept("(") {
		var err error
		if digits, err = p.number("a number of digits", 0, 9); err != nil {
			return nil, err
		}
		if err := p.expect(")", ""); err != nil {
			return nil, err
		}
	}
	if !zoned {
		switch {
		case p.accept("WITH", "TIME", "ZONE"), p.accept("WITH", "LOCAL", "TIME", "ZONE"):
			zoned = true
		case p.accept("WITHOUT", "TIME", "ZONE"):
		}
	}
	kind := planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS
	switch {
	case word == "TIME" && zoned:
		return nil, p.failAt(at, "tables cannot store a time with a zone", "use TIME or TIMESTAMPTZ")
	case word == "TIME" && digits > 6:
		return nil, p.failAt(at, "tables store times in microseconds", "use TIME")
	case word == "TIME":
		kind = planv1.TypeKind_TYPE_KIND_TIME_MICROS
	case zoned && digits > 6:
		kind = planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS
	case zoned:
		kind = planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS
	case digits > 6:
		kind = planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS
	}
	return &planv1.Type{Kind: kind}, nil
}

// fixedType reads FIXED(n), FIXED[n] and BINARY(n). BINARY alone has any length.
func (p *parser) fixedType(word string) (*planv1.Type, error) {
	var closing string
	switch {
	case p.accept("("):
		closing = ")"
	case word == "FIXED" && p.accept("["):
		closing = "]"
	case word == "BINARY":
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_BINARY}, nil
	default:
		return nil, p.unexpected("a length", "for example FIXED(16)")
	}
	n, err := p.number("a length", 1, 1<<20)
	if err != nil {
		return nil, err
	}
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: n}, p.expect(closing, "")
}

// open passes the bracket that opens a type's arguments and returns the one that closes them.
func (p *parser) open(example string) (string, error) {
	switch {
	case p.accept("("):
		return ")", nil
	case p.accept("<"):
		return ">", nil
	}
	return "", p.unexpected("'(' or '<'", "for example "+example)
}

func (p *parser) listType() (*planv1.Type, error) {
	closing, err := p.open("LIST(VARCHAR), or VARCHAR[]")
	if err != nil {
		return nil, err
	}
	element, err := p.typ()
	if err != nil {
		return nil, err
	}
	return listOf(element, p.accept("NOT", "NULL")), p.expect(closing, "")
}

func (p *parser) mapType() (*planv1.Type, error) {
	closing, err := p.open("MAP(VARCHAR, BIGINT)")
	if err != nil {
		return nil, err
	}
	key, err := p.typ()
	if err != nil {
		return nil, err
	}
	p.accept("NOT", "NULL") // keys never are
	if err := p.expect(",", "a map has a key type and a value type"); err != nil {
		return nil, err
	}
	value, err := p.typ()
	if err != nil {
		return nil, err
	}
	return mapOf(key, value, p.accept("NOT", "NULL")), p.expect(closing, "")
}

// structType reads STRUCT(a INTEGER, b VARCHAR NOT NULL) and Spark's STRUCT<a: INT, b: STRING>.
func (p *parser) structType() (*planv1.Type, error) {
	closing, err := p.open("STRUCT(a INTEGER, b VARCHAR)")
	if err != nil {
		return nil, err
	}
	out := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT}
	seen := map[string]bool{}
	for {
		at := p.peek()
		id, err := p.ident("a field name")
		if err != nil {
			return nil, err
		}
		if seen[id.Text] {
			return nil, p.failAt(at, "the struct has two fields "+DisplayIdent(id.Text), "")
		}
		seen[id.Text] = true
		p.accept(":")
		f := &planv1.Field{Name: id.Text}
		if f.Type, err = p.typ(); err != nil {
			return nil, err
		}
		var options ColumnDef
		begin := p.peek()
		if err := p.columnOptions(&options); err != nil {
			return nil, err
		}
		if options.Default != nil {
			return nil, p.failAt(begin, "a field of a struct takes no DEFAULT", "give the column one, or the field a value in the query")
		}
		f.Required, f.Doc = options.Required, options.Comment
		out.Fields = append(out.Fields, f)
		if !p.accept(",") {
			return out, p.expect(closing, "fields are separated by commas")
		}
	}
}
