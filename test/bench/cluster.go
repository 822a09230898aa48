package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/signet-io/signet/client"
)

// catalog is where the tables are that are measured: lake for Iceberg, delta for Delta.
var catalog = "lake"

// cluster is a scheduler and one executor.
type cluster struct {
	dir      string
	addr     string
	client   *client.Client
	executor *exec.Cmd
	procs    []*exec.Cmd
}

// startOn starts a cluster with the schema b in the catalog, and answers the absolute pattern of the files to read.
func startOn(ctx context.Context, bin, data string, threads int, memory string) (*cluster, string, error) {
	if data == "" {
		return nil, "", errors.New("--data is missing; test/bench/run.sh makes TPC-H lineitem")
	}
	data, err := filepath.Abs(data)
	if err != nil {
		return nil, "", err
	}
	c, err := startCluster(ctx, bin, threads, memory)
	if err != nil {
		return nil, "", err
	}
	if _, err := c.client.Exec(ctx, "CREATE SCHEMA "+catalog+".b"); err != nil {
		return nil, "", errors.Join(err, c.stop())
	}
	return c, data, nil
}

func startCluster(ctx context.Context, bin string, threads int, memory string) (*cluster, error) {
	return startClusterWith(ctx, bin, "", "--slots", "1", "--threads", fmt.Sprint(threads), "--memory", memory)
}

// startClusterWith takes more lines of the scheduler's configuration, and the executor's arguments.
func startClusterWith(ctx context.Context, bin, more string, executor ...string) (*cluster, error) {
	return startClusterOf(ctx, bin, "", more, executor...)
}

// startClusterOf takes lines of the catalog's configuration besides.
func startClusterOf(ctx context.Context, bin, lake, more string, executor ...string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "signet-bench-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir}
	conf := fmt.Sprintf("data_dir: %[1]s/data\nlisten: 127.0.0.1:0\ncatalogs:\n  lake:\n    type: sql\n    uri: sqlite://%[1]s/catalog.db\n    warehouse: file://%[1]s/warehouse\n%[4]s  delta:\n    type: delta\n    root: file://%[1]s/warehouse\nexecutors: {local: 0}\nlog: {level: %[2]s}\n%[3]s", dir, cmp.Or(os.Getenv("BENCH_LOG_LEVEL"), "warn"), more, lake)
	if err := os.WriteFile(filepath.Join(dir, "signet.yaml"), []byte(conf), 0o600); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	if err := c.start(ctx, bin, executor); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context, bin string, executor []string) error {
	sched := exec.CommandContext(ctx, filepath.Join(bin, "signet"), "scheduler", "--config", filepath.Join(c.dir, "signet.yaml"))
	pipe, err := sched.StdoutPipe()
	if err != nil {
		return err
	}
	sched.Stderr = os.Stderr
	if err := c.launch(sched); err != nil {
		return err
	}
	lines := bufio.NewScanner(pipe)
	addr := ""
	for addr == "" && lines.Scan() {
		addr, _ = strings.CutPrefix(lines.Text(), "listening on ")
	}
	if addr == "" {
		return errors.New("the scheduler did not start")
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	args := []string{"--scheduler", addr, "--scratch", filepath.Join(c.dir, "scratch"), "--log-level", strings.ToUpper(cmp.Or(os.Getenv("BENCH_LOG_LEVEL"), "warn"))}
	c.executor = exec.CommandContext(ctx, filepath.Join(bin, "signet-executor"), append(args, executor...)...)
	c.executor.Stderr = os.Stderr
	if err := c.launch(c.executor); err != nil {
		return err
	}
	c.addr = addr
	if c.client, err = client.Dial(addr); err != nil {
		return err
	}
	for range 200 {
		info, err := c.client.Info(ctx)
		if err == nil && len(info.Executors) > 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the executor did not join")
}

func (c *cluster) launch(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return err
	}
	c.procs = append(c.procs, cmd)
	return nil
}

func (c *cluster) stop() error {
	if c.client != nil {
		_ = c.client.Close()
	}
	for i := len(c.procs) - 1; i >= 0; i-- {
		_ = c.procs[i].Process.Signal(syscall.SIGTERM)
		_ = c.procs[i].Wait()
	}
	return os.RemoveAll(c.dir)
}

// peak is the executor's largest resident size so far, in MiB.
func (c *cluster) peak() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.executor.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}
