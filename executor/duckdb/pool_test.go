package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPool_OpensLockedInstances(t *testing.T) {
	p := NewPool(Options{MemoryBytes: 1 << 30})
	defer p.Close()
	seen := map[*Instance]bool{}
	for n := range 4 {
		dir := t.TempDir()
		inst, err := p.Open(context.Background(), Access{TempDir: dir, MemoryBytes: int64(n%2+1) << 29, Threads: n%2 + 1, KeepOrder: n%2 == 0})
		require.NoError(t, err)
		require.False(t, seen[inst], "never the same twice")
		seen[inst] = true
		for name, want := range map[string]string{
			"temp_directory": dir, "threads": itoa(n%2 + 1), "preserve_insertion_order": map[bool]string{true: "true", false: "false"}[n%2 == 0],
			"memory_limit": map[bool]string{true: "512.0 MiB", false: "1.0 GiB"}[n%2 == 0], "enable_external_access": "false", "lock_configuration": "true",
			"TimeZone": "UTC", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "allow_community_extensions": "false",
		} {
			var got string
			require.NoError(t, inst.Conn().QueryRowContext(context.Background(), "SELECT CAST(current_setting('"+name+"') AS VARCHAR)").Scan(&got))
			require.Equal(t, want, got, name)
		}
		require.NoError(t, inst.Close())
		require.NoError(t, inst.Close(), "twice is fine")
		inst.Interrupt() // after Close: nothing
	}
	_, err := p.Open(context.Background(), Access{ReadFiles: []string{"relative.parquet"}})
	require.ErrorContains(t, err, "relative.parquet")
}

func TestPool_Concurrent(t *testing.T) {
	p := NewPool(Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3 {
				inst, err := p.Open(context.Background(), Access{})
				if !errors.Is(err, nil) {
					t.Error(err)
					return
				}
				p.Discard(inst)
				bare, giveBack, err := p.Bare(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := bare.Describe(context.Background(), "SELECT 1"); err != nil {
					t.Error(err)
				}
				giveBack(true)
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err := p.Open(context.Background(), Access{})
	require.ErrorIs(t, err, ErrPoolClosed)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, PlanError(err).Class)
}

func TestPool_CloseWhileTaken(t *testing.T) {
	p := NewPool(Options{})
	inst, err := p.Open(context.Background(), Access{})
	require.NoError(t, err)
	_, giveBack, err := p.Bare(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.Close())
	_, err = inst.Describe(context.Background(), "SELECT 1")
	require.NoError(t, err, "an instance outlives its pool")
	giveBack(true)
	p.Discard(inst)
}

func TestPool_SetupRunsBeforeTheLock(t *testing.T) {
	boom := errors.New("boom")
	p := NewPool(Options{Ready: -1, Setup: func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "CREATE MACRO ours(x) AS x + 1")
		return err
	}})
	defer p.Close()
	inst, err := p.Open(context.Background(), Access{})
	require.NoError(t, err)
	defer inst.Close()
	require.Equal(t, []string{"{'n': 3}"}, text(t, inst, "SELECT ours(2) AS n"))
	bad := NewPool(Options{Setup: func(context.Context, *sql.Conn) error { return boom }})
	_, err = bad.Open(context.Background(), Access{})
	require.ErrorIs(t, err, boom)
	require.NoError(t, bad.Close())
}

func TestInstance_Interrupt(t *testing.T) { // X21
	inst := locked(t)
	time.AfterFunc(50*time.Millisecond, inst.Interrupt)
	_, err := inst.Conn().ExecContext(context.Background(), "SELECT count(*) FROM range(10000000000) a, range(1000000) b")
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_KILLED, PlanError(err).Class, err)
	require.True(t, inst.Interrupted())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = inst.Conn().ExecContext(ctx, "SELECT count(*) FROM range(10000000000) a, range(1000000) b")
	require.Error(t, err)
	require.Less(t, time.Since(start), 2*time.Second)
	_, err = inst.Describe(context.Background(), "SELECT 1")
	require.NoError(t, err, "the connection is usable after an interrupt")
}

func TestInstance_SpillsOnlyIntoItsTempDir(t *testing.T) {
	const sort = "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY md5(range::VARCHAR)) r FROM range(2000000))"
	p := NewPool(Options{Ready: -1, MemoryBytes: 64 << 20})
	defer p.Close()
	inst, err := p.Open(context.Background(), Access{})
	require.NoError(t, err)
	_, err = inst.Conn().ExecContext(context.Background(), sort)
	require.Equal(t, planv1.ErrorClass_ERROR_CLASS_RESOURCE, PlanError(err).Class, err)
	require.NoError(t, inst.Close())
	dir := t.TempDir() + "/spill"
	inst, err = p.Open(context.Background(), Access{TempDir: dir})
	require.NoError(t, err)
	_, err = inst.Conn().ExecContext(context.Background(), sort)
	require.NoError(t, err)
	require.DirExists(t, dir)
	require.NoError(t, inst.Close())
	left, err := os.ReadDir(dir)
	if err == nil {
		require.Empty(t, left, "spill files go with the instance")
	}
	require.NoDirExists(t, ".tmp")
}

// The refill runs at the lowest priority; nothing that works for a task does.
func TestPool_OnlyTheRefillIsSlow(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	require.Eventually(t, p.Warm, 10*time.Second, time.Millisecond)
	inst, err := p.Open(context.Background(), Access{Threads: 4})
	require.NoError(t, err)
	defer inst.Close()
	_, err = inst.Conn().ExecContext(context.Background(), "SELECT sum(md5_number(range::VARCHAR)) FROM range(300000)")
	require.NoError(t, err)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc here")
	}
	slow := 0
	for _, task := range tasks {
		stat, err := os.ReadFile("/proc/self/task/" + task.Name() + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if task.Name() == strconv.Itoa(os.Getpid()) {
			continue // Go parks the first thread for good if a locked goroutine, an earlier refill, ended on it
		}
		if fields[16] == "19" { // nice; the fields after the name begin with the state, which is the third
			slow++
		}
	}
	require.LessOrEqual(t, slow, 1)
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
		inst, err := open(context.Background(), Options{MemoryBytes: 1 << 30})
		require.NoError(b, err)
		b.StartTimer()
		require.NoError(b, inst.lock(context.Background(), Access{TempDir: dir, WriteDirs: []string{dir}, MemoryBytes: 1 << 30, Threads: 2}))
		b.StopTimer()
		inst.Close()
		b.StartTimer()
	}
}
