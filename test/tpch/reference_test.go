//go:build cgo

package tpch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/analyze/stages/querygen"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/result"
)

// reference is one DuckDB over the files of a directory.
type reference struct{ inst *duckdb.Instance }

func newReference(t testing.TB, dir string) *reference {
	t.Helper()
	inst, err := pool.Open(t.Context(), duckdb.Access{WriteDirs: []string{dir}, Threads: 2})
	require.NoError(t, err)
	t.Cleanup(func() { pool.Discard(inst) })
	return &reference{inst}
}

func (r *reference) exec(t testing.TB, format string, args ...any) {
	t.Helper()
	stmt := fmt.Sprintf(format, args...)
	_, err := r.inst.Conn().ExecContext(t.Context(), stmt)
	require.NoError(t, err, stmt)
}

// views names the tables, each the Parquet files of a directory.
func (r *reference) views(t testing.TB, dir string, tables ...string) {
	for _, name := range tables {
		r.exec(t, "CREATE OR REPLACE TEMP VIEW %s AS SELECT * FROM read_parquet(%s)", duckdb.Ident(name), duckdb.Literal(filepath.Join(dir, name, "*.parquet")))
	}
}

// answer is the result of a query.
type answer struct {
	schema *arrow.Schema
	rows   [][]any // floating-point numbers as float64, NULL as nil, everything else as text
}

// errTooLarge: the result has more rows than it is worth to compare.
var errTooLarge = errors.New("the result is too large to be compared")

// query runs a query here. mostBytes bounds its Arrow stream.
func (r *reference) query(ctx context.Context, sql string, mostBytes int) (*answer, error) {
	var buf bytes.Buffer
	_, err := result.Stream(ctx, r.inst, sql, 0, func(b []byte) error {
		if buf.Len() > mostBytes {
			return errTooLarge
		}
		buf.Write(b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	rd, err := ipc.NewReader(&buf)
	if err != nil {
		return nil, err
	}
	defer rd.Release()
	out := &answer{schema: rd.Schema()}
	for rd.Next() {
		out.add(rd.RecordBatch())
	}
	if err := rd.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return out, nil
}

func (a *answer) add(b arrow.RecordBatch) {
	for i := range int(b.NumRows()) {
		row := make([]any, b.NumCols())
		for c, col := range b.Columns() {
			row[c] = value(col, i)
		}
		a.rows = append(a.rows, row)
	}
}

func value(col arrow.Array, i int) any {
	if col.IsNull(i) {
		return nil
	}
	switch c := col.(type) {
	case *array.Float64:
		return c.Value(i)
	case *array.Float32:
		return float64(c.Value(i))
	}
	return col.ValueStr(i)
}

// differs says how got is another result than a; empty: it is the same.
func (a *answer) differs(got *answer, ordered bool) string {
	if len(a.schema.Fields()) != len(got.schema.Fields()) {
		return fmt.Sprintf("want %s, got %s", a.schema, got.schema)
	}
	for i, f := range a.schema.Fields() {
		if g := got.schema.Field(i); g.Name != f.Name || !arrow.TypeEqual(g.Type, f.Type) {
			return fmt.Sprintf("column %d: want %s %s, got %s %s", i, f.Name, f.Type, g.Name, g.Type)
		}
	}
	return querygen.Diff(a.rows, got.rows, ordered)
}
