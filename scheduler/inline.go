package scheduler

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// row is one row of an inline result: string, int64, bool or nil, in the order of the schema.
type row []any

// inlineResult encodes a small result that the scheduler itself made as an Arrow IPC stream (S25). Columns are named with a
// type after a colon: "rows:int", "table:string", "ok:bool".
func inlineResult(columns []string, rows []row) ([]byte, error) {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		name, kind, _ := bytes.Cut([]byte(c), []byte{':'})
		f := arrow.Field{Name: string(name), Nullable: true}
		switch string(kind) {
		case "int":
			f.Type = arrow.PrimitiveTypes.Int64
		case "bool":
			f.Type = arrow.FixedWidthTypes.Boolean
		default:
			f.Type = arrow.BinaryTypes.String
		}
		fields[i] = f
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range rows {
		for i, v := range r {
			if err := appendValue(b.Field(i), v); err != nil {
				return nil, fmt.Errorf("result column %s: %w", fields[i].Name, err)
			}
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func appendValue(b array.Builder, v any) error {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
		return nil
	case string:
		if b, ok := b.(*array.StringBuilder); ok {
			b.Append(v)
			return nil
		}
	case int64:
		if b, ok := b.(*array.Int64Builder); ok {
			b.Append(v)
			return nil
		}
	case bool:
		if b, ok := b.(*array.BooleanBuilder); ok {
			b.Append(v)
			return nil
		}
	}
	return fmt.Errorf("value of type %T does not fit %s", v, b.Type())
}
