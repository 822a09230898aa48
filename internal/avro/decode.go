package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrFormat is wrapped by every error about bytes that are not what they should be.
var ErrFormat = errors.New("damaged Avro data")

// ErrLayout: files cannot be joined, since their headers differ.
var ErrLayout = errors.New("Avro files of different headers")

// Record is a decoded record.
type Record struct {
	schema *Schema
	values []any
	spans  [][]byte // with Spans
}

// Get returns the value of the field with this Iceberg field id or, where the writer gave no ids, with one of the names; absent fields and NULL are nil.
// Integers are int64, floats float64, strings string, bytes and fixed []byte, arrays []any, records *Record.
func (r *Record) Get(id int, names ...string) any {
	if r == nil {
		return nil
	}
	if i := r.index(id, names...); i >= 0 {
		return r.values[i]
	}
	return nil
}

// Each visits the fields that have an id.
func (r *Record) Each(visit func(id int, value any)) {
	for i := range r.schema.fields {
		if id := r.schema.fields[i].id; id != 0 {
			visit(id, r.values[i])
		}
	}
}

// maxEmpty bounds the number of values that take no bytes.
const maxEmpty = 1 << 16

type decoder struct{ b []byte }

func (d *decoder) take(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(d.b)) {
		return nil, fmt.Errorf("%w: a value of %d bytes where %d are left", ErrFormat, n, len(d.b))
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out, nil
}

func (d *decoder) long() (int64, error) {
	v, n := binary.Varint(d.b) // Avro's long is Go's zigzag varint
	if n <= 0 {
		return 0, fmt.Errorf("%w: bad integer", ErrFormat)
	}
	d.b = d.b[n:]
	return v, nil
}

func (d *decoder) bytes() ([]byte, error) {
	n, err := d.long()
	if err != nil {
		return nil, err
	}
	return d.take(n)
}

// value decodes one value. With skip it only moves on and returns nil.
func (d *decoder) value(s *Schema, skip bool, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: values nested deeper than %d", ErrFormat, maxDepth)
	}
	switch s.kind {
	case kindNull:
		return nil, nil
	case kindBoolean:
		b, err := d.take(1)
		if err != nil {
			return nil, err
		}
		return b[0] != 0, nil
	case kindInt, kindLong, kindEnum:
		v, err := d.long()
		if err != nil || skip {
			return nil, err
		}
		return v, nil
	case kindFloat:
		b, err := d.take(4)
		if err != nil || skip {
			return nil, err
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	case kindDouble:
		b, err := d.take(8)
		if err != nil || skip {
			return nil, err
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case kindFixed:
		b, err := d.take(int64(s.size))
		if err != nil || skip {
			return nil, err
		}
		return append(make([]byte, 0, len(b)), b...), nil
	case kindBytes, kindString:
		b, err := d.bytes()
		switch {
		case err != nil || skip:
			return nil, err
		case s.kind == kindString:
			return string(b), nil
		}
		return append(make([]byte, 0, len(b)), b...), nil
	case kindUnion:
		i, err := d.long()
		if err != nil {
			return nil, err
		}
		if i < 0 || i >= int64(len(s.branches)) {
			return nil, fmt.Errorf("%w: branch %d of a union of %d", ErrFormat, i, len(s.branches))
		}
		return d.value(s.branches[i], skip, depth+1)
	case kindArray, kindMap:
		return d.blocks(s, skip, depth)
	}
	return d.record(s, skip, depth)
}

func (d *decoder) record(s *Schema, skip bool, depth int) (any, error) {
	var r *Record
	if !skip {
		r = &Record{schema: s, values: make([]any, len(s.fields))}
		if s.spans {
			r.spans = make([][]byte, len(s.fields))
		}
	}
	for i := range s.fields {
		f := &s.fields[i]
		before := d.b
		v, err := d.value(f.typ, skip || f.skip, depth+1)
		if err != nil {
			return nil, err
		}
		if r != nil && r.spans != nil {
			r.spans[i] = before[:len(before)-len(d.b)]
		}
		if r != nil {
			r.values[i] = v
		}
	}
	if r == nil {
		return nil, nil
	}
	return r, nil
}

// blocks decodes an array, or a map, of which only the values are kept: Iceberg writes its maps as arrays.
func (d *decoder) blocks(s *Schema, skip bool, depth int) (any, error) {
	out := []any{}
	for {
		n, err := d.long()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if skip {
				return nil, nil
			}
			return out, nil
		}
		if n < 0 { // the size of the block in bytes follows
			n = -n
			size, err := d.long()
			if err != nil {
				return nil, err
			}
			if skip {
				if _, err := d.take(size); err != nil {
					return nil, err
				}
				continue
			}
		}
		if tooMany(n, len(d.b), s.items) {
			return nil, fmt.Errorf("%w: an array of %d items where %d bytes are left", ErrFormat, n, len(d.b))
		}
		for range n {
			if s.kind == kindMap {
				if _, err := d.bytes(); err != nil {
					return nil, err
				}
			}
			v, err := d.value(s.items, skip, depth+1)
			if err != nil {
				return nil, err
			}
			if !skip {
				out = append(out, v)
			}
		}
	}
}

// tooMany reports whether n values cannot be in so many bytes. Values that take no bytes have a limit of their own.
func tooMany(n int64, size int, s *Schema) bool {
	if s.empty(0) {
		return n < 0 || n > maxEmpty
	}
	return n < 0 || n > int64(size)
}

// empty reports whether values of the schema may take no bytes at all.
func (s *Schema) empty(depth int) bool {
	switch s.kind {
	case kindNull:
		return true
	case kindFixed:
		return s.size == 0
	case kindRecord:
		for _, f := range s.fields {
			if depth > maxDepth || !f.typ.empty(depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
