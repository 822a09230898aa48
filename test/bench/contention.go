package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
)

const wantAppends = 300 // a second, by 32 clients

// wantDeltaAppends is that of Delta tables.
const wantDeltaAppends = 150

// appends is what came of many clients' appends.
type appends struct {
	mu        sync.Mutex
	took      []time.Duration
	ids       []int64 // of the rows of those that succeeded
	snapshots map[string]bool
	steps     map[string][]time.Duration
	failed    []error
}

// contention has clients append one row at a time to one table, each as fast as it can.
func contention(ctx context.Context, bin string, clients int, d time.Duration, venv string) error {
	if venv != "" {
		if err := pyiceberg(ctx, venv, clients, d); err != nil {
			return err
		}
	}
	c, err := startClusterWith(ctx, bin, "", "--slots", "4", "--threads", "1", "--memory", "1GiB")
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	for _, q := range []string{"CREATE SCHEMA " + catalog + ".b", "CREATE TABLE " + catalog + ".b.t (id BIGINT, name VARCHAR)", "INSERT INTO " + catalog + ".b.t VALUES (-1, 'warm-up')"} {
		if _, err := c.client.Exec(ctx, q); err != nil {
			return err
		}
	}
	before := c.cpu()
	a := &appends{snapshots: map[string]bool{}, steps: map[string][]time.Duration{}}
	begun := time.Now()
	var group sync.WaitGroup
	for n := range clients {
		group.Go(func() { a.client(ctx, c.addr, int64(n)<<32, begun.Add(d)) })
	}
	group.Wait()
	wall := time.Since(begun)
	used := c.cpu()
	if len(a.took) == 0 {
		return fmt.Errorf("no append succeeded: %w", errors.Join(a.failed...))
	}
	rate := float64(len(a.took)) / wall.Seconds()
	fmt.Printf("%d clients append one row each time to one table, %s:\n", clients, wall.Round(100*time.Millisecond))
	fmt.Printf("  %d appends, %d failed, %d versions of it (%.1f appends to one), p50 %s, p99 %s\n", len(a.took), len(a.failed), len(a.snapshots),
		float64(len(a.took))/float64(len(a.snapshots)), ms(quantile(a.took, 0.5)), ms(quantile(a.took, 0.99)))
	for _, k := range []string{"parse", "prepare", "analyze", "plan", "tasks", "stage", "queue", "commit"} {
		if len(a.steps[k]) > 0 {
			fmt.Printf("    %-10s p50 %s\n", k, ms(quantile(a.steps[k], 0.5)))
		}
	}
	total := 0.0
	for _, who := range slices.Sorted(maps.Keys(used)) {
		each := (used[who] - before[who]).Seconds() * 1000 / float64(len(a.took))
		total += each
		fmt.Printf("  CPU of the %s for each append: %.2f ms\n", who, each)
	}
	fmt.Printf("  CPU of all of them for each append: %.2f ms, which is %.0f appends a second for each core\n", total, 1000/total)
	want := wantAppends
	if catalog == "delta" {
		want = wantDeltaAppends
	}
	goal("appends a second", rate, rate >= float64(want), fmt.Sprintf("at least %d", want))
	goal("failed appends", float64(len(a.failed)), len(a.failed) == 0, "none")
	if len(a.failed) > 0 {
		fmt.Println("  the first failure:", a.failed[0])
	}
	return a.verify(ctx, c)
}

// client appends until the deadline.
func (a *appends) client(ctx context.Context, addr string, id int64, deadline time.Time) {
	cl, err := client.Dial(addr)
	if err != nil {
		a.note(func() { a.failed = append(a.failed, err) })
		return
	}
	defer cl.Close()
	for ; time.Now().Before(deadline) && ctx.Err() == nil; id++ {
		start := time.Now()
		r, err := cl.Exec(ctx, fmt.Sprintf("INSERT INTO %s.b.t VALUES (%d, 'one row')", catalog, id))
		took := time.Since(start)
		if err != nil {
			a.note(func() { a.failed = append(a.failed, err) })
			continue
		}
		snapshot, err := snapshotOf(r.Job)
		a.note(func() {
			if err != nil {
				a.failed = append(a.failed, err)
			}
			a.took, a.ids = append(a.took, took), append(a.ids, id)
			a.snapshots[snapshot] = true
			for k, us := range r.Job.TimingsMicros {
				a.steps[k] = append(a.steps[k], time.Duration(us)*time.Microsecond)
			}
		})
	}
}

func (a *appends) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// snapshotOf reads the snapshot, or the log's version, from a commit's result.
func snapshotOf(j *schedulerv1.Job) (string, error) {
	r, err := ipc.NewReader(bytes.NewReader(j.GetInlineResult()))
	if err != nil {
		return "", err
	}
	defer r.Release()
	for i, f := range r.Schema().Fields() {
		if f.Name == "version" && r.Next() {
			if col, ok := r.RecordBatch().Column(i).(*array.String); ok {
				return col.Value(0), nil
			}
		}
	}
	return "", errors.New("the result names no version")
}

// verify compares what clients were told with what the table holds.
func (a *appends) verify(ctx context.Context, c *cluster) error {
	r, err := c.client.Exec(ctx, "SELECT count(*) AS n, count(DISTINCT id) AS d FROM "+catalog+".b.t")
	if err != nil {
		return err
	}
	rows, err := c.client.Rows(ctx, r.Job)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return errors.Join(errors.New("the table cannot be counted"), rows.Err())
	}
	want := strconv.Itoa(len(a.ids) + 1)
	n, d := rows.RecordBatch().Column(0).ValueStr(0), rows.RecordBatch().Column(1).ValueStr(0)
	if len(a.failed) == 0 && (n != want || d != want) {
		return fmt.Errorf("the table has %s rows, %s of them different; clients were told of %s", n, d, want)
	}
	fmt.Printf("  the table holds %s rows, %s of them different, as clients were told\n", n, d)
	return nil
}

// cpu is the time that each process of the cluster has used.
func (c *cluster) cpu() map[string]time.Duration {
	out := map[string]time.Duration{
		"executor": processCPU(c.executor.Process.Pid), "scheduler": processCPU(c.procs[0].Process.Pid), "clients": processCPU(os.Getpid()),
	}
	for _, pid := range children(c.procs[0].Process.Pid) {
		out["sink"] += processCPU(pid)
	}
	return out
}

//go:embed pyiceberg.py
var pyicebergScript []byte

// pyiceberg runs as many PyIceberg clients on a table of their own.
func pyiceberg(ctx context.Context, venv string, clients int, d time.Duration) error {
	dir, err := os.MkdirTemp("", "signet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := filepath.Join(dir, "pyiceberg_appends.py")
	if err := os.WriteFile(script, pyicebergScript, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), script, dir, strconv.Itoa(clients), strconv.Itoa(int(d.Seconds())))
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("pyiceberg: %w", err)
	}
	var got struct {
		Appends, Failed, Snapshots, Rows int
		Seconds                          float64
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return err
	}
	fmt.Printf("PyIceberg, %d clients: %d appends (%.1f a second), %d failed, %d snapshots, %d rows in the table\n",
		clients, got.Appends, float64(got.Appends)/got.Seconds, got.Failed, got.Snapshots, got.Rows)
	return nil
}
