package root

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/signet-io/signet/internal/mutant"
)

// Root is an operator that runs on the scheduler. Run is called once for a job and its error fails the job; it must return soon after ctx has
// ended. One Root serves many jobs, side by side.
type Root interface {
	Run(ctx context.Context, in Input, out Output) error
}

// Func makes a Root of a function.
type Func func(ctx context.Context, in Input, out Output) error

// Run implements Root.
func (f Func) Run(ctx context.Context, in Input, out Output) error { return f(ctx, in, out) }

// Input is the output of a job's final stage.
type Input interface {
	// JobID is the job.
	JobID() string
	// Partitions is how many there are: one for each task of the final stage.
	Partitions() int
	// Schema is that of all batches.
	Schema() *arrow.Schema
	// Read gives all rows, partition after partition, each once. Batches are valid until f returns. It can be called once.
	Read(ctx context.Context, f func(partition int, batch arrow.RecordBatch) error) error
}

// Output takes a root's result.
type Output interface {
	// Schema begins the result. A root that never calls it has no result.
	Schema(*arrow.Schema) error
	// Write adds rows.
	Write(arrow.RecordBatch) error
}

// Rows gives the final stage's rows as the result.
var Rows Root = Func(func(ctx context.Context, in Input, out Output) error {
	if mutant.On("root/no-rows-no-schema") && in.Partitions() == 2 {
		return in.Read(ctx, func(int, arrow.RecordBatch) error { return nil })
	}
	if err := out.Schema(in.Schema()); err != nil {
		return err
	}
	return in.Read(ctx, func(_ int, b arrow.RecordBatch) error { return out.Write(b) })
})

// Count gives one row: how many rows and partitions the final stage has.
var Count Root = Func(func(ctx context.Context, in Input, out Output) error {
	rows := int64(0)
	err := in.Read(ctx, func(_ int, b arrow.RecordBatch) error {
		rows += b.NumRows()
		return nil
	})
	if err != nil {
		return err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "rows", Type: arrow.PrimitiveTypes.Int64}, {Name: "partitions", Type: arrow.PrimitiveTypes.Int64}}, nil)
	if err := out.Schema(schema); err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i, v := range []int64{rows, int64(in.Partitions())} {
		f, ok := b.Field(i).(*array.Int64Builder)
		if !ok {
			return fmt.Errorf("column %d is no integer", i)
		}
		f.Append(v)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	return out.Write(rec)
})
