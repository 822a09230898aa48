package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// fewSnapshots is how many commits one table takes before the next one is used: the size of a table's metadata is a cost of its own.
const fewSnapshots = 50

// What a job may cost over its commit, and one row in all.
const (
	wantOverhead = 15 * time.Millisecond
	wantLatency  = 20 * time.Millisecond

	wantDeltaLatency = 25 * time.Millisecond // delta-rs takes 26
)

func latency(ctx context.Context, bin string, n int) error {
	c, err := startCluster(ctx, bin, 2, "1GiB")
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	if _, err := c.client.Exec(ctx, "CREATE SCHEMA "+catalog+".b"); err != nil {
		return err
	}
	var took, over []time.Duration
	steps := map[string][]time.Duration{}
	table := ""
	for i := range n + 20 {
		if i%fewSnapshots == 0 {
			table = fmt.Sprintf("%s.b.t%d", catalog, i/fewSnapshots)
			if _, err := c.client.Exec(ctx, "CREATE TABLE "+table+" (id BIGINT, name VARCHAR, at TIMESTAMP, amount DECIMAL(10,2))"); err != nil {
				return err
			}
		}
		start := time.Now()
		r, err := c.client.Exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d, 'one row', TIMESTAMP '2026-05-01 12:00:00', 12.50)", table, i))
		if err != nil {
			return err
		}
		d := time.Since(start)
		if i < 20 {
			continue // warm-up
		}
		took = append(took, d)
		over = append(over, d-time.Duration(r.Job.TimingsMicros["commit"])*time.Microsecond)
		for k, us := range r.Job.TimingsMicros {
			steps[k] = append(steps[k], time.Duration(us)*time.Microsecond)
		}
	}
	fmt.Printf("one-row INSERT, from the client's call to its answer, %d runs, at most %d snapshots in the table:\n", n, fewSnapshots)
	fmt.Printf("  median %s   p10 %s   p90 %s\n", ms(quantile(took, 0.5)), ms(quantile(took, 0.1)), ms(quantile(took, 0.9)))
	extra := quantile(over, 0.5)
	fmt.Printf("  without its commit: median %s\n", ms(extra))
	goal("ms over its commit", float64(extra.Microseconds())/1000, extra < wantOverhead, "less than 15")
	want := wantLatency
	if catalog == "delta" {
		want = wantDeltaLatency
	}
	goal("ms in all", float64(quantile(took, 0.5).Microseconds())/1000, quantile(took, 0.5) <= want, fmt.Sprintf("at most %d", want.Milliseconds()))
	fmt.Println("  medians of the steps (some run side by side):")
	for _, k := range slices.Sorted(maps.Keys(steps)) {
		fmt.Printf("    %-14s %s\n", k, ms(quantile(steps[k], 0.5)))
	}
	return nil
}
