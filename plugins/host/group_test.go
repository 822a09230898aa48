package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/host"
)

// wrapper is a shell script that starts the true sink, and something that knows nothing of anybody, as children (X16).
func wrapper(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "signet-sink-hostile")
	script := fmt.Sprintf("#!/bin/sh\nsleep 1000 &\n%s\n", self)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

func levels() []host.Isolation {
	if l, _ := host.DetectIsolation(); l != host.IsolationNone {
		return []host.Isolation{l, host.IsolationNone}
	}
	return []host.Isolation{host.IsolationNone}
}

// each runs a test as isolated as possible, and without: the guarantees are the same.
func each(t *testing.T, test func(*testing.T, host.Isolation)) {
	for _, l := range levels() {
		t.Run(l.String(), func(t *testing.T) { test(t, l) })
	}
}

func TestX16_WrapperStopped(t *testing.T) {
	each(t, func(t *testing.T, l host.Isolation) {
		cfg, _ := config(t, "")
		cfg.AllowRead = []string{filepath.Dir(cfg.Path)} // what the script starts
		cfg.Path, cfg.Isolation = wrapper(t), l
		p, err := host.Start(t.Context(), cfg)
		require.NoError(t, err)
		require.True(t, ask(t, p, "fork setsid").GetFound() || l == host.IsolationNone)
		require.GreaterOrEqual(t, len(marked(t)), 3, "shell, sleep and sink")
		require.NoError(t, p.Stop(t.Context()))
		if l == host.IsolationFull {
			noProcess(t)
		}
		empty(t, cfg.Dir)
		sweepUp(t)
	})
}

// sweepUp ends what left its group without a process namespace: the one thing that only that namespace stops.
func sweepUp(t *testing.T) {
	for _, pid := range marked(t) {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
	noProcess(t)
}

func TestX16_WrapperKilledAloneIsStartedAgain(t *testing.T) {
	each(t, func(t *testing.T, l host.Isolation) {
		cfg, _ := config(t, "")
		cfg.AllowRead = []string{filepath.Dir(cfg.Path)} // what the script starts
		cfg.Path, cfg.Isolation = wrapper(t), l
		s := host.NewSupervisor(cfg, host.Backoff{First: 10 * time.Millisecond, Max: time.Second, Steady: time.Minute})
		defer func() {
			require.NoError(t, s.Stop(context.Background()))
			noProcess(t)
			empty(t, cfg.Dir)
		}()
		p, err := s.Get(t.Context())
		require.NoError(t, err)
		again, err := s.Get(t.Context())
		require.NoError(t, err)
		require.Same(t, p, again)
		old := marked(t)
		require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
		<-p.Exited()
		next, err := s.Get(t.Context())
		require.NoError(t, err)
		require.NotSame(t, p, next)
		require.True(t, ask(t, next, "pgrp").GetFound())
		eventually(t, func() bool {
			for _, pid := range old {
				if _, err := os.Stat("/proc/" + pid); err == nil {
					return false
				}
			}
			return true
		})
	})
}

func TestX16_HostKilled(t *testing.T) {
	for _, l := range levels() {
		for _, wrap := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v wrapped %v", l, wrap), func(t *testing.T) {
				cfg, _ := config(t, "")
				path := cfg.Path
				if wrap {
					path = wrapper(t)
				}
				killHost(t, path, cfg.Dir, l)
			})
		}
	}
}

// hostProcess starts a host of its own, with one plugin, and answers its questions.
func hostProcess(t *testing.T, self, path, dir string, l host.Isolation, as *syscall.Credential) (cmd *exec.Cmd, ask func(string) string) {
	t.Helper()
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), hostEnv+"="+path, "SIGNET_TEST_DIR="+dir, fmt.Sprintf("%s=%d", levelEnv, l))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { // for tests that fail before they kill it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)
	return cmd, func(verb string) string {
		_, err := fmt.Fprintln(in, verb)
		require.NoError(t, err)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSpace(line)
	}
}

func killHost(t *testing.T, path, dir string, l host.Isolation) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd, _ := hostProcess(t, self, path, dir, l, nil)
	require.GreaterOrEqual(t, len(marked(t)), 2)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	if l == host.IsolationNone && strings.Contains(path, "signet-sink") {
		// Without namespaces a grandchild that is no plugin of ours, here sleep, lives on until it ends by itself.
		eventually(t, func() bool { return len(marked(t)) <= 1 })
		sweepUp(t)
	} else {
		noProcess(t)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, left, "a killed host cannot clean up")
	cfg, _ := config(t, "")
	cfg.Dir = dir
	start(t, cfg) // sweeps, and its end checks that nothing is left
}

func TestProcess_ForkDoesNotOutliveIt(t *testing.T) {
	each(t, func(t *testing.T, l host.Isolation) {
		cfg, _ := config(t, "")
		cfg.Isolation = l
		p, err := host.Start(t.Context(), cfg)
		require.NoError(t, err)
		require.True(t, ask(t, p, "fork").GetFound())
		require.NoError(t, p.Stop(t.Context()))
		noProcess(t)
	})
}
