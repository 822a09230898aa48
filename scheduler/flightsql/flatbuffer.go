package flightsql

import (
	"encoding/binary"
	"errors"
	"math"
)

// arrow-go believes the flatbuffers of a message: a length in one that is a lie takes as much memory as it says, which ends the process. So what comes
// from clients is verified first, as flatbuffers' own verifiers do in other languages: every offset and length lies inside of the message, and no
// part of it is visited without bound.

var (
	errFlatBounds = errors.New("its metadata points outside of itself")
	errFlatSize   = errors.New("its metadata has too many parts or levels")
	errFlatKind   = errors.New("it is no schema, dictionary or batch")
	errFlatBody   = errors.New("its buffers lie outside of its body")
	errFlatShort  = errors.New("it lacks parts that its schema asks for")
	errFlatRows   = errors.New("it has too many rows")
)

const (
	maxFlatTables = 1 << 18
	maxFlatDepth  = 64
	maxBatchRows  = 1 << 26
	maxNodeLength = 1 << 30 // of a nested array
)

// Kinds of Arrow message, and those of types that refer to more than numbers.
const (
	headerSchema, headerDictionary, headerBatch = 1, 2, 3
	typeTimestamp, typeUnion                    = 10, 14
)

type flat struct {
	b      []byte
	tables int
}

// flatTable is a table whose extent and fields have been checked to lie inside of the message.
type flatTable struct {
	f                 *flat
	pos, size         int
	vtable, vtableEnd int
}

func (f *flat) u16(pos int) int { return int(binary.LittleEndian.Uint16(f.b[pos:])) }
func (f *flat) i64(pos int) int64 {
	return int64(binary.LittleEndian.Uint64(f.b[pos:])) //nolint:gosec // the bits are what is meant
}

func (f *flat) has(pos, n int) bool {
	return pos >= 0 && n >= 0 && pos <= len(f.b) && n <= len(f.b)-pos
}

// follow reads the offset at pos and answers where it leads.
func (f *flat) follow(pos int) (int, error) {
	if !f.has(pos, 4) {
		return 0, errFlatBounds
	}
	off := binary.LittleEndian.Uint32(f.b[pos:])
	if off > math.MaxInt32 || !f.has(pos, int(off)) {
		return 0, errFlatBounds
	}
	return pos + int(off), nil
}

func (f *flat) table(pos int) (t flatTable, err error) {
	if f.tables++; f.tables > maxFlatTables {
		return t, errFlatSize
	}
	if !f.has(pos, 4) {
		return t, errFlatBounds
	}
	vtable := pos - int(int32(binary.LittleEndian.Uint32(f.b[pos:]))) //nolint:gosec // signed by definition
	if !f.has(vtable, 4) {
		return t, errFlatBounds
	}
	t = flatTable{f: f, pos: pos, vtable: vtable, vtableEnd: vtable + f.u16(vtable), size: f.u16(vtable + 2)}
	if t.vtableEnd < vtable+4 || !f.has(vtable, f.u16(vtable)) || t.size < 4 || !f.has(pos, t.size) {
		return t, errFlatBounds
	}
	return t, nil
}

// field is where a field of so many bytes lies; 0 if it is absent.
func (t flatTable) field(i, bytes int) (int, error) {
	at := t.vtable + 4 + 2*i
	if at+2 > t.vtableEnd {
		return 0, nil
	}
	off := t.f.u16(at)
	if off == 0 {
		return 0, nil
	}
	if off+bytes > t.size {
		return 0, errFlatBounds
	}
	return t.pos + off, nil
}

// vector is where the elements of a field begin, and how many there are.
func (t flatTable) vector(i, bytes int) (start, n int, err error) {
	at, err := t.field(i, 4)
	if err != nil || at == 0 {
		return 0, 0, err
	}
	if at, err = t.f.follow(at); err != nil {
		return 0, 0, err
	}
	if !t.f.has(at, 4) {
		return 0, 0, errFlatBounds
	}
	count := binary.LittleEndian.Uint32(t.f.b[at:])
	if count > math.MaxInt32 || !t.f.has(at+4, int(count)*bytes) {
		return 0, 0, errFlatBounds
	}
	return at + 4, int(count), nil
}

func (t flatTable) text(i int) error {
	_, _, err := t.vector(i, 1)
	return err
}

// child is a table that a field refers to; ok is false if it is absent.
func (t flatTable) child(i int) (c flatTable, ok bool, err error) {
	at, err := t.field(i, 4)
	if err != nil || at == 0 {
		return c, false, err
	}
	if at, err = t.f.follow(at); err != nil {
		return c, false, err
	}
	c, err = t.f.table(at)
	return c, err == nil, err
}

// each visits the tables of a vector.
func (t flatTable) each(i int, visit func(flatTable) error) error {
	start, n, err := t.vector(i, 4)
	if err != nil {
		return err
	}
	for k := range n {
		at, err := t.f.follow(start + 4*k)
		if err != nil {
			return err
		}
		c, err := t.f.table(at)
		if err != nil {
			return err
		}
		if err := visit(c); err != nil {
			return err
		}
	}
	return nil
}

func keyValue(t flatTable) error { return errors.Join(t.text(0), t.text(1)) }

// checkMessage verifies the metadata of one Arrow message, and that its buffers lie in the body. want is what the schema asks of a batch.
func checkMessage(header []byte, body int, want layout) error {
	f := &flat{b: header}
	root, err := f.follow(0)
	if err != nil {
		return err
	}
	m, err := f.table(root)
	if err != nil {
		return err
	}
	kind, err := m.field(1, 1)
	if err != nil {
		return err
	}
	h, ok, err := m.child(2)
	if err != nil {
		return err
	}
	if kind == 0 || !ok {
		return errFlatKind
	}
	if err := m.each(4, keyValue); err != nil {
		return err
	}
	switch header[kind] {
	case headerSchema:
		return checkSchema(h)
	case headerBatch:
		return checkRecordBatch(h, int64(body), want)
	case headerDictionary:
		batch, ok, err := h.child(1)
		if err != nil || !ok {
			return errors.Join(err, errFlatKind)
		}
		return checkRecordBatch(batch, int64(body), layout{nodes: 1, buffers: 2}) // checkDictionaries has refused values with more nodes
	}
	return errFlatKind
}

func checkSchema(t flatTable) error {
	if err := t.each(1, func(c flatTable) error { return checkField(c, 0) }); err != nil {
		return err
	}
	if err := t.each(2, keyValue); err != nil {
		return err
	}
	_, _, err := t.vector(3, 8)
	return err
}

func checkField(t flatTable, depth int) error {
	if depth > maxFlatDepth {
		return errFlatSize
	}
	if err := t.text(0); err != nil {
		return err
	}
	kind, err := t.field(2, 1)
	if err != nil {
		return err
	}
	typ, ok, err := t.child(3)
	if err != nil {
		return err
	}
	if kind > 0 && ok {
		switch t.f.b[kind] {
		case typeTimestamp:
			err = typ.text(1)
		case typeUnion:
			_, _, err = typ.vector(1, 4)
		}
		if err != nil {
			return err
		}
	}
	dict, ok, err := t.child(4)
	if err != nil {
		return err
	}
	if ok {
		if _, _, err := dict.child(1); err != nil {
			return err
		}
	}
	if err := t.each(6, keyValue); err != nil {
		return err
	}
	return t.each(5, func(c flatTable) error { return checkField(c, depth+1) })
}

func checkRecordBatch(t flatTable, body int64, want layout) error {
	at, err := t.field(0, 8)
	if err != nil {
		return err
	}
	if at > 0 {
		if n := t.f.i64(at); n < 0 || n > maxBatchRows {
			return errFlatRows
		}
	}
	nodes, n, err := t.vector(1, 16)
	if err != nil {
		return err
	}
	if n < want.nodes {
		return errFlatShort
	}
	for i := range n {
		if length, nulls := t.f.i64(nodes+16*i), t.f.i64(nodes+16*i+8); length < 0 || length > maxNodeLength || nulls < -1 || nulls > length {
			return errFlatRows
		}
	}
	buffers, all, err := t.vector(2, 16)
	if err != nil {
		return err
	}
	for i := range all {
		if off, size := t.f.i64(buffers+16*i), t.f.i64(buffers+16*i+8); off < 0 || size < 0 || off > body || size > body-off {
			return errFlatBody
		}
	}
	if _, _, err := t.child(3); err != nil {
		return err
	}
	counts, n, err := t.vector(4, 8) // buffers of each view column
	if err != nil {
		return err
	}
	if n < want.views {
		return errFlatShort
	}
	left := int64(all)
	for i := range n {
		c := t.f.i64(counts + 8*i)
		if c < 0 || c > left {
			return errFlatBody
		}
		left -= c
	}
	if left < int64(want.buffers) {
		return errFlatShort
	}
	return nil
}
