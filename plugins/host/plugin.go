package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/plugins/protocol"
)

// killAfter is how long a plugin may take to end by itself once it was asked to.
const killAfter = 3 * time.Second

// Plugin is one running plugin. It is safe for concurrent use.
type Plugin struct {
	cfg     Config
	process *process
	facade  *facade
	client  *plugin.Client
	run     *runDir
	kill    func() // go-plugin's, once
	gone    chan struct{}

	tls      *tls.Config // of both directions; whom it believes is known after the handshake
	services *grpc.Server
	sink     sinkv1.SinkClient
	desc     *sinkv1.DescribeResponse
}

// Start verifies, starts and greets a plugin. The context bounds the start only. On failure nothing is left: no process, no file.
func Start(ctx context.Context, cfg Config) (*Plugin, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cfg.Isolation == IsolationUndumpable {
		if err := hide(); err != nil {
			return nil, &Error{Kind: ErrStart, Plugin: cfg.Name, Path: cfg.Path, Detail: "make the host undumpable", Cause: err}
		}
	}
	run, err := newRunDir(cfg.Dir)
	if err != nil {
		return nil, &Error{Kind: ErrStart, Plugin: cfg.Name, Path: cfg.Path, Detail: "make its private directory", Cause: err, Hint: "check " + cfg.Dir}
	}
	img, err := load(&cfg, run)
	if err != nil {
		return nil, errors.Join(err, run.remove())
	}
	p, err := prepare(cfg, run, img)
	if err != nil {
		img.close()
		return nil, errors.Join(&Error{Kind: ErrStart, Plugin: cfg.Name, Path: cfg.Path, Detail: "make a certificate for it", Cause: err}, run.remove())
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	if err := p.greet(ctx); err != nil {
		p.discard()
		return nil, p.startError(ctx, err)
	}
	go p.tidy()
	return p, nil
}

func prepare(cfg Config, run *runDir, img *image) (*Plugin, error) {
	tlsConfig, cert, err := certificate()
	if err != nil {
		return nil, err
	}
	p := &Plugin{cfg: cfg, run: run, gone: make(chan struct{})}
	p.cfg.Logger = cfg.Logger.With("plugin", cfg.Name)
	logs := newLogSink(p.cfg.Logger)
	p.process = newProcess(&p.cfg, nil, run, img, logs)
	p.facade = newFacade(&p.cfg, p.process)
	dial := append(append(rpc.DialOptions(), cfg.DialOptions...),
		// Keepalive finds dead networks, and this is none; other languages' servers answer pings at this rate with GOAWAY.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: math.MaxInt64}),
		grpc.WithChainUnaryInterceptor(p.facade.unary), grpc.WithChainStreamInterceptor(p.facade.stream))
	config := &plugin.ClientConfig{
		HandshakeConfig:  protocol.Handshake(),
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.Service: dispenser{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        tlsConfig,
		SkipHostEnv:      true,
		StartTimeout:     cfg.StartTimeout + time.Second, // ours comes first
		// Any other level makes go-plugin parse lines of the plugin, and crash on some.
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard}),
		SyncStdout:       logs,
		SyncStderr:       logs,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: run.sock},
		GRPCDialOptions:  dial,
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			p.process.env = append(append(environment(&p.cfg, run.tmp()), cmd.Env...), certEnv+"="+cert)
			return p.process, nil
		},
	}
	p.tls = tlsConfig
	p.client = plugin.NewClient(config)
	p.kill = sync.OnceFunc(p.client.Kill)
	return p, nil
}

// dispenser gives us go-plugin's connection and broker.
type dispenser struct{ plugin.NetRPCUnsupportedPlugin }

type link struct {
	broker *plugin.GRPCBroker
	conn   *grpc.ClientConn
}

func (dispenser) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("this is the host's side")
}

func (dispenser) GRPCClient(_ context.Context, b *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return link{b, c}, nil
}

// greet takes the plugin from exec to its description. The context's end kills it.
func (p *Plugin) greet(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.process.Kill(ctx) })
	defer stop()
	client, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := client.Dispense(protocol.Service)
	if err != nil {
		return err
	}
	l, ok := raw.(link)
	if !ok {
		return fmt.Errorf("dispensed a %T", raw)
	}
	p.sink = sinkv1.NewSinkClient(l.conn)
	p.facade.probe = func(ctx context.Context) error {
		_, err := grpc_health_v1.NewHealthClient(l.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
		return err
	}
	if err := fault.Hit("plugins.start.after-handshake"); err != nil {
		return err
	}
	id := l.broker.NextId()
	listener, err := l.broker.Accept(id)
	if err != nil {
		return err
	}
	p.serve(listener)
	if p.desc, err = p.sink.Describe(ctx, &sinkv1.DescribeRequest{HostConnection: id}); err != nil {
		return err
	}
	return p.checkDescription()
}

// serve serves signet.host.v1 to this plugin, which alone has the certificate, as long as it runs.
func (p *Plugin) serve(l net.Listener) {
	p.services = grpc.NewServer(append(append(rpc.ServerOptions(), p.cfg.ServerOptions...), grpc.Creds(credentials.NewTLS(p.tls)))...)
	if p.cfg.Register != nil {
		p.cfg.Register(p.services)
	}
	go func() {
		if err := p.services.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			p.cfg.Logger.Error("the host's services for the plugin ended", "error", err)
			_ = p.process.Kill(context.Background())
		}
	}()
}

func (p *Plugin) checkDescription() error {
	d := p.desc
	if d.GetName() != p.cfg.Name && !p.cfg.AnyName {
		return &Error{
			Kind: ErrConfig, Plugin: p.cfg.Name, Path: p.cfg.Path, Detail: fmt.Sprintf("it calls itself %q", d.GetName()),
			Hint: "name the file " + protocol.FilePrefix + "<name> after the sink in it",
		}
	}
	if d.GetCommitPoint() == sinkv1.CommitPoint_COMMIT_POINT_UNSPECIFIED {
		return &Error{Kind: ErrProtocol, Plugin: p.cfg.Name, Path: p.cfg.Path, Call: "Describe", Detail: "it names no commit point"}
	}
	return nil
}

// startError says why the start failed, after the process has ended.
func (p *Plugin) startError(ctx context.Context, err error) error {
	if own := new(Error); errors.As(err, &own) && !errors.Is(own.Kind, ErrCrashed) && !errors.Is(own.Kind, ErrHung) {
		return err
	}
	e := &Error{Kind: ErrHandshake, Plugin: p.cfg.Name, Path: p.cfg.Path, Stderr: p.process.logs.lastLines()}
	switch g := p.process.greeting(); {
	case p.process.ID() == "0":
		e.Kind, e.Cause, e.Hint = ErrStart, err, startHint(err, p.cfg.Isolation)
	case ctx.Err() != nil:
		e.Kind, e.Cause = ErrHung, ctx.Err()
		e.Detail, e.Hint = fmt.Sprintf("it was not ready within %v and was killed", p.cfg.StartTimeout), "run it by hand to see where it hangs"
	case g != nil:
		e.Kind, e.Detail, e.Hint = g.kind, g.detail+" ("+p.process.exit()+")", g.hint
		if g.silent && p.cfg.Isolation.confined() {
			e.Hint += "; it may read the system's programs and libraries, its own directory, and what Config.AllowRead names, and nothing else"
		}
	case errors.Is(err, ErrCrashed):
		e.Kind, e.Detail, e.Hint = ErrCrashed, p.process.exit(), "it ended right after its handshake"
	default:
		e.Cause = err
	}
	if errors.Is(e.Kind, ErrHandshake) && p.process.signalled() && (p.process.greeting() == nil || p.process.greeting().silent) {
		e.Kind, e.Hint = ErrCrashed, "somebody killed it while it started, or the system was out of memory" // another start may go well
	}
	return e
}

func startHint(err error, i Isolation) string {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return "its interpreter or loader does not exist on this system"
	case errors.Is(err, syscall.ENOEXEC):
		return "it was not built for this platform"
	case errors.Is(err, syscall.EACCES):
		return "the directory of the running plugins must not be mounted noexec, and a script's interpreter must be executable"
	case !i.network():
		return "if the system forbids namespaces, choose another isolation"
	}
	return ""
}

// discard ends a plugin whose start failed.
func (p *Plugin) discard() {
	_ = p.process.Kill(context.Background())
	p.end()
	if p.process.ID() != "0" {
		<-p.process.exited
	}
	p.process.image.close()
	if err := p.run.remove(); err != nil {
		p.cfg.Logger.Warn("cannot remove the plugin's directory", "error", err)
	}
}

// tidy clears up after the process, whatever ended it.
func (p *Plugin) tidy() {
	<-p.process.exited
	p.end()
	if err := p.run.remove(); err != nil {
		p.cfg.Logger.Warn("cannot remove the plugin's directory", "error", err)
	}
	close(p.gone)
}

// end ends go-plugin's part, and the host's services: a plugin that is gone waits for no answer.
func (p *Plugin) end() {
	p.kill()
	if p.services != nil {
		p.services.Stop()
	}
}

// Client calls the sink. Its errors are those of the sink, or *Error.
func (p *Plugin) Client() sinkv1.SinkClient { return p.sink }

// Describe is what the sink said of itself at its start. Do not change it.
func (p *Plugin) Describe() *sinkv1.DescribeResponse { return p.desc }

// Exited closes when the process has ended, for whatever reason.
func (p *Plugin) Exited() <-chan struct{} { return p.process.exited }

// PID is the process id of the plugin's first process.
func (p *Plugin) PID() int {
	p.process.mu.Lock()
	defer p.process.mu.Unlock()
	return p.process.pid
}

// LastLines are the last lines that the plugin wrote.
func (p *Plugin) LastLines() []string { return p.process.logs.lastLines() }

// Stop drains, then ends the plugin and everything it started: new calls are refused, running ones have until the context's end or
// DrainTimeout, then the plugin is asked to end, then killed. It returns when nothing is left, with an error if calls were cut.
func (p *Plugin) Stop(ctx context.Context) error {
	idle := p.facade.stop()
	drain := time.NewTimer(p.cfg.DrainTimeout)
	defer drain.Stop()
	var cut error
	select {
	case <-idle:
	case <-p.process.exited:
	case <-ctx.Done():
		cut = ctx.Err()
	case <-drain.C:
		cut = context.DeadlineExceeded
	}
	if cut != nil {
		cut = &Error{Kind: ErrStopping, Plugin: p.cfg.Name, Path: p.cfg.Path, Detail: "calls were still running and were cut", Cause: cut}
	}
	if err := fault.Hit("plugins.stop.after-drain"); err != nil {
		cut = errors.Join(cut, err)
	}
	force := time.AfterFunc(killAfter, func() { _ = p.process.Kill(ctx) })
	defer force.Stop()
	go p.kill()
	<-p.gone
	return cut
}
