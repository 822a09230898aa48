package exchange_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

const (
	benchRows = 5_000_000
	benchSQL  = `SELECT i AS a, (hash(i) >> 1)::BIGINT AS b, i % 1000 AS c, 'name ' || (i % 100000) AS d, i * 1.5::DOUBLE AS e, (i % 100)::DECIMAL(10,2) AS f,
		DATE '2020-01-01' + (i % 1000)::INTEGER AS g FROM range(5000000) t(i)`
	benchRead = "SELECT count(*), sum(a), sum(b), sum(c), max(d), sum(e), sum(f), max(g) FROM v"
)

// BenchmarkExchange writes 5 million rows, fetches them and reads them.
func BenchmarkExchange(b *testing.B) {
	for name, ex := range map[string]*planv1.ExchangeTask{"gather": gathered(), "hash-16": hashed(16, 0), "hash-200": hashed(200, 0)} {
		b.Run(name, func(b *testing.B) {
			n := newNode(b)
			cpu := cpuTime(b)
			for b.Loop() {
				cols, parts := n.produce(ex, 0, benchSQL)
				inst := n.consume(input("v", cols, parts))
				require.Len(b, rows(b, inst, benchRead), 1)
				var bytes int64
				for _, p := range parts {
					bytes += p.GetBytes()
				}
				b.SetBytes(bytes)
			}
			report(b, cpu)
		})
	}
}

// BenchmarkBareDuckDB is the same without an exchange: a COPY to one file, with DuckDB's defaults and with the exchange's options, and its read.
func BenchmarkBareDuckDB(b *testing.B) {
	for name, options := range map[string]string{"defaults": "FORMAT PARQUET", "as-exchange": "FORMAT PARQUET, PARQUET_VERSION V2, COMPRESSION LZ4_RAW, ROW_GROUP_SIZE 20480"} {
		b.Run(name, func(b *testing.B) {
			n := newNode(b)
			cpu := cpuTime(b)
			for b.Loop() {
				dir := b.TempDir()
				acc := n.access
				acc.WriteDirs, acc.TempDir = []string{dir}, filepath.Join(dir, "spill")
				for _, sql := range []string{
					fmt.Sprintf("COPY (%s) TO '%s/f.parquet' (%s)", benchSQL, dir, options),
					fmt.Sprintf("CREATE TEMP VIEW v AS SELECT * FROM read_parquet('%s/f.parquet'); %s", dir, benchRead),
				} {
					benchExec(b, n.pool, acc, sql)
				}
			}
			report(b, cpu)
		})
	}
}

// report adds what a busy machine does not change: processor time.
func report(b *testing.B, before time.Duration) {
	b.Helper()
	b.ReportMetric(benchRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchExec(b *testing.B, pool *duckdb.Pool, acc duckdb.Access, sql string) {
	b.Helper()
	inst, err := pool.Open(context.Background(), acc)
	require.NoError(b, err)
	defer inst.Close()
	_, err = inst.Conn().ExecContext(context.Background(), sql)
	require.NoError(b, err)
}
