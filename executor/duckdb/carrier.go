package duckdb

import "fmt"

// A carrier is the type as which a column travels in an exchange's Parquet files, so that it comes back exactly: the type itself where
// Parquet keeps it, text where it would change it (HUGEINT becomes a DOUBLE there, ENUM a string, TIMESTAMP_S overflows). DuckDB's own
// text of INTERVAL and TIME WITH TIME ZONE does not always read back as the same value, so those are spelled out.
//
// Types that are not here have no exact form: VARIANT and GEOMETRY come back as another type or lose what they hold, and what a later DuckDB
// brings is not known.
var carriers = map[string]string{
	"BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INTEGER": "INTEGER", "BIGINT": "BIGINT",
	"UTINYINT": "UTINYINT", "USMALLINT": "USMALLINT", "UINTEGER": "UINTEGER", "UBIGINT": "UBIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE",
	"DATE": "DATE", "TIME": "TIME", "TIME_NS": "TIME_NS", "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_NS": "TIMESTAMP_NS",
	"TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE", "VARCHAR": "VARCHAR", "JSON": "JSON", "BLOB": "BLOB", "UUID": "UUID",
	"HUGEINT": "VARCHAR", "UHUGEINT": "VARCHAR", "BIGNUM": "VARCHAR", "BIT": "VARCHAR", "ENUM": "VARCHAR", "TIMESTAMP_S": "VARCHAR",
	"TIMESTAMP_MS": "VARCHAR", "INTERVAL": "VARCHAR", "TIME WITH TIME ZONE": "VARCHAR", `"NULL"`: "INTEGER",
}

// Carrier is the type that stands for an engine type in an exchange; false if none keeps it exactly.
func Carrier(engine string) (string, bool) {
	t, err := parseEngineType(engine)
	if err != nil {
		return "", false
	}
	c, ok := t.carrier(false)
	if !ok {
		return "", false
	}
	return c.String(), true
}

// ToCarrier writes the expression that turns a column into its carrier.
func ToCarrier(expr, engine string) (string, error) {
	t, err := parseEngineType(engine)
	if err != nil {
		return "", err
	}
	if _, ok := t.carrier(false); !ok {
		return "", fmt.Errorf("type %s cannot be carried in an exchange", engine)
	}
	return t.encode(expr, 0), nil
}

// FromCarrier writes the expression that turns a carrier back into the column.
func FromCarrier(expr, engine string) (string, error) {
	carrier, ok := Carrier(engine)
	if !ok {
		return "", fmt.Errorf("type %s cannot be carried in an exchange", engine)
	}
	if carrier != engine {
		expr = "CAST(" + expr + " AS " + carrier + ")" // a union is a struct in Parquet
	}
	return "CAST(" + expr + " AS " + engine + ")", nil
}

// carrier answers the type that stands for t. Inside of a union nothing can be spelled out.
func (t *engineType) carrier(inUnion bool) (*engineType, bool) {
	switch t.name {
	case "DECIMAL":
		return t, true
	case "STRUCT", "UNION", "MAP", "LIST", "ARRAY":
		out := &engineType{name: t.name, fields: make([]engineField, len(t.fields))}
		if t.name == "ARRAY" {
			out.name = "LIST"
		}
		for n, f := range t.fields {
			inner, ok := f.typ.carrier(inUnion || t.name == "UNION")
			if !ok {
				return nil, false
			}
			out.fields[n] = engineField{f.name, inner}
		}
		return out, true
	default:
		if inUnion && t.spelled() {
			return nil, false
		}
		name, ok := carriers[t.name]
		return &engineType{name: name}, ok
	}
}

// stored is what DuckDB reads back of a carrier: the carrier itself, but that a union is a struct with its tag.
func (t *engineType) stored() (string, bool) {
	c, ok := t.carrier(false)
	if !ok {
		return "", false
	}
	return c.withoutUnions().String(), true
}

func (t *engineType) withoutUnions() *engineType {
	if len(t.fields) == 0 {
		return t
	}
	out := &engineType{name: t.name, text: t.text}
	if t.name == "UNION" {
		out.name, out.fields = "STRUCT", []engineField{{"", &engineType{name: "UTINYINT"}}}
	}
	for _, f := range t.fields {
		out.fields = append(out.fields, engineField{f.name, f.typ.withoutUnions()})
	}
	return out
}

// spelled tells whether the type, or one in it, needs more than a cast.
func (t *engineType) spelled() bool {
	if t.name == "INTERVAL" || t.name == "TIME WITH TIME ZONE" {
		return true
	}
	for _, f := range t.fields {
		if f.typ.spelled() {
			return true
		}
	}
	return false
}

func (t *engineType) encode(expr string, depth int) string {
	if !t.spelled() {
		c, _ := t.carrier(false)
		if name := c.String(); name != t.String() {
			return "CAST(" + expr + " AS " + name + ")"
		}
		return expr
	}
	e := fmt.Sprintf("e%d", depth)
	switch t.name {
	case "INTERVAL":
		return spellInterval(expr)
	case "TIME WITH TIME ZONE":
		return spellTimeTZ(expr)
	case "LIST":
		return "list_transform(" + expr + ", lambda " + e + ": " + t.fields[0].typ.encode(e, depth+1) + ")"
	case "ARRAY":
		list := &engineType{name: "LIST", fields: t.fields}
		return list.encode("CAST("+expr+" AS "+list.String()+")", depth)
	case "MAP":
		entry := "struct_pack(key := " + t.fields[0].typ.encode(e+".key", depth+1) + ", value := " + t.fields[1].typ.encode(e+".value", depth+1) + ")"
		return "CASE WHEN " + expr + " IS NOT NULL THEN map_from_entries(list_transform(map_entries(" + expr + "), lambda " + e + ": " + entry + ")) END"
	default: // STRUCT
		out := "CASE WHEN " + expr + " IS NOT NULL THEN struct_pack("
		for n, f := range t.fields {
			if n > 0 {
				out += ", "
			}
			out += Ident(f.name) + " := " + f.typ.encode("struct_extract("+expr+", "+Literal(f.name)+")", depth+1)
		}
		return out + ") END"
	}
}

// spellInterval gives the three numbers of an interval. The microseconds come in two halves: DuckDB does not read the smallest BIGINT.
func spellInterval(x string) string {
	part := func(unit string) string { return "date_part('" + unit + "', " + x + ")" }
	months := part("year") + " * 12 + " + part("month")
	micros := "(" + part("hour") + " * 3600000000 + " + part("minute") + " * 60000000 + " + part("microseconds") + ")"
	half := "(" + micros + " // 2)"
	return "((" + months + ") || ' months ' || " + part("day") + " || ' days ' || " + half + " || ' microseconds ' || (" + micros + " - " + half + ") || ' microseconds')"
}

// spellTimeTZ gives the time and its offset down to the second. DuckDB's text leaves out minutes that are zero, whatever follows them.
func spellTimeTZ(x string) string {
	offset := "date_part('timezone', " + x + ")"
	return "(CAST(CAST(" + x + " AS TIME) AS VARCHAR) || CASE WHEN " + offset + " < 0 THEN '-' ELSE '+' END || format('{:02d}:{:02d}:{:02d}', abs(" + offset +
		") // 3600, abs(" + offset + ") // 60 % 60, abs(" + offset + ") % 60))"
}
