package footer

// BareIntegers takes annotations off integers that have the width and the sign of their physical type, and says whether there were any.
func (f *File) BareIntegers() bool {
	changed := false
	for n := range f.Schema {
		e := &f.Schema[n]
		var converted Converted
		var bits int8
		switch e.Physical {
		case Int32:
			converted, bits = Int32Converted, 32
		case Int64:
			converted, bits = Int64Converted, 64
		default:
			continue
		}
		plain := e.Logical.Kind == NoLogical || e.Logical.Kind == Integer && e.Logical.Bits == bits && e.Logical.Signed
		if plain && (e.Converted == converted || e.Converted == NoConverted && e.Logical.Kind == Integer) {
			e.Converted, e.Logical, changed = NoConverted, Logical{}, true
		}
	}
	return changed
}
