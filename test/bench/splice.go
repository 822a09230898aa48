package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// spliceInsert times an INSERT that copies row groups against COPY of the same rows, in turn.
func spliceInsert(ctx context.Context, bin, data string, n, threads int, memory string) error {
	return compare(ctx, bin, data, n, threads, memory, []layout{{name: "splice"}})
}

// partitioned times INSERTs into partitioned tables against the best COPY of the same layout, in turn.
func partitioned(ctx context.Context, bin, data, only string, n, threads int, memory string) error {
	layouts := []layout{
		{name: "month", by: "month(l_shipdate)", key: "(year(l_shipdate) - 1970) * 12 + month(l_shipdate) - 1", off: true},
		{name: "bucket", by: "bucket(16, l_orderkey)", key: "hash(l_orderkey) % 16", off: true},
		{name: "day", by: "day(l_shipdate)", key: "l_shipdate - DATE '1970-01-01'", sorted: true, off: true},
	}
	if only != "" {
		layouts = slices.DeleteFunc(layouts, func(l layout) bool { return l.name != only })
	}
	return compare(ctx, bin, data, n, threads, memory, layouts)
}

// layout is how a table's files are divided, and how COPY does it best.
type layout struct {
	name, by, key string
	sorted        bool // COPY sorts by the key first
	off           bool // row groups are not copied, whatever they are
}

func compare(ctx context.Context, bin, data string, n, threads int, memory string, layouts []layout) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, data, err := startOn(ctx, bin, data, threads, memory)
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	for _, l := range layouts {
		if err := c.compareLayout(ctx, self, data, l, n, threads, memory); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (c *cluster) compareLayout(ctx context.Context, self, data string, l layout, n, threads int, memory string) error {
	var ratios []time.Duration
	for i := range n {
		base, files, err := timeLayout(ctx, self, data, filepath.Join(c.dir, "copy"), l, threads, memory)
		if err != nil {
			return err
		}
		ours, rows, made, err := c.timeLayoutInsert(ctx, data, l, i)
		if err != nil {
			return err
		}
		ratio := ours.Seconds() / base.Seconds()
		ratios = append(ratios, time.Duration(ratio*1e6))
		fmt.Printf("%-7s INSERT %.2f s, %d files   COPY+fsync %.2f s, %d files   ratio %.3f   %d rows\n", l.name, ours.Seconds(), made, base.Seconds(), files, ratio, rows)
	}
	fmt.Printf("%-7s ratio INSERT / COPY+fsync: median %.3f (min %.3f, max %.3f), %d threads; executor's peak memory so far %.0f MiB of %s\n", l.name,
		float64(quantile(ratios, 0.5))/1e6, float64(quantile(ratios, 0))/1e6, float64(quantile(ratios, 1))/1e6, threads, c.peak(), memory)
	return nil
}

func (c *cluster) timeLayoutInsert(ctx context.Context, data string, l layout, i int) (took time.Duration, rows int64, files int, err error) {
	name := fmt.Sprintf("%s%d", l.name, i)
	table, source := catalog+".b."+name, "'"+strings.ReplaceAll(data, "'", "''")+"'"
	create := "CREATE TABLE " + table
	if l.by != "" {
		create += " PARTITIONED BY (" + l.by + ")"
	}
	if l.off {
		create += " WITH ('signet.splice.enabled' = 'false')"
	}
	if _, err := c.client.Exec(ctx, create+" AS SELECT * FROM "+source+" LIMIT 0"); err != nil {
		return 0, 0, 0, err
	}
	start := time.Now()
	r, err := c.client.Exec(ctx, "INSERT INTO "+table+" SELECT * FROM "+source)
	if err != nil {
		return 0, 0, 0, err
	}
	took, rows = time.Since(start), r.Job.Progress.Rows
	dir := filepath.Join(c.dir, "warehouse", "b", name, "data")
	files = countFiles(dir)
	_, err = c.client.Exec(ctx, "DROP TABLE "+table)
	return took, rows, files, errors.Join(err, os.RemoveAll(dir))
}

func countFiles(dir string) int {
	n := 0
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".parquet") {
			n++
		}
		return nil
	})
	return n
}
