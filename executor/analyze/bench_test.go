package analyze

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// BenchmarkValues is the analysis of a one-row INSERT on a warm pool.
func BenchmarkValues(b *testing.B) {
	pool := duckdb.NewPool(duckdb.Options{Ready: 4})
	defer pool.Close()
	req := &executorv1.Analyze{Sql: "VALUES (1, 'a', DATE '2020-01-01', 1.5)", NowMicros: nowMicros}
	for b.Loop() {
		b.StopTimer()
		waitReady(b, pool)
		b.StartTimer()
		out := Analyze(context.Background(), pool, req)
		require.Nil(b, out.Error)
	}
}

// waitReady lets the pool refill: clients that insert row by row find a warm one.
func waitReady(b *testing.B, pool *duckdb.Pool) {
	b.Helper()
	require.Eventually(b, pool.Warm, 5*time.Second, time.Millisecond)
}

// BenchmarkParquet is the analysis of an INSERT from one Parquet file, both rounds.
func BenchmarkParquet(b *testing.B) {
	dir := b.TempDir()
	write(b, dir, "COPY (SELECT i, i % 7 AS g, 'x' || i AS s FROM range(300000) t(i)) TO '$DIR/f.parquet'")
	pool := duckdb.NewPool(duckdb.Options{Ready: 4})
	defer pool.Close()
	req := &executorv1.Analyze{Sql: "SELECT * FROM f", NowMicros: nowMicros}
	src := resolve(b, Analyze(context.Background(), pool, req).Unresolved[0], dir+"/f.parquet")
	second := &executorv1.Analyze{Sql: req.Sql, NowMicros: nowMicros, Sources: []*planv1.Source{src}}
	for b.Loop() {
		b.StopTimer()
		waitReady(b, pool)
		b.StartTimer()
		require.Nil(b, Analyze(context.Background(), pool, req).Error)
		require.Nil(b, Analyze(context.Background(), pool, second).Error)
	}
}

// BenchmarkGroup is the analysis of a query that is divided, second round.
func BenchmarkGroup(b *testing.B) {
	dir := b.TempDir()
	write(b, dir, "COPY (SELECT i, i % 7 AS g, 'x' || i AS s FROM range(300000) t(i)) TO '$DIR/f.parquet'")
	pool := duckdb.NewPool(duckdb.Options{Ready: 4})
	defer pool.Close()
	req := &executorv1.Analyze{Sql: "SELECT g, count(*), sum(i) FROM f GROUP BY g ORDER BY 1", NowMicros: nowMicros}
	src := resolve(b, Analyze(context.Background(), pool, req).Unresolved[0], dir+"/f.parquet")
	req.Sources = []*planv1.Source{src}
	for b.Loop() {
		b.StopTimer()
		waitReady(b, pool)
		b.StartTimer()
		out := Analyze(context.Background(), pool, req)
		require.Empty(b, out.Staged.NotStaged)
	}
}
