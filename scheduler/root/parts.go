package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Fetch writes the bytes of one part, checked against its sum.
type Fetch func(ctx context.Context, part *planv1.ExchangePart, w io.Writer) error

// Parts is an Input whose rows lie on executors as Parquet files. Each is fetched into Dir, read, and removed.
type Parts struct {
	Job     string
	Tasks   int // of the final stage
	Columns []*planv1.Column
	Parts   []*planv1.ExchangePart // in the order of tasks
	Fetch   Fetch
	Dir     string

	schema *arrow.Schema
	read   bool
}

// NewParts checks that the parts are of distinct tasks and partitions (T1) and derives the schema.
func NewParts(p Parts) (*Parts, error) {
	seen := map[[2]int32]string{}
	for _, part := range p.Parts {
		key := [2]int32{part.GetTask(), part.GetPartition()}
		if other, twice := seen[key]; twice && !mutant.On("root/parts-appended") {
			return nil, fmt.Errorf("partition %d of task %d is there twice, of attempts %s and %s", part.GetPartition(), part.GetTask(), other, part.GetAttemptId())
		}
		seen[key] = part.GetAttemptId()
		if part.GetTask() < 0 || int(part.GetTask()) >= p.Tasks {
			return nil, fmt.Errorf("a part of task %d of %d", part.GetTask(), p.Tasks)
		}
	}
	fields := make([]arrow.Field, len(p.Columns))
	for i, c := range p.Columns {
		t, err := arrowType(c)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.GetName(), err)
		}
		fields[i] = arrow.Field{Name: c.GetName(), Type: t, Nullable: true}
	}
	p.schema = arrow.NewSchema(fields, nil)
	return &p, nil
}

// JobID implements Input.
func (p *Parts) JobID() string { return p.Job }

// Partitions implements Input.
func (p *Parts) Partitions() int { return p.Tasks }

// Schema implements Input.
func (p *Parts) Schema() *arrow.Schema { return p.schema }

// Read implements Input.
func (p *Parts) Read(ctx context.Context, f func(int, arrow.RecordBatch) error) error {
	if p.read {
		return errors.New("the root's input is read once")
	}
	p.read = true
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("scratch of the scheduler root: %w", err)
	}
	defer os.RemoveAll(p.Dir)
	for i, part := range p.Parts {
		if mutant.On("root/part-left-out") && i > 0 && i == len(p.Parts)-1 {
			break
		}
		if err := p.one(ctx, i, part, f); err != nil {
			return fmt.Errorf("partition %d of task %d on executor %s: %w", part.GetPartition(), part.GetTask(), part.GetExecutorId(), err)
		}
	}
	return nil
}

func (p *Parts) one(ctx context.Context, i int, part *planv1.ExchangePart, f func(int, arrow.RecordBatch) error) error {
	name := filepath.Join(p.Dir, fmt.Sprintf("%d.parquet", i))
	dst, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	defer dst.Close()
	if err := p.Fetch(ctx, part, dst); err != nil {
		return err
	}
	rows, err := p.rows(ctx, dst, func(b arrow.RecordBatch) error { return f(int(part.GetTask()), b) })
	if err != nil {
		return err
	}
	if rows != part.GetRows() {
		return fmt.Errorf("it has %d rows, and its task reported %d", rows, part.GetRows())
	}
	return nil
}

// batchRows is how many rows a root gets at a time.
const batchRows = 8192

func (p *Parts) rows(ctx context.Context, src *os.File, f func(arrow.RecordBatch) error) (int64, error) {
	pf, err := file.NewParquetReader(src)
	if err != nil {
		return 0, fmt.Errorf("read Parquet: %w", err)
	}
	defer pf.Close()
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: batchRows}, memory.DefaultAllocator)
	if err != nil {
		return 0, fmt.Errorf("read Parquet: %w", err)
	}
	rr, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return 0, fmt.Errorf("read Parquet: %w", err)
	}
	defer rr.Release()
	rows := int64(0)
	for rr.Next() {
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		b, err := p.conform(rr.RecordBatch())
		if err != nil {
			return rows, err
		}
		rows += b.NumRows()
		err = f(b)
		b.Release()
		if err != nil {
			return rows, err
		}
	}
	if err := rr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return rows, fmt.Errorf("read Parquet: %w", err)
	}
	return rows, nil
}

// conform gives a batch the names and types of the input's schema. Columns are matched by place.
func (p *Parts) conform(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if int(b.NumCols()) != p.schema.NumFields() {
		return nil, fmt.Errorf("it has %d columns, and the query %d", b.NumCols(), p.schema.NumFields())
	}
	cols := make([]arrow.Array, b.NumCols())
	for i := range cols {
		col, err := retype(b.Column(i), p.schema.Field(i).Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", p.schema.Field(i).Name, err)
		}
		cols[i] = col
		defer col.Release()
	}
	return array.NewRecordBatch(p.schema, cols, b.NumRows()), nil
}
