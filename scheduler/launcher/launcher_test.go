package launcher_test

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

	"github.com/signet-io/signet/scheduler/launcher"
)

// parentMode makes the test binary a process that launches an executor, says so, and waits to be killed.
const parentMode = "SIGNET_TEST_LAUNCHER_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentMode); dir != "" {
		l, err := launcher.Start(launcher.Config{Binary: filepath.Join(dir, "exec.sh"), Scheduler: "127.0.0.1:1", Dir: filepath.Join(dir, "run")})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.PIDs()[0])
		select {}
	}
	os.Exit(m.Run())
}

func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "exec.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o700))
	return path
}

func config(t *testing.T, body string) launcher.Config {
	return launcher.Config{
		Binary: script(t, body), Scheduler: "127.0.0.1:7070", Token: "join-me", Dir: filepath.Join(t.TempDir(), "run"),
		MinPause: time.Millisecond, MaxPause: 5 * time.Millisecond, StopGrace: 5 * time.Second,
	}
}

// eventually polls the kernel, which sends no signal for what is asked here.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 10*time.Second, 2*time.Millisecond, what)
}

func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func read(t *testing.T, path string) string {
	t.Helper()
	var b []byte
	eventually(t, path, func() bool {
		var err error
		b, err = os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(b), "end\n")
	})
	return string(b)
}

// Numbers in docs/semantics.md: S54.
func TestStart_PassesNothingSecret(t *testing.T) {
	t.Setenv("SIGNET_CATALOG_PASSWORD", "canary")
	t.Setenv("TZ", "UTC")
	t.Setenv("SSL_CERT_FILE", "/ca.pem")
	out := filepath.Join(t.TempDir(), "out")
	l, err := launcher.Start(config(t, fmt.Sprintf(`
{ env; echo "args: $*"; echo "stdin: $(cat)"; echo "group: $(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat) pid: $$"
  while [ $# -gt 0 ]; do [ "$1" = --token-file ] && { echo "token: $(cat $2)"; stat -c 'mode: %%a' $2; }; shift; done; echo end; } > %s
exec sleep 1000`, out)))
	require.NoError(t, err)
	defer l.Stop(t.Context())
	got := read(t, out)
	require.NotContains(t, got, "canary")
	require.NotContains(t, got, "SIGNET_CATALOG_PASSWORD")
	require.Contains(t, got, "TZ=UTC")
	require.Contains(t, got, "SSL_CERT_FILE=/ca.pem", "whom it trusts is no secret")
	require.Contains(t, got, "--scheduler 127.0.0.1:7070")
	require.NotContains(t, strings.SplitN(got, "args:", 2)[1][:200], "join-me")
	require.Contains(t, got, "token: join-me")
	require.Contains(t, got, "mode: 600")
	require.Contains(t, got, "stdin: \n")
	pid := strconv.Itoa(l.PIDs()[0])
	require.Contains(t, strings.ReplaceAll(got, "  ", " "), "group: "+pid+" pid: "+pid, "leads its own group (X17)")
}

func TestStop_EndsTheWholeGroup(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cfg := config(t, fmt.Sprintf("sleep 1000 & echo $! > %[1]s; echo end >> %[1]s; trap '' TERM; while :; do wait; done", out))
	cfg.StopGrace = 20 * time.Millisecond
	l, err := launcher.Start(cfg)
	require.NoError(t, err)
	child, err := strconv.Atoi(strings.Fields(read(t, out))[0])
	require.NoError(t, err)
	pid := l.PIDs()[0]
	require.NoError(t, l.Stop(t.Context()))
	require.True(t, gone(pid))
	eventually(t, "the grandchild ends", func() bool { return gone(child) })
	require.NoFileExists(t, filepath.Join(cfg.Dir, "join-token"))
}

func TestStop_AsksFirst(t *testing.T) {
	dir := t.TempDir()
	l, err := launcher.Start(config(t, fmt.Sprintf("trap 'echo end > %[1]s/left; exit 0' TERM; echo end > %[1]s/up; while :; do sleep 0.01; done", dir)))
	require.NoError(t, err)
	read(t, filepath.Join(dir, "up"))
	require.NoError(t, l.Stop(t.Context()))
	require.FileExists(t, filepath.Join(dir, "left"))
}

func TestKeep_RestartsAfterACrash(t *testing.T) {
	cfg := config(t, "exec sleep 1000")
	cfg.Count, cfg.QuickExit = 2, time.Nanosecond
	exits := make(chan int, 8)
	cfg.OnExit = func(pid int) { exits <- pid }
	l, err := launcher.Start(cfg)
	require.NoError(t, err)
	defer l.Stop(t.Context())
	first := l.PIDs()
	require.Len(t, first, 2)
	require.NoError(t, syscall.Kill(first[0], syscall.SIGKILL))
	require.Equal(t, first[0], <-exits)
	eventually(t, "a new process", func() bool {
		now := l.PIDs()
		return len(now) == 2 && now[0] != first[0] && now[1] != first[0]
	})
}

func TestKeep_GivesUpOnABinaryThatCannotRun(t *testing.T) {
	cfg := config(t, "echo cannot load libduckdb >&2; exit 127")
	cfg.QuickLimit = 3
	l, err := launcher.Start(cfg)
	require.NoError(t, err)
	defer l.Stop(t.Context())
	select {
	case err := <-l.Failed():
		require.ErrorContains(t, err, "3 times")
		require.ErrorContains(t, err, "cannot load libduckdb")
	case <-time.After(10 * time.Second):
		t.Fatal("never given up")
	}
}

func TestStart_NamesAMissingBinary(t *testing.T) {
	cfg := config(t, "")
	cfg.Binary = filepath.Join(t.TempDir(), "nothing")
	_, err := launcher.Start(cfg)
	require.ErrorIs(t, err, launcher.ErrNoBinary)
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	cfg.Binary = plain
	_, err = launcher.Start(cfg)
	require.ErrorContains(t, err, "not an executable file")
}

// The launcher's own process dies with SIGKILL: nothing of it is left.
func TestParentKilled_ExecutorDies(t *testing.T) {
	path := script(t, "exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), parentMode+"="+filepath.Dir(path))
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	require.False(t, gone(pid))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, as meant
	eventually(t, "the executor dies with its launcher", func() bool { return gone(pid) })
}
