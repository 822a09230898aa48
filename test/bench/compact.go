package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/client"
)

// smallFileBytes is the size at which the small files of a compaction roll: about 1,000 files of one row group each for 10 million rows of lineitem.
const smallFileBytes = 256 << 10

// compactions times the compaction of a table of small files with and without copying row groups, in turn.
func compactions(ctx context.Context, bin, data string, n, threads int, memory string) error {
	c, data, err := startOn(ctx, bin, data, threads, memory)
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	var ratios []time.Duration
	for i := range n {
		copied, before, after, err := c.timeCompaction(ctx, data, fmt.Sprintf("c%d", i), true)
		if err != nil {
			return err
		}
		anew, _, made, err := c.timeCompaction(ctx, data, fmt.Sprintf("a%d", i), false)
		if err != nil {
			return err
		}
		ratio := copied.Seconds() / anew.Seconds()
		ratios = append(ratios, time.Duration(ratio*1e6))
		fmt.Printf("compact %d files   copied %.2f s, %d files   written anew %.2f s, %d files   ratio %.3f\n", before, copied.Seconds(), after, anew.Seconds(), made, ratio)
	}
	fmt.Printf("compact ratio copied / written anew: median %.3f (min %.3f, max %.3f), %d threads; executor's peak memory so far %.0f MiB of %s\n",
		float64(quantile(ratios, 0.5))/1e6, float64(quantile(ratios, 0))/1e6, float64(quantile(ratios, 1))/1e6, threads, c.peak(), memory)
	return nil
}

func (c *cluster) timeCompaction(ctx context.Context, data, name string, splice bool) (took time.Duration, before, after int64, err error) {
	table, source := "lake.b."+name, "'"+strings.ReplaceAll(data, "'", "''")+"'"
	for _, text := range []string{
		fmt.Sprintf("CREATE TABLE %s WITH ('write.target-file-size-bytes' = '%d', 'write.parquet.row-group-limit' = '10240', 'signet.splice.enabled' = 'false') AS SELECT * FROM %s", table, smallFileBytes, source),
		fmt.Sprintf("ALTER TABLE %s SET TBLPROPERTIES ('write.target-file-size-bytes' = '536870912'), UNSET TBLPROPERTIES ('write.parquet.row-group-limit')", table),
	} {
		if _, err := c.client.Exec(ctx, text); err != nil {
			return 0, 0, 0, err
		}
	}
	if splice {
		if _, err := c.client.Exec(ctx, "ALTER TABLE "+table+" UNSET TBLPROPERTIES ('signet.splice.enabled')"); err != nil {
			return 0, 0, 0, err
		}
	}
	start := time.Now()
	r, err := c.client.Exec(ctx, "CALL lake.system.rewrite_data_files(table => 'b."+name+"')")
	if err != nil {
		return 0, 0, 0, err
	}
	took = time.Since(start)
	counts, err := c.firstInts(ctx, r, 2)
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = c.client.Exec(ctx, "DROP TABLE "+table)
	return took, counts[0], counts[1], err
}

// firstInts are the first columns of the only row of a result.
func (c *cluster) firstInts(ctx context.Context, r *client.Result, n int) ([]int64, error) {
	rows, err := c.client.Rows(ctx, r.Job)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, errors.Join(rows.Err(), errors.New("no row came back"))
	}
	out := make([]int64, n)
	for i := range out {
		if out[i], err = strconv.ParseInt(rows.RecordBatch().Column(i).ValueStr(0), 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}
