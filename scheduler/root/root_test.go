package root_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/root"
)

// columns have other names than the files: they are matched by place.
func columns() []*planv1.Column {
	return []*planv1.Column{
		{Name: "n", EngineType: "BIGINT"},
		{Name: "n", EngineType: "ENUM('x')"},
		{Name: "ts", EngineType: "TIMESTAMP WITH TIME ZONE"},
		{Name: "l", EngineType: "INTEGER[]"},
		{Name: "u", EngineType: "UUID"},
		{Name: "s", EngineType: "STRUCT(a UBIGINT, b UUID)"},
	}
}

func parquetFile(t *testing.T, from, to int) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "c0", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "c1", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "c2", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "c3", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "c4", Type: extensions.NewUUIDType(), Nullable: true},
		{Name: "c5", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Uint64, Nullable: true}, arrow.Field{Name: "b", Type: extensions.NewUUIDType(), Nullable: true}), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := from; i < to; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%3 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append("x")
		}
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
		l := b.Field(3).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		b.Field(4).(*extensions.UUIDBuilder).Append(uuid.UUID{15: byte(i)})
		st := b.Field(5).(*array.StructBuilder)
		st.Append(true)
		st.FieldBuilder(0).(*array.Uint64Builder).Append(uint64(i))
		st.FieldBuilder(1).(*extensions.UUIDBuilder).Append(uuid.UUID{14: byte(i)})
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// stage is a final stage of three tasks, of which the second has no rows.
type stage struct {
	files   map[int32][]byte
	fetched map[int32]int
	rows    map[int32]int64
}

func newStage(t *testing.T) *stage {
	return &stage{
		files: map[int32][]byte{0: parquetFile(t, 0, 10), 2: parquetFile(t, 10, 25_000)}, fetched: map[int32]int{}, rows: map[int32]int64{0: 10, 2: 24_990},
	}
}

func (s *stage) input(t *testing.T) *root.Parts {
	t.Helper()
	p := root.Parts{Job: "j", Tasks: 3, Columns: columns(), Dir: filepath.Join(t.TempDir(), "root"), Fetch: func(_ context.Context, p *planv1.ExchangePart, w io.Writer) error {
		s.fetched[p.GetTask()]++
		_, err := w.Write(s.files[p.GetTask()])
		return err
	}}
	for _, task := range []int32{0, 2} {
		p.Parts = append(p.Parts, &planv1.ExchangePart{Task: task, AttemptId: "a", Rows: s.rows[task]})
	}
	in, err := root.NewParts(p)
	require.NoError(t, err)
	return in
}

func read(t *testing.T, b []byte) (rows int64, schema *arrow.Schema) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Release()
	next := int64(0)
	for r.Next() {
		if c, ok := r.RecordBatch().Column(0).(*array.Int64); ok && r.Schema().NumFields() == 6 {
			for i := range c.Len() {
				require.Equal(t, next, c.Value(i), "rows come in order")
				next++
			}
		}
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	return rows, r.Schema()
}

func TestRows_EveryPartitionOnce_S10_S30(t *testing.T) {
	s := newStage(t)
	in := s.input(t)
	out := &root.Result{Max: 1 << 24}
	require.NoError(t, root.Rows.Run(t.Context(), in, out))
	b, err := out.Bytes()
	require.NoError(t, err)
	rows, schema := read(t, b)
	require.EqualValues(t, 25_000, rows)
	require.True(t, in.Schema().Equal(schema))
	require.Equal(t, "n", schema.Field(1).Name, "names are the query's, also where two are the same")
	require.Equal(t, map[int32]int{0: 1, 2: 1}, s.fetched)
	require.NoDirExists(t, in.Dir)
	require.ErrorContains(t, in.Read(t.Context(), nil), "read once")
}

func TestRows_NoRowsHaveASchema_S30(t *testing.T) {
	in, err := root.NewParts(root.Parts{Tasks: 2, Columns: columns(), Dir: filepath.Join(t.TempDir(), "root")})
	require.NoError(t, err)
	out := &root.Result{Max: 1 << 20}
	require.NoError(t, root.Rows.Run(t.Context(), in, out))
	b, err := out.Bytes()
	require.NoError(t, err)
	rows, schema := read(t, b)
	require.Zero(t, rows)
	require.Equal(t, 6, schema.NumFields())
}

func TestCount_OneRow(t *testing.T) {
	out := &root.Result{Max: 1 << 20}
	require.NoError(t, root.Count.Run(t.Context(), newStage(t).input(t), out))
	b, err := out.Bytes()
	require.NoError(t, err)
	require.Less(t, len(b), 1000)
	r, err := ipc.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	require.True(t, r.Next())
	require.EqualValues(t, 25_000, r.RecordBatch().Column(0).(*array.Int64).Value(0))
	require.EqualValues(t, 3, r.RecordBatch().Column(1).(*array.Int64).Value(0))
}

// The cap is met while the result streams: exactly at it passes, one byte more does not, and nothing more is fetched then.
func TestResult_Cap_S36_S37_S39_S59(t *testing.T) {
	run := func(most int64) (*stage, []byte, error) {
		s := newStage(t)
		out := &root.Result{Max: most, Setting: "limits.x"}
		if err := root.Rows.Run(t.Context(), s.input(t), out); err != nil {
			return s, nil, err
		}
		b, err := out.Bytes()
		return s, b, err
	}
	_, b, err := run(1 << 24)
	require.NoError(t, err)
	size := int64(len(b))
	_, b, err = run(size)
	require.NoError(t, err)
	require.Len(t, b, int(size))
	_, _, err = run(size - 1)
	require.ErrorIs(t, err, root.ErrTooLarge)
	require.ErrorContains(t, err, "limits.x")
	s, _, err := run(100)
	require.ErrorIs(t, err, root.ErrTooLarge)
	require.Equal(t, map[int32]int{0: 1}, s.fetched)
}

func TestParts_RefusesWhatDoesNotAddUp_T1(t *testing.T) {
	part := &planv1.ExchangePart{Task: 0, AttemptId: "a"}
	_, err := root.NewParts(root.Parts{Tasks: 1, Parts: []*planv1.ExchangePart{part, {Task: 0, AttemptId: "b"}}})
	require.ErrorContains(t, err, "there twice, of attempts a and b")
	_, err = root.NewParts(root.Parts{Tasks: 1, Parts: []*planv1.ExchangePart{{Task: 1}}})
	require.ErrorContains(t, err, "a part of task 1 of 1")

	s := newStage(t)
	s.rows[2]--
	require.ErrorContains(t, root.Count.Run(t.Context(), s.input(t), &root.Result{Max: 1 << 20}), "24990 rows, and its task reported 24989")
	s = newStage(t)
	s.files[0] = []byte("not parquet at all, but long enough")
	require.ErrorContains(t, root.Count.Run(t.Context(), s.input(t), &root.Result{Max: 1 << 20}), "read Parquet")
	in := newStage(t).input(t)
	in.Columns = in.Columns[:1]
	short, err := root.NewParts(*in)
	require.NoError(t, err)
	require.ErrorContains(t, root.Count.Run(t.Context(), short, &root.Result{Max: 1 << 20}), "6 columns, and the query 1")
	in = newStage(t).input(t)
	in.Columns[0].EngineType = "DATE"
	other, err := root.NewParts(*in)
	require.NoError(t, err)
	require.ErrorContains(t, root.Count.Run(t.Context(), other, &root.Result{Max: 1 << 20}), "its rows are int64")
}

func TestParts_StopWithTheContext_S21(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("cancelled by somebody")
	in := newStage(t).input(t)
	err := in.Read(ctx, func(int, arrow.RecordBatch) error {
		cancel(gone)
		return nil
	})
	require.ErrorIs(t, err, gone)
	_, err = os.Stat(in.Dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestExact_WhatComesAsItIs(t *testing.T) {
	for typ, want := range map[string]bool{
		"BIGINT": true, "UTINYINT": true, "VARCHAR": true, "DECIMAL(38,2)": true, "TIMESTAMP WITH TIME ZONE": true, "STRUCT(a INTEGER, b UUID)[]": true,
		"MAP(VARCHAR, DATE)": true, "HUGEINT": false, "INTERVAL": false, "ENUM('a')": false, "STRUCT(a HUGEINT)": false, "UNION(a INTEGER)": false, `"NULL"`: false,
		"INTEGER[3]": false, "no type(": false,
	} {
		require.Equal(t, want, root.Exact(&planv1.Column{EngineType: typ}), typ)
	}
}
