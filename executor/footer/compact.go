package footer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Types of the compact protocol.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeByte   = 3
	typeI16    = 4
	typeI32    = 5
	typeI64    = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
	typeUUID   = 13
)

// maxDepth bounds the nesting of structs, lists and maps.
const maxDepth = 32

var errDamaged = errors.New("damaged")

// reader decodes the compact protocol. Its first error stays: after it every read answers zero.
type reader struct {
	data  []byte
	pos   int
	depth int
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w at byte %d: %s", errDamaged, r.pos, fmt.Sprintf(format, args...))
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.pos >= len(r.data) {
		r.fail("it ends early")
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.data[r.pos:])
	if n <= 0 {
		r.fail("a number that does not end")
		return 0
	}
	r.pos += n
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) i32() int32 {
	v := r.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail("%d is not a number of 32 bits", v)
		return 0
	}
	return int32(v)
}

// bytes answers a part of the input, not a copy.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if r.err != nil || n > uint64(len(r.data)-r.pos) {
		r.fail("a value of %d bytes", n)
		return nil
	}
	b := r.data[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail("nested more than %d times", maxDepth)
	}
	return r.err == nil
}

// fields reads a struct: read is called for each field and consumes its value; it answers false for one that it does not know, which is skipped.
func (r *reader) fields(read func(id int16, typ byte) bool) {
	defer func() { r.depth-- }()
	if !r.enter() {
		return
	}
	last := int16(0)
	for {
		head := r.byte()
		if r.err != nil || head == 0 {
			return
		}
		id := int64(last) + int64(head>>4)
		if head>>4 == 0 {
			id = r.varint()
		}
		if id < math.MinInt16 || id > math.MaxInt16 {
			r.fail("field %d", id)
			return
		}
		last = int16(id)
		if typ := head & 15; !read(last, typ) {
			r.skip(typ)
		}
	}
}

// list reads a list's head; the elements follow. Each takes at least one byte, so that a lie about their number is seen at once.
func (r *reader) list(want byte) int {
	head := r.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = r.uvarint()
	}
	if typ := head & 15; n > 0 && typ != want {
		r.fail("a list of type %d instead of %d", typ, want)
	}
	if n > uint64(len(r.data)-r.pos) {
		r.fail("a list of %d elements", n)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

// skip passes over a value that is not needed.
func (r *reader) skip(typ byte) {
	switch typ {
	case typeTrue, typeFalse: // the value is the type
	case typeByte:
		r.byte()
	case typeI16, typeI32, typeI64:
		r.uvarint()
	case typeDouble:
		r.skipBytes(8)
	case typeUUID:
		r.skipBytes(16)
	case typeBinary:
		r.bytes()
	case typeList, typeSet:
		r.skipList()
	case typeMap:
		r.skipMap()
	case typeStruct:
		r.fields(func(int16, byte) bool { return false })
	default:
		r.fail("type %d", typ)
	}
}

func (r *reader) skipBytes(n int) {
	if r.err != nil || n > len(r.data)-r.pos {
		r.fail("it ends early")
		return
	}
	r.pos += n
}

func (r *reader) skipElement(typ byte) {
	if typ == typeTrue || typ == typeFalse { // in lists and maps a boolean takes a byte
		r.byte()
		return
	}
	r.skip(typ)
}

func (r *reader) skipList() {
	defer func() { r.depth-- }()
	if !r.enter() || r.pos >= len(r.data) {
		r.fail("it ends early")
		return
	}
	typ := r.data[r.pos] & 15
	for n := r.list(typ); n > 0 && r.err == nil; n-- {
		r.skipElement(typ)
	}
}

func (r *reader) skipMap() {
	defer func() { r.depth-- }()
	if !r.enter() {
		return
	}
	n := r.uvarint()
	if n == 0 || r.err != nil {
		return
	}
	types := r.byte()
	if n > uint64(len(r.data)-r.pos) {
		r.fail("a map of %d entries", n)
	}
	for ; n > 0 && r.err == nil; n-- {
		r.skipElement(types >> 4)
		r.skipElement(types & 15)
	}
}

// writer encodes the compact protocol. Fields are written in the order of their ids.
type writer struct {
	out  []byte
	last []int16 // of the open structs: the id of the newest field
}

func (w *writer) uvarint(v uint64) { w.out = binary.AppendUvarint(w.out, v) }

func (w *writer) varint(v int64) { w.uvarint(uint64(v<<1) ^ uint64(v>>63)) }

func (w *writer) begin() { w.last = append(w.last, 0) }

func (w *writer) end() {
	w.last = w.last[:len(w.last)-1]
	w.out = append(w.out, 0)
}

func (w *writer) field(id int16, typ byte) {
	last := &w.last[len(w.last)-1]
	if delta := id - *last; delta > 0 && delta < 16 {
		w.out = append(w.out, byte(delta)<<4|typ)
	} else {
		w.out = append(w.out, typ)
		w.varint(int64(id))
	}
	*last = id
}

func (w *writer) i32(id int16, v int32) {
	w.field(id, typeI32)
	w.varint(int64(v))
}

func (w *writer) i64(id int16, v int64) {
	w.field(id, typeI64)
	w.varint(v)
}

func (w *writer) bool(id int16, v bool) {
	if v {
		w.field(id, typeTrue)
	} else {
		w.field(id, typeFalse)
	}
}

func (w *writer) bytes(id int16, b []byte) {
	w.field(id, typeBinary)
	w.value(b)
}

func (w *writer) value(b []byte) {
	w.uvarint(uint64(len(b)))
	w.out = append(w.out, b...)
}

func (w *writer) text(id int16, s string) { w.bytes(id, []byte(s)) }

func (w *writer) list(id int16, typ byte, n int) {
	w.field(id, typeList)
	if n < 15 {
		w.out = append(w.out, byte(n)<<4|typ)
		return
	}
	w.out = append(w.out, 15<<4|typ)
	w.uvarint(uint64(n))
}

func (w *writer) structure(id int16, write func()) {
	w.field(id, typeStruct)
	w.begin()
	write()
	w.end()
}
