package sinktest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"

	"google.golang.org/grpc"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sdk/sdktest"
)

// Target is a sink to be tested: InProcess or Command.
type Target interface {
	start(ctx context.Context, o *Options, register func(grpc.ServiceRegistrar)) (*instance, error)
	describe() (path string)
}

// instance is a running sink.
type instance struct {
	client  sinkv1.SinkClient
	desc    *sinkv1.DescribeResponse
	process *host.Plugin // nil: it runs in this process
	output  *output
	stop    func(context.Context) error
}

// kill ends a process as the system does when memory runs out, with all that it started.
func (i *instance) kill() {
	if i.process != nil {
		_ = syscall.Kill(-i.process.PID(), syscall.SIGKILL) // ESRCH: it is just ending
	}
}

type inProcess struct{ sink sdk.Sink }

// InProcess tests a Go sink within the test's own process, which is where a debugger and the race detector are. Checks that need a process are skipped.
func InProcess(sink sdk.Sink) Target { return inProcess{sink} }

func (p inProcess) describe() string { return "" }

func (p inProcess) start(ctx context.Context, _ *Options, register func(grpc.ServiceRegistrar)) (*instance, error) {
	client, desc, stop, err := sdktest.Connect(ctx, p.sink, register)
	if err != nil {
		return nil, err
	}
	return &instance{client: client, desc: desc, output: &output{}, stop: func(context.Context) error { return stop() }}, nil
}

type command struct{ path string }

// Command tests an executable in any language: a binary, or a script with an interpreter line. It is started as the scheduler starts it: with the handshake,
// mutual TLS and isolation of plugins/host, without arguments, and with nothing of the environment but what the scheduler passes on.
func Command(path string) Target { return command{path} }

func (c command) describe() string { return c.path }

func (c command) start(ctx context.Context, o *Options, register func(grpc.ServiceRegistrar)) (*instance, error) {
	path, err := filepath.Abs(c.path)
	if err != nil {
		return nil, err
	}
	out := &output{}
	p, err := host.Start(ctx, host.Config{
		AnyName: true, Path: path, Unlocked: true, Register: register, Isolation: o.Isolation, AllowEnv: o.AllowEnv, AllowRead: o.AllowRead,
		Logger:    slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Deadlines: host.Deadlines{Short: o.Limits.Call, Table: o.Limits.Call, Stage: o.Limits.Large, Commit: o.Limits.Large},
	})
	if err != nil {
		return nil, err
	}
	return &instance{client: p.Client(), desc: p.Describe(), process: p, output: out, stop: p.Stop}, nil
}

// output is what a plugin wrote, as the host's log has it.
type output struct {
	mu    sync.Mutex
	lines []string
	bytes int
}

// maxKept bounds what is kept of a flood.
const maxKept = 10_000

// Write takes one record.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += len(p)
	if len(o.lines) < maxKept {
		o.lines = append(o.lines, string(bytes.TrimSuffix(p, []byte("\n"))))
	}
	return len(p), nil
}

func (o *output) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lines...)
}

func (o *output) last(n int) []string {
	all := o.all()
	return all[max(0, len(all)-n):]
}

var _ io.Writer = (*output)(nil)
