package main

import (
	"bytes"
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// insert times INSERT against COPY, in turn: noise that lasts hits both.
func insert(ctx context.Context, bin, data string, n, threads int, memory, venv string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c, data, err := startOn(ctx, bin, data, threads, memory)
	if err != nil {
		return err
	}
	defer func() { _ = c.stop() }()
	var ratios []time.Duration
	for i := range n + 1 {
		base, err := timeCopy(ctx, self, data, filepath.Join(c.dir, fmt.Sprintf("copy-%d", i)), threads, memory)
		if err != nil {
			return err
		}
		ours, rows, err := c.timeInsert(ctx, data, i)
		if err != nil {
			return err
		}
		ratio := ours.Seconds() / base.Seconds()
		note := ""
		if i == 0 {
			note = "   (warm-up, not counted)"
		} else {
			ratios = append(ratios, time.Duration(ratio*1e6))
		}
		fmt.Printf("INSERT %.2f s   COPY+fsync %.2f s   ratio %.3f   %d rows%s\n", ours.Seconds(), base.Seconds(), ratio, rows, note)
		if venv == "" {
			continue
		}
		took, err := timeDeltaRS(ctx, venv, data, filepath.Join(c.dir, fmt.Sprintf("delta-rs-%d", i)))
		if err != nil {
			return err
		}
		fmt.Printf("                delta-rs %.2f s     ratio %.3f%s\n", took.Seconds(), ours.Seconds()/took.Seconds(), note)
	}
	fmt.Printf("ratio INSERT / COPY+fsync: median %.3f (min %.3f, max %.3f), %d threads; executor's peak memory %.0f MiB of %s\n",
		float64(quantile(ratios, 0.5))/1e6, float64(quantile(ratios, 0))/1e6, float64(quantile(ratios, 1))/1e6, threads, c.peak(), memory)
	return nil
}

func (c *cluster) timeInsert(ctx context.Context, data string, i int) (time.Duration, int64, error) {
	table := fmt.Sprintf("%s.b.lineitem%d", catalog, i)
	source := "'" + strings.ReplaceAll(data, "'", "''") + "'"
	if _, err := c.client.Exec(ctx, "CREATE TABLE "+table+" AS SELECT * FROM "+source+" LIMIT 0"); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	r, err := c.client.Exec(ctx, "INSERT INTO "+table+" SELECT * FROM "+source)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	rows := r.Job.Progress.Rows
	_, err = c.client.Exec(ctx, "DROP TABLE "+table)
	return took, rows, errors.Join(err, os.RemoveAll(filepath.Join(c.dir, "warehouse", "b", fmt.Sprintf("lineitem%d", i), "data")))
}

//go:embed deltars.py
var deltaRSScript []byte

// timeDeltaRS has delta-rs write the same rows into a Delta table, in a process of its own, and takes the time that it reports.
func timeDeltaRS(ctx context.Context, venv, data, out string) (time.Duration, error) {
	files, err := filepath.Glob(data)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(venv, "bin", "python"), append([]string{"-", out}, files...)...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(deltaRSScript), os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("delta-rs: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	return time.Duration(seconds * float64(time.Second)), errors.Join(err, os.RemoveAll(out))
}

func timeCopy(ctx context.Context, self, data, out string, threads int, memory string) (time.Duration, error) {
	took, _, err := timeLayout(ctx, self, data, out, layout{}, threads, memory)
	return took, err
}

// timeLayout runs the baseline in a process of its own, as INSERT has one, and takes the time that it reports, without its start, and the number of files.
func timeLayout(ctx context.Context, self, data, out string, l layout, threads int, memory string) (time.Duration, int, error) {
	cmd := exec.CommandContext(ctx, self, "copy", "--data", data, "--out", out, "--threads", fmt.Sprint(threads), "--memory", memory, "--by", l.key, fmt.Sprintf("--sorted=%v", l.sorted))
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return 0, 0, err
	}
	var seconds float64
	if _, err := fmt.Sscanf(string(b), "%f", &seconds); err != nil {
		return 0, 0, fmt.Errorf("copy printed %q: %w", b, err)
	}
	return time.Duration(seconds * float64(time.Second)), countFiles(out), os.RemoveAll(out)
}
