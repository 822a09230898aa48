package valueslist

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Limits of what is read. Larger lists are DuckDB's, which is faster per row.
const (
	maxText = 64 << 10 // bytes
	maxRows = 1000
)

// Kind of a constant.
type Kind int8

// The kinds.
const (
	Null Kind = iota
	Integer
	String
	Boolean
)

// Value is one constant.
type Value struct {
	Kind    Kind
	Integer int64 // Boolean: 0 or 1
	Text    string
	wide    bool // Integer: DuckDB gives it 64 bits
}

// List is a VALUES list.
type List struct {
	Text  string // the statement without what stands around it
	Rows  [][]Value
	kinds []Kind // by column; Null: it has nothing else
	wide  []bool // by column of integers: they have 64 bits
}

// Parse reads a statement; false: it is not such a list, or may not be.
func Parse(sql string) (*List, bool) {
	if len(sql) > maxText || !utf8.ValidString(sql) || strings.IndexByte(sql, 0) >= 0 {
		return nil, false
	}
	r := &reader{rest: strings.Trim(sql, space)}
	if r.rest = strings.TrimRight(strings.TrimSuffix(r.rest, ";"), space); !r.keyword("VALUES") {
		return nil, false
	}
	l := &List{Text: strings.TrimRight(strings.TrimSuffix(strings.Trim(sql, space), ";"), space)}
	for {
		row, ok := r.row()
		if !ok || len(l.Rows) == maxRows || !l.add(row) {
			return nil, false
		}
		if r.rest == "" {
			return l, true
		}
		if !r.symbol(',') {
			return nil, false
		}
	}
}

// add takes a row whose values fit the columns.
func (l *List) add(row []Value) bool {
	if l.kinds == nil {
		l.kinds, l.wide = make([]Kind, len(row)), make([]bool, len(row))
	}
	if len(row) != len(l.kinds) {
		return false
	}
	for i, v := range row {
		switch {
		case v.Kind == Null:
		case l.kinds[i] != Null && l.kinds[i] != v.Kind:
			return false
		default:
			l.kinds[i] = v.Kind
			l.wide[i] = l.wide[i] || v.wide
		}
	}
	l.Rows = append(l.Rows, row)
	return true
}

// Columns are the list's columns as DuckDB binds them.
func (l *List) Columns() []*planv1.Column {
	out := make([]*planv1.Column, len(l.kinds))
	for i, k := range l.kinds {
		c := &planv1.Column{Name: "col" + strconv.Itoa(i)}
		kind := planv1.TypeKind_TYPE_KIND_INT32
		c.EngineType = "INTEGER" // also that of a column of NULLs
		switch {
		case k == String:
			kind, c.EngineType = planv1.TypeKind_TYPE_KIND_STRING, "VARCHAR"
		case k == Boolean:
			kind, c.EngineType = planv1.TypeKind_TYPE_KIND_BOOLEAN, "BOOLEAN"
		case l.wide[i]:
			kind, c.EngineType = planv1.TypeKind_TYPE_KIND_INT64, "BIGINT"
		}
		c.Type = &planv1.Type{Kind: kind}
		out[i] = c
	}
	return out
}

// Literals are the columns as an analysis tells them: strings of the statement's text take the type of the column that they go into, and so do NULLs.
func (l *List) Literals() []*planv1.Column {
	out := l.Columns()
	for i, k := range l.kinds {
		switch k {
		case String:
			out[i].StringLiteral = true
		case Null:
			out[i].StringLiteral, out[i].EngineType = true, `"NULL"`
			out[i].Type = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}
		}
	}
	return out
}

const space = " \t\r\n"

// reader takes a text apart from its front.
type reader struct{ rest string }

func (r *reader) skip() { r.rest = strings.TrimLeft(r.rest, space) }

func (r *reader) symbol(c byte) bool {
	r.skip()
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	r.skip()
	return true
}

// keyword takes a word that ends where no letter, digit or quote follows.
func (r *reader) keyword(word string) bool {
	if len(r.rest) < len(word) || !strings.EqualFold(r.rest[:len(word)], word) {
		return false
	}
	if rest := r.rest[len(word):]; rest == "" || strings.IndexByte(space+",()", rest[0]) >= 0 {
		r.rest = rest
		r.skip()
		return true
	}
	return false
}

func (r *reader) row() ([]Value, bool) {
	if !r.symbol('(') {
		return nil, false
	}
	var row []Value
	for {
		v, ok := r.value()
		if !ok {
			return nil, false
		}
		row = append(row, v)
		if r.symbol(')') {
			return row, true
		}
		if !r.symbol(',') {
			return nil, false
		}
	}
}

func (r *reader) value() (Value, bool) {
	switch {
	case r.rest == "":
		return Value{}, false
	case r.rest[0] == '\'':
		return r.text()
	case r.rest[0] == '-' || isDigit(r.rest[0]):
		return r.integer()
	case r.keyword("NULL"):
		return Value{}, true
	case r.keyword("TRUE"):
		return Value{Kind: Boolean, Integer: 1}, true
	case r.keyword("FALSE"):
		return Value{Kind: Boolean}, true
	}
	return Value{}, false
}

// text takes a string in which only quotes are doubled. What follows it directly (a cast, a second string) makes it something else, and is met by row.
func (r *reader) text() (Value, bool) {
	var b strings.Builder
	for rest := r.rest[1:]; ; {
		n := strings.IndexByte(rest, '\'')
		if n < 0 {
			return Value{}, false
		}
		b.WriteString(rest[:n])
		if rest = rest[n+1:]; !strings.HasPrefix(rest, "'") {
			r.rest = rest
			return Value{Kind: String, Text: b.String()}, true
		}
		b.WriteByte('\'')
		rest = rest[1:]
	}
}

// integer takes digits with a sign in front. DuckDB binds the digits and applies the sign to what it has: the type is that of the positive number.
func (r *reader) integer() (Value, bool) {
	digits := strings.TrimPrefix(r.rest, "-")
	n := 0
	for n < len(digits) && isDigit(digits[n]) {
		n++
	}
	negative := len(digits) < len(r.rest)
	v, err := strconv.ParseInt(digits[:n], 10, 64)
	if err != nil || n < len(digits) && strings.IndexByte(space+",)", digits[n]) < 0 {
		return Value{}, false
	}
	r.rest = digits[n:]
	out := Value{Kind: Integer, Integer: v, wide: v > math.MaxInt32}
	if negative {
		out.Integer = -v
	}
	return out, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
