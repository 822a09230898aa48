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
	g := &growing{cluster: c, properties: properties}
	if _, err := c.client.Exec(ctx, "CREATE SCHEMA lake.b"); err != nil {
		return err
	}
	load := loadAverage()
	if err := g.create(ctx, "t"); err != nil {
		return err
	}
	const around = 25
	var commits []time.Duration
	var metadata []int64
	for range n - around {
		took, err := g.commit(ctx, "t")
		if err != nil {
			return err
		}
		commits, metadata = append(commits, took), append(metadata, g.metadata("t"))
	}
	at := func(i int) []time.Duration { return commits[max(i-around, 0):min(i+around, len(commits))] }
	fmt.Printf("one-file commits to one table, %s, of the 50 around each, at a load of %s to %s:\n", label, load, loadAverage())
	for _, i := range []int{10, 100, 250, 500, 750, n - around - 1} {
		if i < len(commits) {
			fmt.Printf("  commit %-6d median %s, fastest %s, metadata %d KB\n", i, ms(quantile(at(i), 0.5)), ms(slices.Min(at(i))), metadata[i]>>10)
		}
	}
	old, young, err := g.inTurn(ctx, around)
	if err != nil {
		return err
	}
	fmt.Printf("in turn, at a load of %s: commits %d to %d of that table, and 1 to 20 of new ones:\n", loadAverage(), n-around, n+around)
	fmt.Printf("  medians %s and %s; fastest tenths %s and %s: %.1f\n", ms(quantile(old.took, 0.5)), ms(quantile(young.took, 0.5)),
		ms(quantile(old.took, 0.1)), ms(quantile(young.took, 0.1)), quantile(old.took, 0.1).Seconds()/quantile(young.took, 0.1).Seconds())
	fmt.Printf("  CPU of scheduler and sink for each %s and %s\n", ms(old.cpu/time.Duration(len(old.took))), ms(young.cpu/time.Duration(len(young.took))))
	ratio := quantile(old.took, 0.5).Seconds() / quantile(young.took, 0.5).Seconds()
	goal(fmt.Sprintf("commit %d to commit 10, %s", n, label), ratio, ratio <= want, fmt.Sprintf("at most %g", want))
	return nil
}

// growing are tables of a cluster that grow commit by commit.
type growing struct {
	*cluster
	properties string
	rows       int
}

func (g *growing) create(ctx context.Context, table string) error {
	_, err := g.client.Exec(ctx, "CREATE TABLE lake.b."+table+" (id BIGINT, name VARCHAR)"+g.properties)
	return err
}

func (g *growing) commit(ctx context.Context, table string) (time.Duration, error) {
	g.rows++
	r, err := g.client.Exec(ctx, fmt.Sprintf("INSERT INTO lake.b.%s VALUES (%d, 'one row')", table, g.rows))
	if err != nil {
		return 0, err
	}
	return time.Duration(r.Job.TimingsMicros["commit"]) * time.Microsecond, nil
}

// sample are commits, and what scheduler and sink have used for them, whatever else they did meanwhile.
type sample struct {
	took []time.Duration
	cpu  time.Duration
}

// inTurn makes the same number of commits to the table that has grown and to new ones, five by five, so that what else the machine does falls on both.
func (g *growing) inTurn(ctx context.Context, around int) (old, young sample, err error) {
	const each, life = 5, 20
	pids := append(children(g.procs[0].Process.Pid), g.procs[0].Process.Pid)
	cpu := func() (all time.Duration) {
		for _, pid := range pids {
			all += processCPU(pid)
		}
		return all
	}
	table := ""
	for i := range 2 * around / each {
		if i%(life/each) == 0 {
			table = fmt.Sprintf("young%d", i)
			if err := g.create(ctx, table); err != nil {
				return old, young, err
			}
		}
		for s, of := range map[*sample]string{&old: "t", &young: table} {
			before := cpu()
			for range each {
				took, err := g.commit(ctx, of)
				if err != nil {
					return old, young, err
				}
				s.took = append(s.took, took)
			}
			s.cpu += cpu() - before
		}
	}
	return old, young, nil
}

// metadata is the size of a table's newest metadata.json.
func (g *growing) metadata(table string) int64 {
	return newestMetadata(filepath.Join(g.dir, "warehouse", "b", table, "metadata"))
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
