package avro

import "fmt"

// Spans makes the record that is reached by path (field ids, from the top) keep the encoded bytes of its fields, of skipped ones too.
func (s *Schema) Spans(path ...int) {
	rec := s
	for _, id := range path {
		if rec = rec.child(id); rec == nil {
			return
		}
	}
	rec.spans = true
}

// Encoded returns the bytes of a field's value as the writer encoded it, without the branch of a union with null, and whether it is null. A field that
// the writer does not have is null. The record must have been made with Spans; the bytes are those of the file.
func (r *Record) Encoded(id int, names ...string) (b []byte, null bool, err error) {
	i := r.index(id, names...)
	if i < 0 || r.spans == nil {
		return nil, true, nil
	}
	t, b := r.schema.fields[i].typ, r.spans[i]
	if t.kind == kindNull {
		return nil, true, nil
	}
	if t.kind != kindUnion {
		return b, false, nil
	}
	d := decoder{b}
	n, err := d.long()
	if err != nil || n < 0 || n >= int64(len(t.branches)) {
		return nil, false, fmt.Errorf("%w: field %d: branch of a union", ErrFormat, id)
	}
	if t.branches[n].kind == kindNull {
		return nil, true, nil
	}
	if len(t.branches) > 2 {
		return nil, false, fmt.Errorf("%w: field %d: a union of %d types", ErrFormat, id, len(t.branches))
	}
	return d.b, false, nil
}

// index finds the field with this id or, where the writer gave no ids, with one of the names; -1: it has none.
func (r *Record) index(id int, names ...string) int {
	for i := range r.schema.fields {
		if f := &r.schema.fields[i]; f.id == id && id != 0 {
			return i
		}
	}
	for i := range r.schema.fields {
		f := &r.schema.fields[i]
		for _, n := range names {
			if f.id == 0 && f.name == n {
				return i
			}
		}
	}
	return -1
}
