package duckdb

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPool_OpensLockedInstances(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	for range 4 {
		inst, err := p.Open(context.Background(), Access{TempDir: t.TempDir(), MemoryBytes: 1 << 30, Threads: 2})
		require.NoError(t, err)
		var n int
		require.NoError(t, inst.Conn().QueryRowContext(context.Background(), "SELECT 42").Scan(&n))
		require.Equal(t, 42, n)
		_, err = inst.Conn().ExecContext(context.Background(), "SET threads=3")
		require.ErrorContains(t, err, "locked")
		require.NoError(t, inst.Close())
	}
}

func BenchmarkOpenCold(b *testing.B) {
	for b.Loop() {
		inst, err := open(context.Background(), Options{})
		require.NoError(b, err)
		b.StopTimer()
		inst.Close()
		b.StartTimer()
	}
}

func BenchmarkLock(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		b.StopTimer()
		inst, err := open(context.Background(), Options{})
		require.NoError(b, err)
		b.StartTimer()
		require.NoError(b, inst.lock(context.Background(), Access{TempDir: dir, WriteDirs: []string{dir}, MemoryBytes: 1 << 30, Threads: 2}))
		b.StopTimer()
		inst.Close()
		b.StartTimer()
	}
}
