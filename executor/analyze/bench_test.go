package analyze

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
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
