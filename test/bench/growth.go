package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What the last of a thousand commits may cost of the tenth: with every snapshot kept, and with those that are old expired by the scheduler.
const (
	wantGrowth        = 3
	wantGrowthExpired = 1.5
)

// growth makes one-file commits to one table. What they cost besides the table's growing metadata is the same for all. after: the table's snapshots
// expire each time after so many commits; 0: never.
func growth(ctx context.Context, bin string, n, after int) error {
	const catalog = "    maintenance: {expire_snapshots: {after_commits: %d}}\n"
	more, want, label := "", float64(wantGrowth), "every snapshot kept"
	properties := ""
	if after > 0 {
		more, want, label = fmt.Sprintf(catalog, after), wantGrowthExpired, fmt.Sprintf("snapshots expired after each %d", after)
		properties = " TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1', 'history.expire.min-snapshots-to-keep' = '5', " +
			"'write.metadata.delete-after-commit.enabled' = 'true', 'write.metadata.previous-versions-max' = '10')"
	}
	c, err := startClusterOf(ctx, bin, more, "", "--slots", "1", "--threads", "1", "--memory", "1GiB")
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	for _, q := range []string{"CREATE SCHEMA lake.b", "CREATE TABLE lake.b.t (id BIGINT, name VARCHAR)" + properties} {
		if _, err := c.client.Exec(ctx, q); err != nil {
			return err
		}
	}
	const around = 25
	var commits []time.Duration
	var metadata []int64
	load := loadAverage()
	for i := range n + around {
		r, err := c.client.Exec(ctx, fmt.Sprintf("INSERT INTO lake.b.t VALUES (%d, 'one row')", i))
		if err != nil {
			return err
		}
		commits = append(commits, time.Duration(r.Job.TimingsMicros["commit"])*time.Microsecond)
		metadata = append(metadata, newestMetadata(filepath.Join(c.dir, "warehouse", "b", "t", "metadata")))
	}
	at := func(i int) []time.Duration { return commits[max(i-around, 0):min(i+around, len(commits))] } // machines are noisy
	fmt.Printf("one-file commits to one table, %s, of the 50 around each, at a load of %s to %s:\n", label, load, loadAverage())
	for _, i := range []int{10, 100, 250, 500, 750, 1000} {
		if i <= n {
			fmt.Printf("  commit %-6d median %s, fastest %s, metadata %d KB\n", i, ms(quantile(at(i), 0.5)), ms(slices.Min(at(i))), metadata[i]>>10)
		}
	}
	ratio := func(q float64) float64 { return quantile(at(n), q).Seconds() / quantile(at(10), q).Seconds() }
	fmt.Printf("  of the fastest tenths %.1f\n", ratio(0.1))
	goal(fmt.Sprintf("commit %d to commit 10, %s", n, label), ratio(0.5), ratio(0.5) <= want, fmt.Sprintf("at most %g", want))
	return nil
}

// newestMetadata is the size of the metadata.json that was written last.
func newestMetadata(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	newest, size := "", int64(0)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".metadata.json") && e.Name() > newest {
			newest, size = e.Name(), fi.Size()
		}
	}
	return size
}

func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(b), " ")
	return load
}
