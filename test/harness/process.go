package harness

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Patience bounds every wait. It is long because machines are busy; nothing waits when what it waits for has happened.
const Patience = 90 * time.Second

// Process is a child of the test. Its group dies with it.
type Process struct {
	Name string
	Cmd  *exec.Cmd
	Done chan struct{} // closed when it has ended
	Err  error         // of Wait, valid after Done
}

// start runs a binary in its own process group, with the log appended to a file and the lines of its standard output sent to lines (may be nil).
func start(t testing.TB, name, log string, lines chan<- string, env []string, bin string, args ...string) *Process {
	t.Helper()
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer f.Close()
	cmd := exec.Command(bin, args...)
	cmd.Stderr = f
	cmd.Env = append(cleanEnv(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var out io.ReadCloser
	if lines != nil {
		out, err = cmd.StdoutPipe()
		require.NoError(t, err)
	}
	p := &Process{Name: name, Cmd: cmd, Done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal comes when this thread ends: with the process it started, or with the whole test, however that ends.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if lines != nil {
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
			close(lines)
		}
		p.Err = cmd.Wait()
		close(p.Done)
	}()
	require.NoError(t, <-started)
	t.Cleanup(p.Kill)
	return p
}

// starts are run by one thread that lives as long as the tests: the kernel ties a child's life to the thread that started it.
var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for f := range starts {
			f()
		}
	}()
}

// Start starts a command in a process group of its own. It dies with the test binary, also when that one is killed.
func Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	err := make(chan error)
	starts <- func() { err <- cmd.Start() }
	return <-err
}

// cleanEnv is the environment without settings that would reach into the cluster. A mutant, which only binaries built for it know, is meant for it.
func cleanEnv() []string {
	var out []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SIGNET_") || strings.HasPrefix(kv, "SIGNET_MUTANT=") {
			out = append(out, kv)
		}
	}
	return out
}

// PID of the process.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// Kill ends the process with SIGKILL, and waits. The rest of its group it leaves alone: that it ends too is what tests look at.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended
	<-p.Done
}

// Terminate asks the process to end, and waits.
func (p *Process) Terminate(t testing.TB) {
	t.Helper()
	_ = p.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	p.Wait(t)
}

// Wait waits for the process to end by itself.
func (p *Process) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-p.Done:
	case <-time.After(Patience):
		t.Fatalf("%s (process %d) does not end", p.Name, p.PID())
	}
}

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Killed says whether it ended by SIGKILL.
func (p *Process) Killed() bool {
	ws, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// Eventually polls for what sends no signal: files, /proc, other processes.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
