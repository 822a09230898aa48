package flightsql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// layout is what a batch has at least, by its schema: arrow-go reads on behind the end of lists that are too short.
type layout struct {
	nodes, buffers, views int
}

func (l *layout) add(o layout) {
	l.nodes, l.buffers, l.views = l.nodes+o.nodes, l.buffers+o.buffers, l.views+o.views
}

func layoutOf(schema *arrow.Schema) (out layout) {
	for _, f := range schema.Fields() {
		out.add(layoutOfType(f.Type))
	}
	return out
}

func layoutOfType(t arrow.DataType) layout {
	out := layout{nodes: 1, buffers: 2}
	switch t := t.(type) {
	case *arrow.NullType:
		out.buffers = 0
	case arrow.ExtensionType:
		return layoutOfType(t.StorageType())
	case arrow.BinaryViewDataType:
		out.views = 1
	case *arrow.BinaryType, *arrow.StringType, *arrow.LargeBinaryType, *arrow.LargeStringType, *arrow.ListViewType, *arrow.LargeListViewType:
		out.buffers = 3
	case *arrow.StructType, *arrow.FixedSizeListType, *arrow.SparseUnionType:
		out.buffers = 1
	case *arrow.RunEndEncodedType:
		out.buffers = 0
	}
	switch t := t.(type) {
	case *arrow.MapType:
		out.add(layoutOfType(t.Elem()))
	case arrow.ListLikeType:
		out.add(layoutOfType(t.Elem()))
	case *arrow.RunEndEncodedType:
		out.add(layoutOfType(t.RunEnds()))
		out.add(layoutOfType(t.Encoded()))
	case *arrow.StructType:
		for _, f := range t.Fields() {
			out.add(layoutOfType(f.Type))
		}
	case arrow.UnionType:
		for _, f := range t.Fields() {
			out.add(layoutOfType(f.Type))
		}
	}
	return out
}

// checkDictionaries refuses dictionaries of values that have parts.
func checkDictionaries(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		if l := layoutOfType(t.ValueType); l.nodes > 1 || l.views > 0 || t.ValueType.ID() == arrow.DICTIONARY {
			return fmt.Errorf("dictionaries of %s are not supported", t.ValueType)
		}
	case arrow.ExtensionType:
		return checkDictionaries(t.StorageType())
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if err := checkDictionaries(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}
