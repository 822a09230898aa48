package duckdb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	driver "github.com/duckdb/duckdb-go/v2"
)

// Names of the functions that views over data files call. Each takes a file as the hash of its path and of what is asked about it, because DuckDB
// computes that once for a whole vector, and a path as text would be copied for every row.
const (
	deletedFunction   = "signet_row_deleted" // (file, row): is the row deleted by position?
	fileValueFunction = "signet_file_value"  // (file): a number that belongs to the file, or NULL
)

// rowKind is what a table view asks about a file.
type rowKind int

const (
	keyPositions rowKind = iota
	keyFirstRow
	keySequence
	rowKinds
)

// fileRows is what the views of one instance know of their files and no column says. It is filled while views are made, and only read by their queries.
type fileRows struct {
	positions map[uint64]*roaring64.Bitmap
	values    map[uint64]int64
	views     int
}

// key is the expression for a file of the view that is being made.
func (r *fileRows) key(kind rowKind) string {
	return r.hash("filename", kind)
}

// hash is of the path's MD5: DuckDB's own hash of two long texts that differ in two bytes, such as the number of a partition and that of a file, is the same
// for one pair in some hundred.
func (r *fileRows) hash(path string, kind rowKind) string {
	return fmt.Sprintf("hash(md5(%s), %d)", path, r.number(kind))
}

func (r *fileRows) number(kind rowKind) int { return r.views*int(rowKinds) + int(kind) }

// newView begins a view: the same file may have other deletes in it than in another. The functions are there from the first one on.
func (i *Instance) newView() error {
	if i.rows == nil {
		i.rows = &fileRows{positions: map[uint64]*roaring64.Bitmap{}, values: map[uint64]int64{}}
		if err := i.rows.register(i.conn); err != nil {
			return err
		}
	}
	i.rows.views++
	return nil
}

// hashes are the keys of files, by path.
func (i *Instance) hashes(ctx context.Context, paths []string, kind rowKind) (map[string]uint64, error) {
	rows, err := i.conn.QueryContext(ctx, fmt.Sprintf("SELECT p, %s FROM (SELECT unnest(%s) AS p)", i.rows.hash("p", kind), ListLiteral(paths)))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out, back := make(map[string]uint64, len(paths)), map[uint64]string{}
	for rows.Next() {
		var path string
		var h uint64
		if err := rows.Scan(&path, &h); err != nil {
			return nil, err
		}
		if other, taken := back[h]; taken && other != path {
			return nil, fmt.Errorf("the files %s and %s have the same hash", other, path)
		}
		out[path], back[h] = h, path
	}
	return out, rows.Err()
}

func (r *fileRows) register(conn *sql.Conn) error {
	types := map[driver.Type]driver.TypeInfo{}
	for _, t := range []driver.Type{driver.TYPE_UBIGINT, driver.TYPE_BIGINT, driver.TYPE_BOOLEAN} {
		info, err := driver.NewTypeInfo(t)
		if err != nil {
			return err
		}
		types[t] = info
	}
	file, row := types[driver.TYPE_UBIGINT], types[driver.TYPE_BIGINT]
	for name, f := range map[string]*rowFunction{
		deletedFunction:   {[]driver.TypeInfo{file, row}, types[driver.TYPE_BOOLEAN], r.deleted},
		fileValueFunction: {[]driver.TypeInfo{file}, row, r.value},
	} {
		if err := driver.RegisterScalarUDF(conn, name, f); err != nil {
			return fmt.Errorf("register %s: %w", name, err)
		}
	}
	return nil
}

type rowFunction struct {
	in   []driver.TypeInfo
	out  driver.TypeInfo
	exec driver.ChunkContextExecutorFn
}

// Config implements driver.ScalarFunc.
func (f *rowFunction) Config() driver.ScalarFuncConfig {
	return driver.ScalarFuncConfig{InputTypeInfos: f.in, ResultTypeInfo: f.out}
}

// Executor implements driver.ScalarFunc.
func (f *rowFunction) Executor() driver.ScalarFuncExecutor {
	return driver.ScalarFuncExecutor{ChunkContextExecutor: f.exec}
}

func (r *fileRows) deleted(_ context.Context, chunk *driver.ChunkIteratorState) error {
	var last uint64
	var positions *roaring64.Bitmap
	for row, err := range chunk.Rows() {
		if err != nil {
			return err
		}
		file, ok := (*row.GetValuePtr(0)).(uint64)
		n, isRow := (*row.GetValuePtr(1)).(int64)
		if !ok || !isRow {
			return fmt.Errorf("%s: want UBIGINT and BIGINT", deletedFunction)
		}
		if positions == nil || file != last {
			last, positions = file, r.positions[file]
		}
		if err := row.SetResult(positions != nil && positions.Contains(uint64(n))); err != nil {
			return err
		}
	}
	return nil
}

func (r *fileRows) value(_ context.Context, chunk *driver.ChunkIteratorState) error {
	for row, err := range chunk.Rows() {
		if err != nil {
			return err
		}
		file, ok := (*row.GetValuePtr(0)).(uint64)
		if !ok {
			return fmt.Errorf("%s: want UBIGINT", fileValueFunction)
		}
		var result any
		if v, ok := r.values[file]; ok {
			result = v
		}
		if err := row.SetResult(result); err != nil {
			return err
		}
	}
	return nil
}
