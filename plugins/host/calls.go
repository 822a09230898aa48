package host

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
)

const (
	// crashNotice is how long a broken call waits to learn that the process has ended.
	crashNotice = time.Second
	// probeWithin is how long a plugin may take to answer a health check after a call ran into its deadline.
	probeWithin = 5 * time.Second
)

// facade stands between callers and the plugin: it gives every call a deadline, counts running calls for the drain, and says what went
// wrong in terms of the plugin. Calls of go-plugin's own services pass through.
type facade struct {
	cfg     *Config
	process *process
	probe   func(context.Context) error

	mu       sync.Mutex
	running  int
	stopping bool
	probing  bool
	idle     chan struct{}
}

func newFacade(c *Config, p *process) *facade {
	return &facade{cfg: c, process: p, idle: make(chan struct{})}
}

// call is the name of a sink's method, or "" for other services.
func call(method string) string {
	name, ok := strings.CutPrefix(method, "/"+sinkv1.Sink_ServiceDesc.ServiceName+"/")
	if !ok {
		return ""
	}
	return name
}

func (f *facade) deadline(name string) time.Duration {
	switch name {
	case "Describe", "Lookup":
		return f.cfg.Deadlines.Short
	case "Stage", "PlanScan":
		return f.cfg.Deadlines.Stage
	case "Commit":
		return f.cfg.Deadlines.Commit
	}
	return f.cfg.Deadlines.Table
}

// enter admits a call. leave must follow, once.
func (f *facade) enter(ctx context.Context, name string) (context.Context, func(), error) {
	f.mu.Lock()
	if f.stopping {
		f.mu.Unlock()
		return nil, nil, f.failed(name, ErrStopping, status.Error(codes.Unavailable, "stopping"))
	}
	f.running++
	f.mu.Unlock()
	cancel := func() {}
	if _, ok := ctx.Deadline(); !ok {
		ctx, cancel = context.WithTimeout(ctx, f.deadline(name))
	}
	leave := sync.OnceFunc(func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.running--; f.running == 0 && f.stopping {
			close(f.idle)
		}
	})
	if err := fault.Hit("plugins." + strings.ToLower(name) + ".before"); err != nil {
		leave()
		return nil, nil, f.failed(name, ErrStopping, status.Error(codes.Unavailable, err.Error()))
	}
	return ctx, leave, nil
}

// stop refuses new calls and gives a channel that closes when no call runs.
func (f *facade) stop() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopping {
		f.stopping = true
		if f.running == 0 {
			close(f.idle)
		}
	}
	return f.idle
}

func (f *facade) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := call(method)
	if name == "" {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	ctx, leave, err := f.enter(ctx, name)
	if err != nil {
		return err
	}
	defer leave()
	return f.explain(ctx, name, invoke(ctx, method, req, reply, cc, opts...))
}

func (f *facade) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	name := call(method)
	if name == "" {
		return open(ctx, desc, cc, method, opts...)
	}
	caller := ctx
	ctx, leave, err := f.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		leave()
		return nil, f.explain(caller, name, err)
	}
	// Whoever gives up a stream cancels its context.
	unhook := context.AfterFunc(caller, leave)
	return &stream{ClientStream: s, f: f, caller: caller, name: name, one: !desc.ServerStreams, leave: func() { unhook(); leave() }}, nil
}

// stream leaves the facade at its end.
type stream struct {
	grpc.ClientStream
	f      *facade
	caller context.Context
	name   string
	one    bool // exactly one message comes back
	leave  func()
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && !s.one {
		return nil
	}
	s.leave()
	if errors.Is(err, io.EOF) {
		err = nil
		if s.one {
			return io.EOF
		}
	}
	if err = s.f.explain(s.caller, s.name, err); err != nil || s.one {
		return err
	}
	return io.EOF
}

func (s *stream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if err == nil || errors.Is(err, io.EOF) { // the reason comes from RecvMsg
		return err
	}
	s.leave()
	return s.f.explain(s.caller, s.name, err)
}

// explain is the one place where a plugin's misbehaviour gets its name. What the sink itself answered is passed on untouched.
func (f *facade) explain(ctx context.Context, name string, err error) error {
	if err == nil {
		if err = fault.Hit("plugins." + strings.ToLower(name) + ".after"); err != nil {
			return f.failed(name, ErrCrashed, status.Error(codes.Unavailable, err.Error()))
		}
		return nil
	}
	if own := new(Error); errors.As(err, &own) {
		return err
	}
	st := status.Convert(err)
	for _, d := range st.Details() {
		if _, ok := d.(*hostv1.Refusal); ok {
			return err
		}
	}
	switch st.Code() {
	case codes.ResourceExhausted:
		return f.failed(name, ErrTooLarge, err)
	case codes.DeadlineExceeded:
		go f.check()
		return f.failed(name, ErrHung, err)
	case codes.Unavailable, codes.Internal, codes.Unknown, codes.Canceled:
		if ctx.Err() == nil && f.ended() {
			return f.failed(name, ErrCrashed, err)
		}
	}
	return err
}

// ended waits a moment for the process to end: a connection breaks before the kernel has reported the death.
func (f *facade) ended() bool {
	t := time.NewTimer(crashNotice)
	defer t.Stop()
	select {
	case <-f.process.exited:
		return true
	case <-t.C:
		return false
	}
}

// check kills a plugin that answers nothing any more, so that it can be started again.
func (f *facade) check() {
	f.mu.Lock()
	busy := f.probing || f.probe == nil
	f.probing = true
	f.mu.Unlock()
	if busy {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWithin)
	defer cancel()
	if err := f.probe(ctx); err != nil && status.Code(err) != codes.Unimplemented {
		f.cfg.Logger.Error("the plugin answers nothing any more and is killed", "plugin", f.cfg.Name, "error", err)
		_ = f.process.Kill(ctx)
	}
	f.mu.Lock()
	f.probing = false
	f.mu.Unlock()
}

func (f *facade) failed(name string, kind, cause error) *Error {
	e := &Error{Kind: kind, Plugin: f.cfg.Name, Path: f.cfg.Path, Call: name, Cause: cause}
	switch {
	case errors.Is(kind, ErrCrashed):
		e.Detail, e.Stderr = f.process.exit(), f.process.logs.lastLines()
		e.Hint = "it is started again; if this repeats, report it to the plugin's author with these lines"
	case errors.Is(kind, ErrHung):
		e.Hint = "the call was given up; if the plugin answers nothing at all it is killed and started again"
	case errors.Is(kind, ErrTooLarge):
		e.Hint = "large things must be streamed in chunks of at most 1 MiB; report it to the plugin's author"
	}
	return e
}
