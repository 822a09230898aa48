package duckdb

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	mapping "github.com/duckdb/duckdb-go-bindings"
)

// Longs runs a query whose columns are BIGINT without NULLs, and hands its rows to visit batch by batch, as they come. The slices are valid until visit
// returns. Through database/sql each value would be an allocation.
func (i *Instance) Longs(ctx context.Context, query string, columns int, visit func(batch [][]int64) error) error {
	err := i.WithSelect(ctx, query, func(_ mapping.Connection, stmt mapping.PreparedStatement) error {
		var pending mapping.PendingResult
		defer mapping.DestroyPending(&pending)
		if mapping.PendingPreparedStreaming(stmt, &pending) == mapping.StateError {
			return ErrorFromText(mapping.PendingError(pending))
		}
		var res mapping.Result
		defer mapping.DestroyResult(&res)
		if mapping.ExecutePending(pending, &res) == mapping.StateError {
			return ErrorFromText(mapping.ResultError(&res))
		}
		if n := mapping.ColumnCount(&res); int(n) != columns { //nolint:gosec // a few columns
			return fmt.Errorf("the query has %d columns of %d", n, columns)
		}
		for c := range columns {
			if t := mapping.ColumnType(&res, mapping.IdxT(c)); t != mapping.TypeBigInt { //nolint:gosec // a few columns
				return fmt.Errorf("column %d is no BIGINT", c)
			}
		}
		return visitLongs(ctx, res, columns, visit)
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // DuckDB only says that it was interrupted
	}
	return err
}

func visitLongs(ctx context.Context, res mapping.Result, columns int, visit func([][]int64) error) error {
	batch := make([][]int64, columns)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := mapping.FetchChunk(res)
		if chunk.Ptr == nil { // the end, or an error in the middle
			if msg := mapping.ResultError(&res); msg != "" {
				return ErrorFromText(msg)
			}
			return nil
		}
		err := visitChunk(chunk, batch, visit)
		mapping.DestroyDataChunk(&chunk)
		if err != nil {
			return err
		}
	}
}

var errNull = errors.New("a column without NULLs has one")

func visitChunk(chunk mapping.DataChunk, batch [][]int64, visit func([][]int64) error) error {
	n := mapping.DataChunkGetSize(chunk)
	for c := range batch {
		v := mapping.DataChunkGetVector(chunk, mapping.IdxT(c)) //nolint:gosec // a few columns
		if mask := mapping.VectorGetValidity(v); mask != nil {
			words := unsafe.Slice((*uint64)(mask), (n+63)/64)
			for row := range n {
				if words[row/64]&(1<<(row%64)) == 0 {
					return errNull
				}
			}
		}
		batch[c] = unsafe.Slice((*int64)(mapping.VectorGetData(v)), n)
	}
	return visit(batch)
}
