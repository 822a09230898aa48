package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/host"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sinktest"
)

// lines collects what the host logs of a plugin.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// config is that of this test binary as a plugin.
func config(t testing.TB, mode string) (host.Config, *lines) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(modeEnv, mode)
	t.Setenv(markEnv, t.Name())
	log := &lines{}
	return host.Config{
		Name: "hostile", Path: self, Unlocked: true, Dir: t.TempDir(), AllowEnv: []string{modeEnv, markEnv},
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, log
}

func start(t *testing.T, cfg host.Config) *host.Plugin {
	t.Helper()
	p, err := host.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Stop(context.Background()))
		empty(t, cfg.Dir)
	})
	return p
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "nothing of a stopped plugin stays")
}

func ask(t *testing.T, p *host.Plugin, verb string) *sinkv1.LookupResponse {
	t.Helper()
	r, err := p.Client().Lookup(t.Context(), &sinkv1.LookupRequest{Marker: verb})
	require.NoError(t, err)
	return r
}

func table(name string) *sinkv1.TableRef { return &sinkv1.TableRef{Name: name} }

func TestStart_DescribesAndReachesTheHost(t *testing.T) {
	cfg, _ := config(t, "")
	h := sinktest.NewHost("file:///warehouse/t")
	cfg.Register = h.Register
	p := start(t, cfg)
	require.Equal(t, "1.2.3", p.Describe().GetVersion())
	r, err := p.Client().Lookup(t.Context(), &sinkv1.LookupRequest{Lease: h.Lease, Marker: "location"})
	require.NoError(t, err)
	require.Equal(t, "file:///warehouse/t", r.GetVersion())
	r, err = p.Client().Lookup(t.Context(), &sinkv1.LookupRequest{Lease: "stolen", Marker: "location"})
	require.NoError(t, err)
	require.Contains(t, r.GetVersion(), "lease", "a call is bound to the lease it came with")
}

func TestStart_LeavesNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cfg, _ := config(t, "")
	cfg.Register = sinktest.NewHost("file:///t").Register
	p, err := host.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, p.Stop(t.Context()))
	require.NoError(t, p.Stop(t.Context()), "a second stop does nothing")
	empty(t, cfg.Dir)
	cfg, _ = config(t, "exit")
	_, err = host.Start(t.Context(), cfg)
	require.ErrorIs(t, err, host.ErrHandshake)
	empty(t, cfg.Dir)
}

func TestStart_Failures(t *testing.T) {
	for _, c := range []struct {
		mode string
		kind error
		says []string
	}{
		{"stdout", host.ErrHandshake, []string{"hello from a package initialiser", "standard error"}},
		{"exit", host.ErrHandshake, []string{"without a word", "exit status 3", "cannot find my configuration"}},
		{"version", host.ErrProtocol, []string{"sink protocol 7", "speaks 1", "update Signet"}},
		{"core", host.ErrProtocol, []string{"go-plugin protocol 9"}},
		{"netrpc", host.ErrProtocol, []string{"gRPC only"}},
		{"elsewhere", host.ErrHandshake, []string{"203.0.113.1:80", "PLUGIN_UNIX_SOCKET_DIR"}},
		{"endless", host.ErrHandshake, []string{"xxx"}},
		{"silent", host.ErrHung, []string{"was not ready within 2s", "killed"}},
		{"deaf", host.ErrHung, []string{"was not ready within 2s"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			cfg, _ := config(t, c.mode)
			cfg.StartTimeout = 2 * time.Second
			_, err := host.Start(t.Context(), cfg)
			require.ErrorIs(t, err, c.kind)
			for _, s := range append(c.says, `"hostile"`, cfg.Path) {
				require.ErrorContains(t, err, s)
			}
			require.Less(t, len(err.Error()), 2000)
			empty(t, cfg.Dir)
			noProcess(t)
		})
	}
}

// Who starts it again after a crash does so after this, too.
func TestStart_KilledIsACrash(t *testing.T) {
	cfg, _ := config(t, "silent")
	failed := make(chan error)
	go func() {
		_, err := host.Start(t.Context(), cfg)
		failed <- err
	}()
	eventually(t, func() bool { return len(marked(t)) > 0 })
	for _, p := range marked(t) {
		pid, err := strconv.Atoi(p)
		require.NoError(t, err)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone with its group
	}
	err := <-failed
	require.ErrorIs(t, err, host.ErrCrashed)
	require.ErrorContains(t, err, "killed by signal 9")
	empty(t, cfg.Dir)
}

func TestStart_EndsWithItsContext(t *testing.T) {
	cfg, _ := config(t, "silent")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := host.Start(ctx, cfg)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	noProcess(t)
}

func TestStderr_HostileLinesAndFloods(t *testing.T) {
	cfg, log := config(t, "stderr")
	p := start(t, cfg)
	require.True(t, ask(t, p, "print").GetFound())
	eventually(t, func() bool {
		return strings.Contains(log.String(), "raw write to standard output") || p.LastLines() != nil
	})
	require.Contains(t, log.String(), `@message`)
	require.Less(t, len(log.String()), 1<<20, "20 MB of lines are not 20 MB of log")
	require.NotContains(t, log.String(), "\x1b", "no control characters reach a terminal")
}

func TestStdout_PrintsDoNotBreakTheHandshake(t *testing.T) {
	cfg, log := config(t, "")
	p := start(t, cfg)
	require.True(t, ask(t, p, "print").GetFound())
	for _, s := range []string{"printed to standard output", "printed to standard error", "raw write to standard output"} {
		eventually(t, func() bool { return strings.Contains(log.String(), s) })
	}
}

func TestCall_CrashIsNamed(t *testing.T) {
	calls := map[string]func(context.Context, sinkv1.SinkClient, *sinkv1.TableRef) error{
		"PrepareWrite": func(ctx context.Context, c sinkv1.SinkClient, t *sinkv1.TableRef) error {
			_, err := c.PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{Table: t})
			return err
		},
		"Stage": stage,
		"Commit": func(ctx context.Context, c sinkv1.SinkClient, t *sinkv1.TableRef) error {
			_, err := c.Commit(ctx, &sinkv1.CommitRequest{Table: t})
			return err
		},
		"Lookup": func(ctx context.Context, c sinkv1.SinkClient, t *sinkv1.TableRef) error {
			_, err := c.Lookup(ctx, &sinkv1.LookupRequest{Table: t})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			cfg, _ := config(t, "")
			p := start(t, cfg)
			err := call(t.Context(), p.Client(), table("crash"))
			require.ErrorIs(t, err, host.ErrCrashed)
			for _, s := range []string{name, "exit status 7", "my last words", cfg.Path} {
				require.ErrorContains(t, err, s)
			}
			require.Equal(t, codes.Unavailable, status.Code(err))
			select {
			case <-p.Exited():
			case <-time.After(5 * time.Second):
				t.Fatal("Exited did not close")
			}
		})
	}
}

func stage(ctx context.Context, c sinkv1.SinkClient, t *sinkv1.TableRef) error {
	s, err := c.Stage(ctx)
	if err != nil {
		return err
	}
	for _, r := range []*sinkv1.StageRequest{
		{Part: &sinkv1.StageRequest_Header{Header: &sinkv1.StageHeader{Table: t}}}, {Part: &sinkv1.StageRequest_Trailer{Trailer: &sinkv1.StageTrailer{}}},
	} {
		if err := s.Send(r); err != nil {
			break
		}
	}
	_, err = s.CloseAndRecv()
	return err
}

func TestCall_PanicsHangsAndSizes(t *testing.T) {
	cfg, log := config(t, "")
	cfg.Deadlines.Short = 2 * time.Second
	p := start(t, cfg)
	ctx := t.Context()

	_, err := p.Client().PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{Table: table("panic")})
	require.Equal(t, codes.Internal, status.Code(err))
	require.ErrorContains(t, err, "oh no")
	require.Equal(t, codes.Internal, status.Code(stage(ctx, p.Client(), table("panic"))))
	resp, err := p.Client().Commit(ctx, &sinkv1.CommitRequest{Table: table("panic")})
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), "nothing had been asked for when it panicked")
	eventually(t, func() bool { return strings.Contains(log.String(), "hostile_test.go") })

	_, err = p.Client().Lookup(ctx, &sinkv1.LookupRequest{Table: table("hang")})
	require.ErrorIs(t, err, host.ErrHung)
	_, err = p.Client().PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{Table: table("huge")})
	require.ErrorIs(t, err, host.ErrTooLarge)
	_, err = p.Client().PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{Table: table("refuse")})
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorIs(t, sdk.FromStatus(err), sdk.ErrNotFound, "what the sink answers is passed on as it is")
	_, err = p.Client().PrepareWrite(ctx, &sinkv1.PrepareWriteRequest{Table: table(strings.Repeat("x", 17<<20))})
	require.ErrorIs(t, err, host.ErrTooLarge)
	require.True(t, ask(t, p, "pgrp").GetFound(), "it lives on after all that")
}

func TestCall_FrozenPluginIsKilled(t *testing.T) {
	cfg, _ := config(t, "")
	cfg.Deadlines.Short = 200 * time.Millisecond
	p := start(t, cfg)
	freeze(t, p.PID())
	_, err := p.Client().Lookup(t.Context(), &sinkv1.LookupRequest{})
	require.ErrorIs(t, err, host.ErrHung)
	select {
	case <-p.Exited():
	case <-time.After(15 * time.Second):
		t.Fatal("a plugin that answers nothing was not killed")
	}
}

func TestStop_DrainsRunningCalls(t *testing.T) {
	cfg, _ := config(t, "")
	p := start(t, cfg)
	got := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		r, err := p.Client().Commit(context.Background(), &sinkv1.CommitRequest{Table: table("slow")})
		if err == nil && r.GetVersion() != "done" {
			err = fmt.Errorf("got %v", r)
		}
		got <- err
	}()
	<-began
	eventually(t, func() bool { return host.Running(p) == 1 })
	require.NoError(t, p.Stop(t.Context()))
	require.NoError(t, <-got, "a commit that runs is not cut")
	_, err := p.Client().Lookup(t.Context(), &sinkv1.LookupRequest{})
	require.ErrorIs(t, err, host.ErrStopping)
}

func TestStop_CutsWhatDoesNotEnd(t *testing.T) {
	cfg, _ := config(t, "")
	cfg.DrainTimeout = 100 * time.Millisecond
	p, err := host.Start(t.Context(), cfg)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() { got <- stage(context.Background(), p.Client(), table("hang")) }()
	eventually(t, func() bool { return host.Running(p) == 1 })
	require.ErrorIs(t, p.Stop(t.Context()), host.ErrStopping)
	require.Error(t, <-got)
	noProcess(t)
	empty(t, cfg.Dir)
}

func TestChecksum_IsThatOfTheFile(t *testing.T) {
	cfg, _ := config(t, "")
	cfg.Unlocked, cfg.SHA256 = false, strings.Repeat("0", 64)
	_, err := host.Start(t.Context(), cfg)
	require.ErrorIs(t, err, host.ErrChecksum)
	require.ErrorContains(t, err, "plugins.lock")
	empty(t, cfg.Dir)
	cfg.SHA256 = ""
	_, err = host.Start(t.Context(), cfg)
	require.ErrorIs(t, err, host.ErrNotLocked)
}

func TestConfig_Refusals(t *testing.T) {
	cfg, _ := config(t, "")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(cfg.Path, link))
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600))
	for name, change := range map[string]func(*host.Config){
		"relative": func(c *host.Config) { c.Path = "signet-sink-x" },
		"symlink":  func(c *host.Config) { c.Path = link },
		"missing":  func(c *host.Config) { c.Path = "/nonexistent" },
		"plain":    func(c *host.Config) { c.Path = plain },
		"folder":   func(c *host.Config) { c.Path = filepath.Dir(plain) },
		"name":     func(c *host.Config) { c.Name = "../x" },
	} {
		t.Run(name, func(t *testing.T) {
			c := cfg
			change(&c)
			_, err := host.Start(t.Context(), c)
			require.ErrorIs(t, err, host.ErrConfig)
		})
	}
	cfg.Name = "other"
	_, err := host.Start(t.Context(), cfg)
	require.ErrorIs(t, err, host.ErrConfig)
	require.ErrorContains(t, err, `it calls itself "hostile"`)
}

func TestStart_NoProgram(t *testing.T) {
	cfg, _ := config(t, "")
	for body, kind := range map[string]error{
		"#!/no/such/interpreter\n": host.ErrStart, "\x7fELFgarbage": host.ErrStart, "just text": host.ErrStart, "": host.ErrStart,
	} {
		cfg.Path = filepath.Join(t.TempDir(), "p")
		require.NoError(t, os.WriteFile(cfg.Path, []byte(body), 0o700))
		_, err := host.Start(t.Context(), cfg)
		require.ErrorIs(t, err, kind, "%q", body)
		empty(t, cfg.Dir)
	}
}

func listener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
