package launcher

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one child.
type process struct {
	pid  int
	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid after done
}

func (p *process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// cause describes the end; valid after done.
func (p *process) cause() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) } // it may be gone already

// killGroup ends the group that pid leads. A group that is gone is what we want.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// spawner starts processes from one OS thread that lives as long as the launcher: the kernel sends the parent-death signal when the
// *thread* that forked ends, and Go ends threads when it likes.
type spawner struct {
	requests chan func()
	closed   chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), closed: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case f := <-s.requests:
				f()
			case <-s.closed:
				return
			}
		}
	}()
	return s
}

// close ends the thread. Children must be gone: it would kill them.
func (s *spawner) close() {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

func (s *spawner) start(path string, args, env []string, dir string, logs *os.File) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, logs, logs
	cmd.SysProcAttr = attributes()
	result := make(chan error, 1)
	select {
	case s.requests <- func() { result <- cmd.Start() }:
	case <-s.closed:
		return nil, os.ErrProcessDone
	}
	if err := <-result; err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, cmd: cmd, done: make(chan struct{})}
	go p.wait()
	return p, nil
}
