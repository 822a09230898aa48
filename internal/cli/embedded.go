package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/launcher"
)

// embeddedPrincipal owns the jobs of embedded clusters. It is one for all, so that each command sees the jobs of the last.
const embeddedPrincipal = "local"

// embeddedGrace is short: the executors of an earlier command died with it.
const embeddedGrace = 100 * time.Millisecond

// maxLog is the size at which the embedded cluster's log is put aside.
const maxLog = 16 << 20

// embedded is a cluster inside this process: the scheduler here, executors and plugins as children.
type embedded struct {
	lock      *dirLock
	log       *os.File
	scheduler cluster
	executors *launcher.Local
	client    *client.Client
}

// embed starts a cluster in the data directory, after waiting for the command that may be using it.
func (a *app) embed(ctx context.Context, executors bool) (*session, error) {
	cfg, err := loadConfig(a.conn.config, map[string]any{"data_dir": a.conn.dataDir})
	if err != nil {
		return nil, err
	}
	e := &embedded{}
	e.lock, err = waitLock(ctx, cfg.DataDir, func(err error) { fmt.Fprintf(a.streams.Err, "waiting: %v\n", err) })
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx, cfg, executors); err != nil {
		return nil, errors.Join(startError(ctx, err, cfg.DataDir), e.stop(expired()))
	}
	s := &session{Client: e.client, embedded: true, close: e.stop}
	if e.executors != nil {
		s.broken = e.executors.Failed()
	}
	return s, nil
}

// startError tells a Ctrl-C from what is wrong.
func startError(ctx context.Context, err error, dir string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var e *exitError
	if errors.As(err, &e) {
		return err
	}
	return withHint(ExitUnreachable, fmt.Errorf("the embedded cluster does not start: %w", err), "its log is "+logPath(dir))
}

func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func logPath(dir string) string { return filepath.Join(dir, "signet.log") }

func (e *embedded) start(ctx context.Context, cfg *config.Config, executors bool) error {
	run, err := freshRunDir(cfg.DataDir)
	if err != nil {
		return err
	}
	join, token, err := closeToOthers(cfg, run)
	if err != nil {
		return err
	}
	if e.log, err = openLog(logPath(cfg.DataDir)); err != nil {
		return err
	}
	log := newLogger(e.log, cfg.Log)
	if e.scheduler, err = startScheduler(ctx, cfg, log, embeddedGrace); err != nil {
		e.scheduler = nil // not a nil of the concrete type
		return err
	}
	if executors {
		cfg.Executors.Local = max(cfg.Executors.Local, 1)
		if e.executors, err = startExecutors(cfg, e.scheduler, join, run, log); err != nil {
			return err
		}
	}
	e.client, err = client.Dial(e.scheduler.Addr(), client.WithToken(token))
	return err
}

// closeToOthers makes the cluster one that only this process and its children can use, whatever the file said about listening.
func closeToOthers(cfg *config.Config, run string) (join, token string, err error) {
	secret := func(name string) (string, config.Secret) {
		buf := make([]byte, 32)
		_, _ = rand.Read(buf) // never fails
		text, file := hex.EncodeToString(buf), filepath.Join(run, name)
		err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
		return text, config.SecretFile(file)
	}
	cfg.Executors.TLSCert, cfg.Executors.TLSKey = "", ""
	cfg.Listen, cfg.TLS, cfg.Auth, cfg.Flight, cfg.HTTP = "127.0.0.1:0", config.TLS{}, config.Auth{}, config.Flight{}, config.HTTP{}
	join, cfg.Auth.JoinToken = secret("join")
	var client config.Secret
	token, client = secret("client")
	cfg.Auth.Tokens = []config.Token{{Principal: embeddedPrincipal, Token: client}}
	return join, token, err
}

// freshRunDir removes what a killed command left. The lock is held.
func freshRunDir(dir string) (string, error) {
	run := filepath.Join(dir, "run")
	if err := errors.Join(os.RemoveAll(run), os.MkdirAll(run, 0o700)); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	return run, nil
}

func openLog(path string) (*os.File, error) {
	if st, err := os.Stat(path); err == nil && st.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}

// startExecutors launches the executors that the configuration asks for on this machine.
func startExecutors(cfg *config.Config, s cluster, join, run string, log *slog.Logger) (*launcher.Local, error) {
	x := cfg.Executors
	l, err := launcher.Start(launcher.Config{
		Binary: x.Binary, Count: x.Local, Scheduler: s.Addr(), Token: join, CAFile: cfg.TLS.Cert, CertFile: x.TLSCert, KeyFile: x.TLSKey, Dir: filepath.Join(run, "executors"),
		Scratch: x.Scratch, Slots: x.Slots, Threads: x.Threads, Memory: int64(x.MemoryLimit), Logger: log, OnExit: s.ExecutorExited,
	})
	if errors.Is(err, launcher.ErrNoBinary) {
		return nil, withHint(ExitUnreachable, err, "install signet-executor beside signet, or name it in SIGNET_EXECUTORS_BINARY")
	}
	return l, err
}

// finishEarlier waits for the jobs that a killed command left open: they were accepted, and only an embedded cluster can finish them.
func (a *app) finishEarlier(ctx context.Context, s *session) error {
	jobs, err := s.Jobs(ctx, 0)
	if err != nil {
		return err
	}
	for _, j := range slices.Backward(jobs) { // oldest first
		if client.Terminal(j.GetState()) {
			continue
		}
		fmt.Fprintf(a.streams.Err, "finishing job %s of an earlier command: %s\n", j.GetJobId(), shorten(j.GetStatement(), "table"))
		end, err := s.Wait(ctx, j.GetJobId(), nil)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(a.streams.Err, "job %s: %s\n", j.GetJobId(), strings.ToLower(client.StateName(end.GetState())))
	}
	return nil
}

// stop ends everything that start got to, in the order in which it is missed least.
func (e *embedded) stop(ctx context.Context) error {
	var errs []error
	if e.client != nil {
		errs = append(errs, e.client.Close())
	}
	if e.executors != nil {
		errs = append(errs, e.executors.Stop(ctx))
	}
	if e.scheduler != nil {
		errs = append(errs, e.scheduler.Stop(ctx))
	}
	if e.log != nil {
		errs = append(errs, e.log.Close())
	}
	return errors.Join(append(errs, e.lock.release())...)
}
