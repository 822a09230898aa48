package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Local keeps a fixed number of executors running on this machine.
type Local struct {
	cfg    Config
	spawn  *spawner
	stop   chan struct{}
	once   sync.Once
	slots  sync.WaitGroup
	failed chan error

	mu   sync.Mutex
	pids map[int]int // by executor number
}

// Start launches the executors and returns once each process exists; that they have joined, only the scheduler knows.
func Start(cfg Config) (*Local, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("launcher: %w", err)
	}
	if cfg.Token != "" {
		if err := os.WriteFile(cfg.tokenFile(), []byte(cfg.Token), 0o600); err != nil {
			return nil, fmt.Errorf("launcher: join token: %w", err)
		}
	}
	l := &Local{cfg: cfg, spawn: newSpawner(), stop: make(chan struct{}), failed: make(chan error, 1), pids: map[int]int{}}
	for n := range cfg.Count {
		p, err := l.launch(n)
		if err != nil {
			l.close()
			return nil, err
		}
		l.slots.Go(func() { l.keep(n, p) })
	}
	return l, nil
}

// Failed yields one error when an executor keeps dying at its start. The others go on.
func (l *Local) Failed() <-chan error { return l.failed }

// PIDs are the processes that run now, in no order.
func (l *Local) PIDs() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]int, 0, len(l.pids))
	for _, p := range l.pids {
		out = append(out, p)
	}
	return out
}

// Stop ends all executors: asks them, waits StopGrace or until ctx ends, kills their groups. It returns when none is left.
func (l *Local) Stop(ctx context.Context) error {
	l.once.Do(func() { close(l.stop) })
	done := make(chan struct{})
	go func() { l.slots.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		l.killAll()
		<-done
	}
	l.spawn.close()
	if err := os.Remove(l.cfg.tokenFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (l *Local) close() { _ = l.Stop(alreadyDone()) }

func alreadyDone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (l *Local) killAll() {
	for _, pid := range l.PIDs() {
		killGroup(pid)
	}
}

// keep holds executor n alive until Stop.
func (l *Local) keep(n int, p *process) {
	pause, quick := l.cfg.MinPause, 0
	for {
		started := time.Now()
		select {
		case <-p.done:
			killGroup(p.pid) // whatever it left behind in its group
		case <-l.stop:
			l.end(p)
			l.forget(n)
			l.cfg.OnExit(p.pid)
			return
		}
		l.forget(n)
		l.cfg.OnExit(p.pid)
		if time.Since(started) < l.cfg.QuickExit {
			quick++
		} else {
			pause, quick = l.cfg.MinPause, 0
		}
		l.cfg.Logger.Warn("executor ended, starting it again", "executor", n, "pid", p.pid, "cause", p.cause(), "log", l.cfg.logFile(n))
		if quick >= l.cfg.QuickLimit {
			l.giveUp(fmt.Errorf("executor %d ended %d times in a row right after its start (%s): %s", n, quick, p.cause(), tail(l.cfg.logFile(n))))
			return
		}
		if p = l.relaunch(n, &pause); p == nil {
			return
		}
	}
}

// relaunch tries until the process exists; nil: stopped meanwhile.
func (l *Local) relaunch(n int, pause *time.Duration) *process {
	for {
		select {
		case <-l.stop:
			return nil
		case <-time.After(*pause):
		}
		*pause = min(*pause*2, l.cfg.MaxPause)
		p, err := l.launch(n)
		if err == nil {
			return p
		}
		l.cfg.Logger.Error("executor does not start", "executor", n, "error", err)
	}
}

func (l *Local) launch(n int) (*process, error) {
	logs, err := os.OpenFile(l.cfg.logFile(n), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("executor log: %w", err)
	}
	defer logs.Close() // the child holds its own copy
	p, err := l.spawn.start(l.cfg.Binary, l.cfg.args(n), environ(os.LookupEnv), l.cfg.Dir, logs)
	if err != nil {
		return nil, fmt.Errorf("executor %s: %w", l.cfg.Binary, err)
	}
	l.mu.Lock()
	l.pids[n] = p.pid
	l.mu.Unlock()
	l.cfg.Logger.Info("executor started", "executor", n, "pid", p.pid)
	return p, nil
}

func (l *Local) end(p *process) {
	p.terminate()
	select {
	case <-p.done:
	case <-time.After(l.cfg.StopGrace):
		l.cfg.Logger.Warn("executor does not end, killing it", "pid", p.pid)
	}
	killGroup(p.pid)
	<-p.done
}

func (l *Local) forget(n int) {
	l.mu.Lock()
	delete(l.pids, n)
	l.mu.Unlock()
}

func (l *Local) giveUp(err error) {
	l.cfg.Logger.Error("executor given up", "error", err)
	select {
	case l.failed <- err:
	default: // one is enough
	}
}

// tail is the end of a log, for an error message.
func tail(file string) string {
	const limit = 600
	f, err := os.Open(file)
	if err != nil {
		return "no log: " + err.Error()
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return "its log is empty"
	}
	buf := make([]byte, min(st.Size(), limit))
	if _, err := f.ReadAt(buf, st.Size()-int64(len(buf))); err != nil {
		return errors.Join(errors.New("log unreadable"), err).Error()
	}
	return "its log ends: " + string(buf)
}
