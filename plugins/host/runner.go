package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

const (
	busyRetries = 50
	busyWait    = 10 * time.Millisecond
	// lingering is how long the streams may stay open after the process has ended: only a process that left the group can hold them.
	lingering = time.Second
)

// process runs one plugin for go-plugin. Its methods may be called in any order and any number of times.
type process struct {
	cfg   *Config
	env   []string
	run   *runDir
	image *image
	logs  *logSink

	outR, errR *io.PipeReader // what go-plugin reads
	outW, errW *io.PipeWriter

	mu     sync.Mutex
	pid    int
	reaped bool
	greet  *greeting

	exited chan struct{} // closed when the process and its streams have ended
	state  *os.ProcessState
}

var _ runner.Runner = (*process)(nil)

func newProcess(c *Config, env []string, run *runDir, img *image, logs *logSink) *process {
	p := &process{cfg: c, env: env, run: run, image: img, logs: logs, exited: make(chan struct{})}
	p.outR, p.outW = io.Pipe()
	p.errR, p.errW = io.Pipe()
	return p
}

// Start starts the process from a thread of its own, which lives until the process has ended: the kernel kills the process when that
// thread ends, which otherwise happens only with the host.
func (p *process) Start(context.Context) error {
	started := make(chan error)
	go spareThread(func() {
		var cmd *exec.Cmd
		var streams *streams
		err := confine(p.cfg, p.run)
		if err == nil {
			cmd, streams, err = p.launch()
		}
		if err == nil {
			p.mu.Lock()
			p.pid = cmd.Process.Pid
			p.mu.Unlock()
		}
		p.image.close()
		started <- err
		if err == nil {
			p.reap(cmd, streams)
		}
	})
	return <-started
}

// launch execs the image. A thread that forks at the wrong moment can hold the image open for writing for a moment.
func (p *process) launch() (*exec.Cmd, *streams, error) {
	for try := 0; ; try++ {
		s, err := newStreams()
		if err != nil {
			return nil, nil, err
		}
		cmd := &exec.Cmd{
			Path: p.image.path, Args: []string{p.cfg.Path}, Env: p.env, Dir: p.run.Path,
			Stdout: s.outW, Stderr: s.errW, SysProcAttr: attributes(p.cfg.Isolation),
		}
		err = cmd.Start()
		s.closeWriters()
		if err == nil {
			s.pump(p)
			return cmd, s, nil
		}
		s.closeReaders()
		if !errors.Is(err, syscall.ETXTBSY) || try == busyRetries {
			return nil, nil, err
		}
		time.Sleep(busyWait)
	}
}

// reap waits for the end, kills what is left of the group, and only then lets the process's number go.
func (p *process) reap(cmd *exec.Cmd, s *streams) {
	if !awaitExit(cmd.Process.Pid) {
		_ = cmd.Wait() // the state says all
	}
	p.mu.Lock()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH: nobody is left
	_ = cmd.Wait()                                      // an error if it was waited for above
	p.reaped, p.state = true, cmd.ProcessState
	p.mu.Unlock()
	s.wait(lingering)
	_ = p.outW.Close()
	_ = p.errW.Close()
	close(p.exited)
}

// Wait waits for the end of the process and its streams.
func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill kills the whole group.
func (p *process) Kill(context.Context) error {
	p.signal(syscall.SIGKILL)
	return nil
}

func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid != 0 && !p.reaped {
		_ = syscall.Kill(-p.pid, sig) // ESRCH: it is just ending
	}
}

// exit describes the end, for errors.
func (p *process) exit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return "it still runs"
	}
	if ws, ok := p.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return "killed by signal " + strconv.Itoa(int(ws.Signal())) + " (" + ws.Signal().String() + ")"
	}
	return p.state.String()
}

// signalled reports an end by a signal.
func (p *process) signalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return false
	}
	ws, ok := p.state.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled()
}

func (p *process) greeted(g *greeting) {
	p.mu.Lock()
	p.greet = g
	p.mu.Unlock()
	if g != nil {
		_ = p.outW.Close() // go-plugin gives up at once
	}
}

func (p *process) greeting() *greeting {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.greet
}

// Stdout gives go-plugin the handshake line and nothing else.
func (p *process) Stdout() io.ReadCloser { return p.outR }

// Stderr gives go-plugin nothing: it crashes on some lines. It ends with the process.
func (p *process) Stderr() io.ReadCloser { return p.errR }

// Name is the configured path.
func (p *process) Name() string { return p.cfg.Path }

// ID is the process id as the host sees it.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strconv.Itoa(p.pid)
}

// Diagnose adds nothing: our errors say more.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost refuses addresses outside the plugin's own directory.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	if network != "unix" || !inside(p.run.sock, addr) {
		return "", "", errors.New("the plugin names an address outside its directory: " + strings.ToValidUTF8(addr, "?"))
	}
	return network, addr, nil
}

// HostToPlugin changes nothing: both see the same file system.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// onOwnThread runs f on a thread that lives as long as f: the parent-death signal of what f starts is bound to it. The thread is not used
// for anything else afterwards, so f may take rights from it.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go spareThread(func() { done <- f() })
	return <-done
}

// spareThread runs f on a locked thread that is not the main one, and ends the thread with it. The main thread stands for the process: a
// Landlock domain that is put on it would be the host's own as far as /proc/PID goes, so that a plugin in the same domain could read the
// host's memory, and rights that are taken from it never come back.
func spareThread(f func()) {
	runtime.LockOSThread()
	if !onMainThread() {
		f() // never unlocked: the thread ends with this goroutine
		return
	}
	held := make(chan struct{})
	go func() { // on another thread: this one is taken
		runtime.LockOSThread()
		close(held)
		f()
	}()
	<-held
	runtime.UnlockOSThread()
}
