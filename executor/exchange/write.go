package exchange

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/signet-io/signet/executor/duckdb"
)

const (
	// routed is how many partitions are written as the rows come. With more, DuckDB holds a buffer for each of them in each thread and cuts them
	// into thousands of small row groups: they are written in their order.
	routed = 64
	// fanOut is how many partitions at a time are written where memory is short.
	fanOut = 8
)

// write leaves the files in dir, and answers them by partition. What does not fit into memory is written again in a way that takes more time and
// less of it: a few rows at a time, and without a sort, which wide rows may not fit into.
func (q *query) write(ctx context.Context, inst *duckdb.Instance, dir string) (map[int32][]string, error) {
	if !q.hash {
		return q.writeOne(ctx, inst, dir)
	}
	w := &writer{ctx, inst, dir}
	order := ""
	if q.partitions > routed {
		order = " ORDER BY p"
	}
	err := w.copy(q.sql+order, dir, "p", groupRows)
	if w.retry(err) {
		err = w.narrow(q.sql, q.partitions)
	}
	if err != nil {
		return nil, err
	}
	return partitionsIn(dir)
}

func (q *query) writeOne(ctx context.Context, inst *duckdb.Instance, dir string) (map[int32][]string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	w := &writer{ctx, inst, dir}
	file := filepath.Join(dir, fileName(0))
	err := w.copy(q.sql, file, "", groupRows)
	if w.retry(err) {
		err = w.copy(q.sql, file, "", fewRows)
	}
	return map[int32][]string{0: {file}}, err
}

type writer struct {
	ctx  context.Context //nolint:containedctx // of one write
	inst *duckdb.Instance
	dir  string
}

// retry tells whether to write in another way, and if so removes what the first one has left.
func (w *writer) retry(err error) bool {
	var de *driver.Error
	if w.ctx.Err() != nil || !errors.As(err, &de) || de.Type != driver.ErrorTypeOutOfMemory {
		return false
	}
	entries, err := os.ReadDir(w.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(w.dir, e.Name())))
	}
	return err == nil || errors.Is(err, os.ErrNotExist)
}

// copy runs a query into a file, or into directories by a column, which goes.
func (w *writer) copy(sql, target, by string, rows int) error {
	options := copyOptions(w.inst.Access().KeepOrder, rows)
	if by != "" {
		options += ", PARTITION_BY (" + by + "), OVERWRITE_OR_IGNORE"
	}
	_, err := w.inst.Conn().ExecContext(w.ctx, "COPY ("+sql+") TO "+duckdb.Literal(target)+" ("+options+")")
	return err
}

// narrow routes the rows to a few ranges of partitions at a time, and each of these to narrower ones, until a range is a partition.
func (w *writer) narrow(sql string, partitions int32) error {
	if partitions <= fanOut {
		return w.copy(sql, w.dir, "p", fewRows)
	}
	width := (partitions + fanOut - 1) / fanOut
	ranges := w.dir + fmt.Sprintf(".by%d", width)
	defer os.RemoveAll(ranges) // at the latest it goes with the attempt
	if err := w.copy(fmt.Sprintf("SELECT *, p // %d AS b FROM (%s)", width, sql), ranges, "b", fewRows); err != nil {
		return err
	}
	entries, err := os.ReadDir(ranges)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(ranges, e.Name())
		list, err := filesIn(path)
		if err != nil {
			return err
		}
		from, err := duckdb.FileList(list)
		if err != nil {
			return err
		}
		if err := w.narrow("SELECT * FROM read_parquet("+from+", hive_partitioning=false)", width); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	out := make([]string, len(entries))
	for n, e := range entries {
		out[n] = filepath.Join(dir, e.Name())
	}
	return out, err
}
