package footer

import (
	"fmt"
)

// Parse reads a footer, which is all of data.
func Parse(data []byte) (*File, error) {
	r := &reader{data: data}
	f := &File{}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeI32:
			f.Version = r.i32()
		case id == 2 && typ == typeList:
			n := r.list(typeStruct)
			f.Schema = make([]Element, 0, min(n, 1<<12))
			for range n {
				if r.err != nil {
					break
				}
				f.Schema = append(f.Schema, r.element())
			}
		case id == 3 && typ == typeI64:
			f.Rows = r.varint()
		case id == 4 && typ == typeList:
			n := r.list(typeStruct)
			f.Groups = make([]RowGroup, 0, min(n, 1<<12))
			for range n {
				if r.err != nil {
					break
				}
				f.Groups = append(f.Groups, r.rowGroup())
			}
		case id == 5 && typ == typeList:
			for n := r.list(typeStruct); n > 0 && r.err == nil; n-- {
				f.Metadata = append(f.Metadata, r.pair())
			}
		case id == 6 && typ == typeBinary:
			f.CreatedBy = string(r.bytes())
		case id == 7 && typ == typeList:
			n := r.list(typeStruct)
			f.Ordered = make([]bool, 0, min(n, 1<<12))
			for ; n > 0 && r.err == nil; n-- {
				defined := false
				r.fields(func(id int16, _ byte) bool {
					defined = defined || id == 1
					return false
				})
				f.Ordered = append(f.Ordered, defined)
			}
		case id == 8:
			f.Encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	if r.err != nil {
		return nil, r.err
	}
	return f, f.check()
}

// check holds the schema and the row groups against each other, so that callers may follow the one by the other.
func (f *File) check() error {
	leaves := 0
	if n := len(f.Schema); n == 0 || f.Schema[0].Physical != Group {
		return fmt.Errorf("%w: it has no schema", errDamaged)
	}
	end, err := f.subtree(0, 0, &leaves)
	if err == nil && end != len(f.Schema) {
		err = fmt.Errorf("%w: its schema has %d elements, and its tree %d", errDamaged, len(f.Schema), end)
	}
	if err != nil {
		return err
	}
	if f.Ordered != nil && len(f.Ordered) != leaves {
		f.Ordered = nil
	}
	rows := int64(0)
	for n := range f.Groups {
		g := &f.Groups[n]
		if len(g.Chunks) != leaves {
			return fmt.Errorf("%w: row group %d has %d columns, and the schema %d", errDamaged, n, len(g.Chunks), leaves)
		}
		if g.Rows < 0 || g.Rows > 1<<62-rows {
			return fmt.Errorf("%w: row group %d has %d rows", errDamaged, n, g.Rows)
		}
		rows += g.Rows
	}
	if rows != f.Rows {
		return fmt.Errorf("%w: it counts %d rows, and its row groups %d", errDamaged, f.Rows, rows)
	}
	return nil
}

// subtree checks the element at place n and those below it, and answers the place behind them.
func (f *File) subtree(n, depth int, leaves *int) (int, error) {
	if n >= len(f.Schema) || depth > maxDepth {
		return 0, fmt.Errorf("%w: its schema ends early, or is nested more than %d times", errDamaged, maxDepth)
	}
	e := &f.Schema[n]
	if e.Physical != Group {
		*leaves++
		return n + 1, nil
	}
	at := n + 1
	for range e.Children {
		var err error
		if at, err = f.subtree(at, depth+1, leaves); err != nil {
			return 0, err
		}
	}
	return at, nil
}

func (r *reader) element() Element {
	e := Element{Physical: Group, Repetition: Unrepeated, Converted: NoConverted}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeI32:
			p := r.i32()
			if p < 0 || int(p) >= len(physicalNames) {
				r.fail("physical type %d", p)
				return true
			}
			e.Physical = Physical(p)
		case id == 2 && typ == typeI32:
			e.TypeLength = r.i32()
		case id == 3 && typ == typeI32:
			e.Repetition = Repetition(r.i32())
		case id == 4 && typ == typeBinary:
			e.Name = string(r.bytes())
		case id == 5 && typ == typeI32:
			e.Children = r.i32()
		case id == 6 && typ == typeI32:
			e.Converted = Converted(r.i32())
		case id == 7 && typ == typeI32:
			e.Scale = r.i32()
		case id == 8 && typ == typeI32:
			e.Precision = r.i32()
		case id == 9 && typ == typeI32:
			e.FieldID, e.HasID = r.i32(), true
		case id == 10 && typ == typeStruct:
			e.Logical = r.logical()
		default:
			return false
		}
		return true
	})
	if e.Children < 0 || e.Physical != Group && e.Children != 0 {
		r.fail("a schema element with %d children", e.Children)
	}
	return e
}

func (r *reader) logical() Logical {
	l := Logical{}
	r.fields(func(id int16, typ byte) bool {
		if typ != typeStruct || id <= 0 || id > 127 {
			return false
		}
		l.Kind = LogicalKind(id)
		r.fields(func(id int16, typ byte) bool { return r.parameter(&l, id, typ) })
		return true
	})
	return l
}

func (r *reader) parameter(l *Logical, id int16, typ byte) bool {
	switch {
	case l.Kind == DecimalLogical && id == 1 && typ == typeI32:
		l.Scale = r.i32()
	case l.Kind == DecimalLogical && id == 2 && typ == typeI32:
		l.Precision = r.i32()
	case (l.Kind == TimeLogical || l.Kind == Timestamp) && id == 1 && (typ == typeTrue || typ == typeFalse):
		l.UTC = typ == typeTrue
	case (l.Kind == TimeLogical || l.Kind == Timestamp) && id == 2 && typ == typeStruct:
		r.fields(func(id int16, _ byte) bool {
			if id >= int16(Millis) && id <= int16(Nanos) {
				l.Unit = Unit(id)
			}
			return false
		})
	case l.Kind == Integer && id == 1 && typ == typeByte:
		l.Bits = int8(r.byte())
	case l.Kind == Integer && id == 2 && (typ == typeTrue || typ == typeFalse):
		l.Signed = typ == typeTrue
	default:
		return false
	}
	return true
}

func (r *reader) rowGroup() RowGroup {
	g := RowGroup{}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeList:
			n := r.list(typeStruct)
			g.Chunks = make([]Chunk, 0, min(n, 1<<12))
			for range n {
				if r.err != nil {
					break
				}
				g.Chunks = append(g.Chunks, r.chunk())
			}
		case id == 2 && typ == typeI64:
			g.Bytes = r.varint()
		case id == 3 && typ == typeI64:
			g.Rows = r.varint()
		default:
			return false
		}
		return true
	})
	return g
}

func (r *reader) chunk() Chunk {
	c := Chunk{Physical: Group}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeBinary:
			c.FilePath = string(r.bytes())
		case id == 3 && typ == typeStruct:
			r.chunkMeta(&c)
		case id == 8 || id == 9:
			c.Encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	return c
}

func (r *reader) chunkMeta(c *Chunk) {
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 1 && typ == typeI32:
			if p := r.i32(); p >= 0 && int(p) < len(physicalNames) {
				c.Physical = Physical(p)
			}
		case id == 2 && typ == typeList:
			for n := r.list(typeI32); n > 0 && r.err == nil; n-- {
				c.Encodings = append(c.Encodings, Encoding(r.i32()))
			}
		case id == 3 && typ == typeList:
			for n := r.list(typeBinary); n > 0 && r.err == nil; n-- {
				c.Path = append(c.Path, string(r.bytes()))
			}
		case id == 4 && typ == typeI32:
			c.Codec = Codec(r.i32())
		case id == 5 && typ == typeI64:
			c.Values = r.varint()
		case id == 6 && typ == typeI64:
			c.Uncompressed = r.varint()
		case id == 7 && typ == typeI64:
			c.Compressed = r.varint()
		case id == 9 && typ == typeI64:
			c.DataOffset = r.varint()
		case id == 11 && typ == typeI64:
			c.DictOffset = r.varint()
		case id == 12 && typ == typeStruct:
			c.Stats = r.statistics()
		case id == 13 && typ == typeList:
			for n := r.list(typeStruct); n > 0 && r.err == nil; n-- {
				c.Pages = append(c.Pages, r.encodingStats())
			}
		case id == 14 && typ == typeI64:
			c.BloomOffset = r.varint()
		case id == 15 && typ == typeI32:
			c.BloomLength = int64(r.i32())
		default:
			return false
		}
		return true
	})
}

func (r *reader) statistics() *Statistics {
	s := &Statistics{Nulls: -1, Distinct: -1}
	r.fields(func(id int16, typ byte) bool {
		switch {
		case id == 3 && typ == typeI64:
			s.Nulls = r.varint()
		case id == 4 && typ == typeI64:
			s.Distinct = r.varint()
		case id == 5 && typ == typeBinary:
			s.Max, s.HasMax = append([]byte{}, r.bytes()...), true // a copy: the footer's bytes are let go
		case id == 6 && typ == typeBinary:
			s.Min, s.HasMin = append([]byte{}, r.bytes()...), true
		case id == 7 && (typ == typeTrue || typ == typeFalse):
			s.MaxExact = exact(typ)
		case id == 8 && (typ == typeTrue || typ == typeFalse):
			s.MinExact = exact(typ)
		default:
			return false
		}
		return true
	})
	return s
}

func exact(typ byte) Exact {
	if typ == typeTrue {
		return Yes
	}
	return No
}

func (r *reader) encodingStats() EncodingStats {
	e := EncodingStats{}
	r.fields(func(id int16, typ byte) bool {
		if typ != typeI32 || id < 1 || id > 3 {
			return false
		}
		v := r.i32()
		switch id {
		case 1:
			e.Page = PageType(v)
		case 2:
			e.Encoding = Encoding(v)
		default:
			e.Count = v
		}
		return true
	})
	return e
}

func (r *reader) pair() Pair {
	p := Pair{}
	r.fields(func(id int16, typ byte) bool {
		if typ != typeBinary || id < 1 || id > 2 {
			return false
		}
		text := string(r.bytes())
		if id == 1 {
			p.Key = text
		} else {
			p.Value = text
		}
		return true
	})
	return p
}
