package write_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/transform"
	"github.com/signet-io/signet/executor/upload"
	"github.com/signet-io/signet/executor/write"
)

// benchRows is how many rows the benchmark writes; SIGNET_BENCH_ROWS in its place.
const benchRows = "2000000"

// lineitem is like TPC-H's, without its generator.
const lineitem = `SELECT i::BIGINT AS orderkey, (hash(i) % 200000)::BIGINT AS partkey, (i % 7)::INTEGER AS linenumber, (hash(i + 1) % 50)::DECIMAL(15,2) AS quantity,
	((hash(i + 2) % 10000000) / 100)::DECIMAL(15,2) AS price, ((hash(i + 3) % 11) / 100)::DECIMAL(15,2) AS discount,
	['A', 'N', 'R'][1 + (hash(i) % 3)::INTEGER] AS returnflag, DATE '1992-01-01' + (hash(i + 5) % 2526)::INTEGER AS shipdate,
	DATE '1992-01-01' + (hash(i + 6) % 2526)::INTEGER AS commitdate, ['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'][1 + (hash(i) % 4)::INTEGER] AS instruct,
	' comment ' || (hash(i) % 1000000) || ' carefully final ' || (hash(i + 9) % 1000) AS comment FROM range({rows}) t(i)`

func benchTable(b *testing.B) *table {
	return newTable(b, field(1, "orderkey", "long"), field(2, "partkey", "long"), field(3, "linenumber", "int"), field(4, "quantity", "decimal(15,2)"),
		field(5, "price", "decimal(15,2)"), field(6, "discount", "decimal(15,2)"), field(7, "returnflag", "string"), field(8, "shipdate", "date"),
		field(9, "commitdate", "date"), field(10, "instruct", "string"), field(11, "comment", "string"))
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAgainstCopy runs a write task and a bare COPY with fsync of the same rows in turn and reports the ratio of their times: wall and
// processor.
func BenchmarkAgainstCopy(b *testing.B) {
	rows := os.Getenv("SIGNET_BENCH_ROWS")
	if rows == "" {
		rows = benchRows
	}
	dir := b.TempDir()
	source := filepath.Join(dir, "source.parquet")
	query(b, "COPY ("+strings.Replace(lineitem, "{rows}", rows, 1)+") TO "+duckdb.Literal(source)+" (FORMAT PARQUET)")
	pool := duckdb.NewPool(duckdb.Options{Ready: -1, Setup: transform.Register})
	defer pool.Close()
	access := func(scratch string) duckdb.Access {
		return duckdb.Access{ReadFiles: []string{source}, WriteDirs: []string{scratch}, TempDir: scratch + "/spill", Threads: 2, MemoryBytes: 1 << 30}
	}
	sql := "SELECT * FROM read_parquet(" + duckdb.Literal(source) + ")"
	n := 0
	measure := func(f func(inst *duckdb.Instance, scratch string)) (wall, busy time.Duration) {
		n++
		scratch := filepath.Join(dir, fmt.Sprint("scratch", n))
		require.NoError(b, os.Mkdir(scratch, 0o700))
		inst, err := pool.Open(context.Background(), access(scratch))
		require.NoError(b, err)
		begin, cpu0 := time.Now(), cpu()
		f(inst, scratch)
		wall, busy = time.Since(begin), cpu()-cpu0
		require.NoError(b, inst.Close())
		require.NoError(b, os.RemoveAll(scratch))
		return wall, busy
	}
	var walls, cpus []float64
	for b.Loop() {
		copyWall, copyCPU := measure(func(inst *duckdb.Instance, scratch string) {
			target := filepath.Join(scratch, "copy.parquet")
			_, err := inst.Conn().ExecContext(context.Background(),
				"COPY ("+sql+") TO "+duckdb.Literal(target)+" (FORMAT PARQUET, COMPRESSION zstd, ROW_GROUP_SIZE 122880)")
			require.NoError(b, err)
			f, err := os.Open(target)
			require.NoError(b, err)
			require.NoError(b, f.Sync())
			require.NoError(b, f.Close())
		})
		tb := benchTable(b)
		tb.task.Sql = sql
		var files []*planv1.DataFile
		runWall, runCPU := measure(func(inst *duckdb.Instance, scratch string) {
			var err error
			files, err = write.Run(context.Background(), inst, tb.task, write.Options{Scratch: scratch, Store: upload.Local{}})
			require.NoError(b, err)
		})
		require.NotEmpty(b, files)
		require.NoError(b, os.RemoveAll(path(tb.DataLocation)))
		walls = append(walls, runWall.Seconds()/copyWall.Seconds())
		cpus = append(cpus, runCPU.Seconds()/copyCPU.Seconds())
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	b.ReportMetric(walls[len(walls)/2], "wall-ratio")
	b.ReportMetric(cpus[len(cpus)/2], "cpu-ratio")
	b.ReportMetric(0, "ns/op")
}
