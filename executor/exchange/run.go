package exchange

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/internal/fault"
)

// MaxPartitions is how many partitions a task may have: its report lists each one in a single message.
const MaxPartitions = 65536

// Options of Run.
type Options struct {
	// Scratch is an existing directory of this attempt's own, absolute, that the instance may write below. Run makes Scratch/files there; the
	// caller removes what is left.
	Scratch string
	// Written is told what has been written, when it is known. Optional.
	Written func(rows, bytes int64)
}

// FilesDir is the directory below Options.Scratch that files are written to.
const FilesDir = "files"

// KeepOrder says whether the task needs Access.KeepOrder: rows that are gathered keep the order of the query.
func KeepOrder(task *planv1.ExchangeTask) bool {
	return task.GetKind() == planv1.ExchangeKind_EXCHANGE_KIND_GATHER
}

// OpenFiles is how many files a task's COPY may have open at a time, where that many tasks run beside each other; 0 where it does not matter.
func OpenFiles(task *planv1.ExchangeTask, tasks int) int {
	var limit unix.Rlimit
	if task.GetKind() != planv1.ExchangeKind_EXCHANGE_KIND_HASH || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	share := int64(min(limit.Cur, 1<<20)) / int64(2*max(1, tasks)) // half is for sources, sockets and DuckDB's own files
	return int(max(16, min(int64(task.GetPartitions()), share)))
}

// Check refuses a task that cannot be run.
func Check(task *planv1.ExchangeTask) error {
	hash := task.GetKind() == planv1.ExchangeKind_EXCHANGE_KIND_HASH
	switch n := task.GetPartitions(); {
	case task.GetKind() <= planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED || task.GetKind() > planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST:
		return fmt.Errorf("exchange of a kind that this executor does not know (%d)", task.GetKind())
	case task.GetTicket() == "":
		return errors.New("exchange without a ticket")
	case hash && (n < 1 || n > MaxPartitions):
		return fmt.Errorf("hash exchange with %d partitions: want 1 to %d", n, MaxPartitions)
	case hash && len(task.GetKeys()) == 0:
		return errors.New("hash exchange without keys")
	case !hash && n > 1:
		return fmt.Errorf("%s with %d partitions: want 1", task.GetKind(), n)
	}
	return nil
}

// Run writes the rows of a task whose sources are bound, one file per partition that has any, and answers their directory and what is in it.
func Run(ctx context.Context, inst *duckdb.Instance, task *planv1.Task, opts Options) (dir string, out *planv1.ExchangeOutput, err error) {
	q, err := newQuery(ctx, inst, task)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(opts.Scratch, FilesDir)
	if err := fault.Hit("executor.exchange.before-copy"); err != nil {
		return "", nil, err
	}
	files, err := q.write(ctx, inst, dir)
	if err != nil {
		return "", nil, err
	}
	if err := fault.Hit("executor.exchange.after-copy"); err != nil {
		return "", nil, err
	}
	if err := inst.CheckPins(); err != nil { // S73: the sources were what was planned until the last row was read
		return "", nil, err
	}
	if out, err = seal(ctx, inst, dir, files); err != nil {
		return "", nil, err
	}
	if opts.Written != nil {
		var rows, bytes int64
		for _, p := range out.GetPartitions() {
			rows, bytes = rows+p.GetRows(), bytes+p.GetBytes()
		}
		opts.Written(rows, bytes)
	}
	return dir, out, nil
}

// query is what a task's rows are written with.
type query struct {
	sql        string // the carriers c0, c1, ... and, for HASH, the partition p
	hash       bool
	partitions int32
}

func newQuery(ctx context.Context, inst *duckdb.Instance, task *planv1.Task) (*query, error) {
	ex := task.GetExchange()
	if err := Check(ex); err != nil {
		return nil, err
	}
	cols, err := inst.Describe(ctx, task.GetSql())
	if err != nil {
		return nil, err
	}
	in, list := make([]string, len(cols)), make([]string, 0, len(cols)+1)
	for n, c := range cols {
		in[n] = fmt.Sprintf("i%d", n)
		carrier, err := duckdb.ToCarrier(in[n], c.GetEngineType())
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.GetName(), err)
		}
		list = append(list, carrier+" AS "+duckdb.CarrierName(n))
	}
	q := &query{hash: ex.GetKind() == planv1.ExchangeKind_EXCHANGE_KIND_HASH, partitions: ex.GetPartitions()}
	if q.hash {
		p, err := partitionOf(ex, in)
		if err != nil {
			return nil, err
		}
		list = append(list, p+" AS p")
	}
	q.sql = "SELECT " + strings.Join(list, ", ") + " FROM (" + strings.TrimRight(task.GetSql(), "; \t\r\n") + "\n) AS q(" + strings.Join(in, ", ") + ")"
	return q, nil
}

// partitionOf is the partition of a row. DuckDB's hash treats NULLs, zeros and NaNs as its GROUP BY does; it is hashed once more, because
// joins and groups of the next stage look at the same bits of the first one.
func partitionOf(ex *planv1.ExchangeTask, columns []string) (string, error) {
	keys := make([]string, len(ex.GetKeys()))
	for n, k := range ex.GetKeys() {
		if k < 0 || int(k) >= len(columns) {
			return "", fmt.Errorf("hash exchange by column %d of %d", k, len(columns))
		}
		keys[n] = columns[k]
	}
	return fmt.Sprintf("CAST(hash(hash(%s)) %% %d AS INTEGER)", strings.Join(keys, ", "), ex.GetPartitions()), nil
}

// groupRows is how many rows a row group has. Small ones cost little, and keep rows that are not narrow within the memory limit.
const groupRows = 20480

// fewRows is for rows so wide that DuckDB cannot hold more of them.
const fewRows = 2048

// copyOptions are the same for all files. Measured: version 2 pages take less time and less space than version 1, and lz4 less time than
// snappy.
func copyOptions(ordered bool, rows int) string {
	opts := fmt.Sprintf("FORMAT PARQUET, PARQUET_VERSION V2, COMPRESSION LZ4_RAW, WRITE_BLOOM_FILTER false, ROW_GROUP_SIZE %d", rows)
	if !ordered { // DuckDB refuses it where the order of the input counts
		opts += ", ROW_GROUP_SIZE_BYTES '16MB'"
	}
	return opts
}
