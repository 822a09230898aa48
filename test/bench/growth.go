package main

import (
	"context"
	"fmt"
	"time"
)

// wantGrowth is how much the last of a thousand commits may cost of the tenth.
const wantGrowth = 3

// growth makes one-file commits to one table. What they cost besides the table's growing metadata is the same for all.
func growth(ctx context.Context, bin string, n int) error {
	c, err := startCluster(ctx, bin, 1, "1GiB")
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	for _, q := range []string{"CREATE SCHEMA lake.b", "CREATE TABLE lake.b.t (id BIGINT, name VARCHAR)"} {
		if _, err := c.client.Exec(ctx, q); err != nil {
			return err
		}
	}
	var commits []time.Duration
	for i := range n + 10 {
		r, err := c.client.Exec(ctx, fmt.Sprintf("INSERT INTO lake.b.t VALUES (%d, 'one row')", i))
		if err != nil {
			return err
		}
		commits = append(commits, time.Duration(r.Job.TimingsMicros["commit"])*time.Microsecond)
	}
	at := func(i int) time.Duration { return quantile(commits[max(i-10, 0):min(i+10, len(commits))], 0.5) } // machines are noisy
	fmt.Printf("one-file commits to one table, the median of 20 around each:\n")
	for _, i := range []int{10, 100, 250, 500, 750, 1000} {
		if i <= n {
			fmt.Printf("  commit %-6d %s\n", i, ms(at(i)))
		}
	}
	ratio := at(n).Seconds() / at(10).Seconds()
	goal(fmt.Sprintf("commit %d to commit 10", n), ratio, ratio <= wantGrowth, fmt.Sprintf("at most %d", wantGrowth))
	return nil
}
