package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: bench latency|insert|splice|compact|partitioned|copy|dispatch|restart|contention|growth|files [flags]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, what string, args []string) error {
	fs := flag.NewFlagSet("bench "+what, flag.ContinueOnError)
	bin := fs.String("bin", "bin", "directory with signet and signet-executor")
	n := fs.Int("n", 0, "runs; 0: 200 for latency, 3 for partitioned and compact, otherwise 5")
	data := fs.String("data", "", "insert, splice, compact, partitioned, copy: pattern of the Parquet files to read")
	by := fs.String("by", "", "copy: expression whose values get files of their own")
	sorted := fs.Bool("sorted", false, "copy: sort by that expression first")
	out := fs.String("out", "", "copy: directory to write to")
	only := fs.String("only", "", "partitioned: month, bucket or day alone")
	threads := fs.Int("threads", 2, "threads of DuckDB, the same on both sides")
	memory := fs.String("memory", "4GiB", "memory limit, the same on both sides")
	apart := fs.Bool("apart", false, "dispatch: the simulated executors are a process of their own")
	profile := fs.String("profile", "", "dispatch: file for a CPU profile")
	clients := fs.Int("clients", 32, "contention: how many append at one time")
	seconds := fs.Int("seconds", 60, "contention: for how long")
	venv := fs.String("venv", "", "contention: Python environment with pyiceberg[sql-sqlite,pyarrow], to be measured in turn with ours; insert: with deltalake")
	after := fs.Int("expire-after", 0, "growth: have the scheduler expire the table's snapshots each time after so many commits; 0: keep them all")
	fs.StringVar(&catalog, "catalog", "lake", "latency, insert, splice, contention: lake for Iceberg tables, delta for Delta tables")
	addr := fs.String("scheduler", "", "executors: address of the scheduler")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch what {
	case "latency":
		return latency(ctx, *bin, orDefault(*n, 200))
	case "insert":
		return insert(ctx, *bin, *data, orDefault(*n, 5), *threads, *memory, *venv)
	case "copy":
		return copyOnce(ctx, *data, *out, *by, *sorted, *threads, *memory)
	case "splice":
		return spliceInsert(ctx, *bin, *data, orDefault(*n, 5), *threads, *memory)
	case "compact":
		return compactions(ctx, *bin, *data, orDefault(*n, 3), *threads, *memory)
	case "partitioned":
		return partitioned(ctx, *bin, *data, *only, orDefault(*n, 3), *threads, *memory)
	case "dispatch":
		return dispatch(ctx, *apart, *profile)
	case "restart":
		return restart(ctx, orDefault(*n, 5))
	case "contention":
		return contention(ctx, *bin, *clients, time.Duration(*seconds)*time.Second, *venv)
	case "growth":
		return growth(ctx, *bin, orDefault(*n, 1000), *after)
	case "files":
		return files(ctx, *bin, *n)
	case "executors": // what dispatch starts
		return simulate(ctx, *addr, simulatedExecutors, simulatedSlots, func() { fmt.Println("joined") })
	}
	return fmt.Errorf("%q: want latency, insert, splice, compact, partitioned, copy, dispatch, restart, contention, growth or files", what)
}

func orDefault(n, d int) int {
	if n > 0 {
		return n
	}
	return d
}

// quantile of durations; the slice is sorted.
func quantile(d []time.Duration, q float64) time.Duration {
	s := slices.Clone(d)
	slices.Sort(s)
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
