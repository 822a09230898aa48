package log

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// cell is one value of a column, or one place without a value.
type cell struct {
	row    int
	null   bool
	first  bool    // the first one of its row
	number int64   // of integers, booleans, dates, timestamps; microseconds of an INT96
	float  float64 // of floating point numbers
	bytes  []byte  // of byte arrays, valid until the next cell
}

// cellBatch is how many values are decoded at a time.
const cellBatch = 4096

// eachCell goes through a column of a row group.
func eachCell(group *file.RowGroupReader, column int, visit func(*cell) error) error {
	in, err := group.Column(column)
	if err != nil {
		return err
	}
	switch in := in.(type) {
	case *file.ByteArrayColumnChunkReader:
		return scan(in, in, func(v parquet.ByteArray, c *cell) { c.bytes = v }, visit)
	case *file.FixedLenByteArrayColumnChunkReader:
		return scan(in, in, func(v parquet.FixedLenByteArray, c *cell) { c.bytes = v }, visit)
	case *file.Int64ColumnChunkReader:
		return scan(in, in, func(v int64, c *cell) { c.number = v }, visit)
	case *file.Int32ColumnChunkReader:
		return scan(in, in, func(v int32, c *cell) { c.number = int64(v) }, visit)
	case *file.Float64ColumnChunkReader:
		return scan(in, in, func(v float64, c *cell) { c.float = v }, visit)
	case *file.Float32ColumnChunkReader:
		return scan(in, in, func(v float32, c *cell) { c.float = float64(v) }, visit)
	case *file.BooleanColumnChunkReader:
		return scan(in, in, func(v bool, c *cell) {
			if c.number = 0; v {
				c.number = 1
			}
		}, visit)
	case *file.Int96ColumnChunkReader:
		return scan(in, in, func(v parquet.Int96, c *cell) { c.number = v.ToTime().UnixMicro() }, visit)
	}
	return fmt.Errorf("a column of type %s", in.Type())
}

type batches[T any] interface {
	ReadBatch(size int64, values []T, def, rep []int16) (levels int64, read int, err error)
}

func scan[T any](in file.ColumnChunkReader, batch batches[T], set func(T, *cell), visit func(*cell) error) error {
	defined, repeated := in.Descriptor().MaxDefinitionLevel(), in.Descriptor().MaxRepetitionLevel() > 0
	values, def, rep := make([]T, cellBatch), make([]int16, cellBatch), make([]int16, cellBatch)
	c := &cell{row: -1}
	for in.HasNext() {
		levels, read, err := batch.ReadBatch(cellBatch, values, def, rep)
		if err != nil {
			return err
		}
		if levels <= 0 {
			return errors.New("a page without values")
		}
		next := 0
		for i := range levels {
			if c.first = !repeated || rep[i] == 0; c.first {
				c.row++
			}
			if c.row < 0 {
				return errors.New("a column that begins in the middle of a row")
			}
			if c.null = defined > 0 && def[i] < defined; !c.null {
				if next >= read || c.row == math.MaxInt32 {
					return errors.New("fewer values than levels")
				}
				set(values[next], c)
				next++
			}
			if err := visit(c); err != nil {
				return err
			}
		}
	}
	return in.Err()
}
