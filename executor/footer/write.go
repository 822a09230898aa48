package footer

// Bytes encodes a footer, without its length and the magic behind it.
func (f *File) Bytes() []byte {
	w := &writer{}
	w.begin()
	w.i32(1, f.Version)
	w.list(2, typeStruct, len(f.Schema))
	for n := range f.Schema {
		w.begin()
		w.element(&f.Schema[n])
		w.end()
	}
	w.i64(3, f.Rows)
	w.list(4, typeStruct, len(f.Groups))
	for n := range f.Groups {
		w.begin()
		w.rowGroup(&f.Groups[n], n)
		w.end()
	}
	if len(f.Metadata) > 0 {
		w.list(5, typeStruct, len(f.Metadata))
		for _, p := range f.Metadata {
			w.begin()
			w.text(1, p.Key)
			w.text(2, p.Value)
			w.end()
		}
	}
	if f.CreatedBy != "" {
		w.text(6, f.CreatedBy)
	}
	if f.Ordered != nil {
		w.list(7, typeStruct, len(f.Ordered))
		for _, defined := range f.Ordered {
			w.begin()
			if defined {
				w.structure(1, func() {})
			}
			w.end()
		}
	}
	w.end()
	return w.out
}

func (w *writer) element(e *Element) {
	if e.Physical != Group {
		w.i32(1, int32(e.Physical))
	}
	if e.TypeLength != 0 {
		w.i32(2, e.TypeLength)
	}
	if e.Repetition != Unrepeated {
		w.i32(3, int32(e.Repetition))
	}
	w.text(4, e.Name)
	if e.Physical == Group {
		w.i32(5, e.Children)
	}
	if e.Converted != NoConverted {
		w.i32(6, int32(e.Converted))
	}
	if e.Converted == DecimalOld || e.Precision != 0 {
		w.i32(7, e.Scale)
		w.i32(8, e.Precision)
	}
	if e.HasID {
		w.i32(9, e.FieldID)
	}
	if e.Logical.Kind != NoLogical {
		w.structure(10, func() { w.logical(&e.Logical) })
	}
}

func (w *writer) logical(l *Logical) {
	w.structure(int16(l.Kind), func() {
		switch l.Kind {
		case DecimalLogical:
			w.i32(1, l.Scale)
			w.i32(2, l.Precision)
		case TimeLogical, Timestamp:
			w.bool(1, l.UTC)
			w.structure(2, func() {
				if l.Unit != NoUnit {
					w.structure(int16(l.Unit), func() {})
				}
			})
		case Integer:
			w.field(1, typeByte)
			w.out = append(w.out, byte(l.Bits))
			w.bool(2, l.Signed)
		}
	})
}

func (w *writer) rowGroup(g *RowGroup, ordinal int) {
	compressed := int64(0)
	w.list(1, typeStruct, len(g.Chunks))
	for n := range g.Chunks {
		w.begin()
		w.chunk(&g.Chunks[n])
		w.end()
		compressed += g.Chunks[n].Compressed
	}
	w.i64(2, g.Bytes)
	w.i64(3, g.Rows)
	if len(g.Chunks) > 0 {
		w.i64(5, g.Chunks[0].Start())
	}
	w.i64(6, compressed)
	if ordinal <= 1<<15-1 {
		w.field(7, typeI16)
		w.varint(int64(ordinal))
	}
}

func (w *writer) chunk(c *Chunk) {
	w.i64(2, 0) // deprecated: the place of a copy of the metadata, which nobody writes
	w.structure(3, func() {
		w.i32(1, int32(c.Physical))
		w.list(2, typeI32, len(c.Encodings))
		for _, e := range c.Encodings {
			w.varint(int64(e))
		}
		w.list(3, typeBinary, len(c.Path))
		for _, p := range c.Path {
			w.value([]byte(p))
		}
		w.i32(4, int32(c.Codec))
		w.i64(5, c.Values)
		w.i64(6, c.Uncompressed)
		w.i64(7, c.Compressed)
		w.i64(9, c.DataOffset)
		if c.DictOffset > 0 {
			w.i64(11, c.DictOffset)
		}
		if c.Stats != nil {
			w.structure(12, func() { w.statistics(c.Stats) })
		}
		if len(c.Pages) > 0 {
			w.list(13, typeStruct, len(c.Pages))
			for _, p := range c.Pages {
				w.begin()
				w.i32(1, int32(p.Page))
				w.i32(2, int32(p.Encoding))
				w.i32(3, p.Count)
				w.end()
			}
		}
		if c.BloomOffset > 0 {
			w.i64(14, c.BloomOffset)
			if c.BloomLength > 0 {
				w.i32(15, int32(c.BloomLength)) //nolint:gosec // it was read as one
			}
		}
	})
}

func (w *writer) statistics(s *Statistics) {
	if s.Nulls >= 0 {
		w.i64(3, s.Nulls)
	}
	if s.Distinct >= 0 {
		w.i64(4, s.Distinct)
	}
	if s.HasMax {
		w.bytes(5, s.Max)
	}
	if s.HasMin {
		w.bytes(6, s.Min)
	}
	if s.HasMax && s.MaxExact != Unsaid {
		w.bool(7, s.MaxExact == Yes)
	}
	if s.HasMin && s.MinExact != Unsaid {
		w.bool(8, s.MinExact == Yes)
	}
}
