package sdk

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/rpc"
)

const (
	connectWithin = time.Minute            // a host that has not connected by then is gone
	reconnect     = 2 * time.Second        // a host that lost its connection may come back
	parentEvery   = 500 * time.Millisecond // how often the parent's pid is looked at
	drainWithin   = 30 * time.Second       // how long running calls may take after SIGTERM
	flushWithin   = 250 * time.Millisecond // how long the last answer may take to reach the host
)

// life decides when the process ends: with its host, or after SIGTERM once the running calls have ended. A plugin without a host would hold
// an old lease for ever.
type life struct {
	mu       sync.Mutex
	server   *grpc.Server
	conns    int
	calls    int
	draining bool
	idle     chan struct{} // closed when draining and no call runs
	lonely   *time.Timer   // runs while no host is connected
}

func newLife() *life {
	l := &life{idle: make(chan struct{})}
	l.lonely = time.AfterFunc(connectWithin, func() { l.orphaned("no host connected") })
	return l
}

// newServer is go-plugin's server factory.
func (l *life) newServer(opts []grpc.ServerOption) *grpc.Server {
	opts = append(opts, rpc.ServerOptions()...)
	opts = append(opts, grpc.StatsHandler(connCounter{l}), grpc.ChainUnaryInterceptor(l.unary), grpc.ChainStreamInterceptor(l.stream))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = grpc.NewServer(opts...)
	return l.server
}

func (l *life) orphaned(why string) {
	log().Warn("the plugin ends: the host is gone", "reason", why)
	os.Exit(3)
}

// watchSignals ignores SIGINT, which a terminal sends to everybody in the foreground, and drains on SIGTERM.
func (l *life) watchSignals() {
	signal.Ignore(os.Interrupt)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM)
	<-ch
	l.mu.Lock()
	l.draining = true
	if l.calls == 0 {
		close(l.idle)
	}
	l.mu.Unlock()
	select {
	case <-l.idle:
	case <-time.After(drainWithin):
		log().Warn("the plugin ends although calls still run", "after", drainWithin)
	case <-ch:
	}
	l.mu.Lock()
	server := l.server
	l.mu.Unlock() // the end of connections is counted under it
	if server == nil {
		os.Exit(0)
	}
	// A call has ended before its answer is on its way, and Stop would cut it off. GracefulStop alone waits for go-plugin's own streams, which never end.
	flushed := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(flushed)
	}()
	select {
	case <-flushed:
	case <-time.After(flushWithin):
	}
	server.Stop()
}

// watchParent notices a parent that died: a wrapper script, or a host without process namespaces.
func (l *life) watchParent() {
	start := os.Getppid()
	if start <= 1 {
		return // the first process of its namespace, which dies with the host anyway
	}
	for range time.Tick(parentEvery) {
		if os.Getppid() != start {
			l.orphaned("the parent process has ended")
		}
	}
}

// enter counts a call in; calls of go-plugin's own services run for ever and are not counted.
func (l *life) enter(method string) (leave func(), err error) {
	if !strings.HasPrefix(method, "/"+sinkv1.Sink_ServiceDesc.ServiceName+"/") {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return nil, status.Error(codes.Unavailable, "the plugin is shutting down")
	}
	l.calls++
	return l.leave, nil
}

func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls--; l.calls == 0 && l.draining {
		close(l.idle)
	}
}

func (l *life) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	leave, err := l.enter(info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer leave()
	return next(ctx, req)
}

func (l *life) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	leave, err := l.enter(info.FullMethod)
	if err != nil {
		return err
	}
	defer leave()
	return next(srv, ss)
}

// connCounter arms the lonely timer while no connection is open.
type connCounter struct{ l *life }

func (connCounter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (connCounter) HandleRPC(context.Context, stats.RPCStats)                         {}
func (connCounter) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c connCounter) HandleConn(_ context.Context, s stats.ConnStats) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		c.l.conns++
		c.l.lonely.Stop()
	case *stats.ConnEnd:
		if c.l.conns--; c.l.conns == 0 {
			c.l.lonely = time.AfterFunc(reconnect, func() { c.l.orphaned("its connection ended") })
		}
	}
}
