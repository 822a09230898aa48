package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/signet-io/signet/executor"
	"github.com/signet-io/signet/internal/tracing/export"
)

// version is set at link time.
var version = "dev"

// parentPoll is how often the parent is looked for; systems that have it also send a signal at once.
const parentPoll = 500 * time.Millisecond

func main() { os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)) }

func run(args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	opts, err := parse(args, env, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "signet-executor:", err)
		return 2
	}
	if opts.version {
		_, _ = fmt.Fprintf(stdout, "signet-executor %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return 0
	}
	_ = os.Unsetenv(TokenEnv) // nothing this process starts needs it
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: opts.logLevel}))
	opts.config.Logger, opts.config.Version = log, version
	stopTraces, err := export.Setup(context.Background(), "signet-executor", version)
	if err != nil {
		log.Warn("no traces", "error", err)
	}
	defer func() {
		if err := stopTraces(context.Background()); err != nil {
			log.Warn("traces", "error", err)
		}
	}()
	limitGo()
	e, err := executor.New(opts.config)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "signet-executor:", err)
		return 2
	}
	ctx, stop := signals(opts)
	defer stop()
	if err := e.Run(ctx); err != nil {
		log.Error("executor failed", "error", err)
		return 1
	}
	return 0
}

// limitGo makes the collector keep Go's own memory small: DuckDB's is outside of it and has a limit of its own.
func limitGo() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(256 << 20)
	}
}

// signals ends the context at SIGTERM, at Ctrl-C unless a parent handles that, and when the parent is gone. A second signal ends the
// process.
func signals(opts *options) (context.Context, func()) {
	stops := []os.Signal{syscall.SIGTERM}
	if opts.ignoreInterrupt {
		signal.Ignore(os.Interrupt)
	} else {
		stops = append(stops, os.Interrupt)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), stops...)
	context.AfterFunc(ctx, cancel) // restores the default action for a second signal
	if opts.parentPID > 0 {
		go watchParent(ctx, opts.parentPID, cancel)
	}
	return ctx, cancel
}

// watchParent polls: a signal would do only where the system has one, and only for the thread that started us.
func watchParent(ctx context.Context, pid int, gone func()) {
	tick := time.NewTicker(parentPoll)
	defer tick.Stop()
	for os.Getppid() == pid {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	gone()
}
