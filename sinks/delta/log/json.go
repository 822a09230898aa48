package log

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep arrays and objects may be nested in what is skipped.
const maxDepth = 1000

// jsonReader reads one JSON document front to back. A commit of 100,000 files is 50 MB, which reflection would decode in seconds and field names without regard to
// case; this reads it in a tenth of a second, and numbers without float64.
type jsonReader struct {
	data    []byte
	at      int
	scratch []byte // of the last string that has escapes
}

// peek skips white space and gives the next byte, 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		switch b := r.data[r.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

func (r *jsonReader) take(b byte) error {
	if r.peek() != b {
		return r.wrong(strconv.QuoteRune(rune(b)))
	}
	r.at++
	return nil
}

func (r *jsonReader) end() error {
	if r.peek(); r.at < len(r.data) {
		return r.wrong("the end")
	}
	return nil
}

// null takes a null if one is next.
func (r *jsonReader) null() bool {
	r.peek()
	if bytes.HasPrefix(r.data[r.at:], []byte("null")) {
		r.at += len("null")
		return true
	}
	return false
}

// object calls member for each member, which reads its value. A null is an object without members.
func (r *jsonReader) object(member func(name string) error) error {
	if r.null() {
		return nil
	}
	if r.peek() != '{' {
		return r.not("an object")
	}
	r.at++
	if r.peek() == '}' {
		r.at++
		return nil
	}
	for {
		if r.peek() != '"' {
			return r.wrong("the name of a field")
		}
		raw, err := r.chars()
		if err != nil {
			return err
		}
		name, known := fieldNames[string(raw)]
		if !known {
			name = string(raw)
		}
		if err := r.take(':'); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return within(name, err)
		}
		switch r.peek() {
		case ',':
			r.at++
		case '}':
			r.at++
			return nil
		default:
			return r.wrong("',' or '}'")
		}
	}
}

// array calls element for each element, which reads it.
func (r *jsonReader) array(element func() error) error {
	if r.peek() != '[' {
		return r.not("an array")
	}
	r.at++
	if r.peek() == ']' {
		r.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.at++
		case ']':
			r.at++
			return nil
		default:
			return r.wrong("',' or ']'")
		}
	}
}

// text reads a string.
func (r *jsonReader) text() (string, error) {
	b, err := r.chars()
	return string(b), err
}

// chars is text without a copy: it is valid until the next string is read. Half a surrogate pair becomes U+FFFD, and bytes that are not UTF-8 are an error.
func (r *jsonReader) chars() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.not("a string")
	}
	start := r.at + 1
	for i := start; i < len(r.data); i++ {
		switch b := r.data[i]; {
		case b == '"':
			r.at = i + 1
			return checkUTF8(r.data[start:i])
		case b == '\\':
			return r.escaped(start, i)
		case b < ' ':
			r.at = i
			return nil, r.wrong("no control character in a string")
		}
	}
	r.at = len(r.data)
	return nil, r.wrong("the end of a string")
}

func checkUTF8(b []byte) ([]byte, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("a string that is not UTF-8: %.100q", b)
	}
	return b, nil
}

// escaped reads the rest of a string in which the byte at i is the first backslash.
func (r *jsonReader) escaped(start, i int) ([]byte, error) {
	end := i // the closing quote
	for end < len(r.data) && r.data[end] != '"' {
		if r.data[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(r.data) {
		r.at = len(r.data)
		return nil, r.wrong("the end of a string")
	}
	out := append(r.scratch[:0], r.data[start:i]...)
	for i < end {
		b := r.data[i]
		i++
		if b < ' ' {
			r.at = i - 1
			return nil, r.wrong("no control character in a string")
		}
		if b != '\\' {
			to := i
			for to < end && r.data[to] >= ' ' && r.data[to] != '\\' {
				to++
			}
			out, i = append(out, r.data[i-1:to]...), to
			continue
		}
		b = r.data[i]
		i++
		switch b {
		case '"', '\\', '/':
			out = append(out, b)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			c, ok := hex4(r.data[i:end])
			if !ok {
				r.at = i
				return nil, r.wrong("four hexadecimal digits")
			}
			i += 4
			if utf16.IsSurrogate(c) {
				low, ok := rune(0), false
				if end-i >= 6 && r.data[i] == '\\' && r.data[i+1] == 'u' {
					low, ok = hex4(r.data[i+2 : end])
				}
				if c = utf16.DecodeRune(c, low); ok && c != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, c)
		default:
			r.at = i - 1
			return nil, r.wrong("an escape")
		}
	}
	r.at, r.scratch = end+1, out
	return checkUTF8(out)
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// number gives the bytes of a number, in JSON's grammar.
func (r *jsonReader) number() ([]byte, error) {
	r.peek()
	start, i := r.at, r.at
	digits := func() bool {
		from := i
		for i < len(r.data) && r.data[i] >= '0' && r.data[i] <= '9' {
			i++
		}
		return i > from
	}
	is := func(set string) bool { return i < len(r.data) && bytes.IndexByte([]byte(set), r.data[i]) >= 0 }
	if is("-") {
		i++
	}
	zero := is("0")
	first := i
	if !digits() || zero && i > first+1 {
		return nil, r.not("a number")
	}
	if is(".") {
		if i++; !digits() {
			return nil, r.not("a number")
		}
	}
	if is("eE") {
		if i++; is("+-") {
			i++
		}
		if !digits() {
			return nil, r.not("a number")
		}
	}
	r.at = i
	return r.data[start:i], nil
}

// integer reads a whole number exactly. 12.0 and 1e3 are whole numbers too, which some writers' JSON libraries make of them.
func (r *jsonReader) integer() (int64, error) {
	text, err := r.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		return n, nil
	}
	if bytes.ContainsAny(text, ".eE") {
		if f, err := strconv.ParseFloat(string(text), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), nil
		}
	}
	return 0, fmt.Errorf("%.50s is no whole number of 64 bits", text)
}

func (r *jsonReader) integer32() (int32, error) {
	n, err := r.integer()
	if err == nil && n != int64(int32(n)) {
		err = fmt.Errorf("%d is no whole number of 32 bits", n)
	}
	return int32(n), err
}

func (r *jsonReader) boolean() (bool, error) {
	r.peek()
	for _, b := range []bool{true, false} {
		if text := strconv.FormatBool(b); bytes.HasPrefix(r.data[r.at:], []byte(text)) {
			r.at += len(text)
			return b, nil
		}
	}
	return false, r.not("true or false")
}

// raw copies the next value, whatever it is.
func (r *jsonReader) raw() (json.RawMessage, error) {
	r.peek()
	start := r.at
	if err := r.skip(0); err != nil {
		return nil, err
	}
	return append(json.RawMessage(nil), r.data[start:r.at]...), nil
}

func (r *jsonReader) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	var err error
	switch r.peek() {
	case '{':
		return r.object(func(string) error { return r.skip(depth + 1) })
	case '[':
		return r.array(func() error { return r.skip(depth + 1) })
	case '"':
		_, err = r.chars()
	case 't', 'f':
		_, err = r.boolean()
	case 'n':
		if !r.null() {
			err = r.not("null")
		}
	default:
		_, err = r.number()
	}
	return err
}

// optional reads a value that may be null.
func optional[T any](r *jsonReader, read func() (T, error)) (*T, error) {
	if r.null() {
		return nil, nil
	}
	v, err := read()
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// orZero reads a value that may be null into dst; a null leaves dst as it is.
func orZero[T any](r *jsonReader, dst *T, read func() (T, error)) error {
	if r.null() {
		return nil
	}
	v, err := read()
	if err == nil {
		*dst = v
	}
	return err
}

// strings reads an array of strings; null is nil, [] is not.
func (r *jsonReader) strings() ([]string, error) {
	if r.null() {
		return nil, nil
	}
	out := []string{}
	err := r.array(func() error {
		s, err := r.text()
		out = append(out, s)
		return err
	})
	return out, err
}
