package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// beMain makes the test binary the executor.
const beMain = "SIGNET_TEST_BE_EXECUTOR"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func noEnv(string) (string, bool) { return "", false }

func TestParse_FlagsAndVariables(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	env := map[string]string{"SIGNET_EXECUTOR_MEMORY": "1GiB", "SIGNET_EXECUTOR_SLOTS": "7", "SIGNET_JOIN_TOKEN": "other"}
	lookup := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	o, err := parse([]string{"--scheduler", "h:1", "--scratch", "/s", "--memory", "2GiB", "--token-file", token}, lookup, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "h:1", o.config.Scheduler)
	require.Equal(t, int64(2<<30), o.config.MemoryBytes, "a flag wins")
	require.Equal(t, 7, o.config.Slots)
	require.Equal(t, "s3cret", o.config.Token)
	o, err = parse(nil, lookup, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "other", o.config.Token)
	require.Equal(t, int64(256<<20), o.config.MinFreeBytes)
	require.Equal(t, int64(10<<30), o.config.ObjectCacheBytes)
}

func TestRun_WrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--nonsense"}, {"positional"}, {"--memory", "1x", "--scheduler", "localhost:1"}, {"--slots", "many"}, {"--token-file", "/nonexistent"}, {"--tls-ca", "/nonexistent"}, {},
	} {
		var errs bytes.Buffer
		require.Equal(t, 2, run(args, noEnv, io.Discard, &errs), "%v", args)
		require.NotEmpty(t, errs.String())
	}
	var out bytes.Buffer
	require.Equal(t, 0, run([]string{"--version"}, noEnv, &out, io.Discard))
	require.True(t, strings.HasPrefix(out.String(), "signet-executor "))
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "5": 5, "1KiB": 1024, "1.5 GiB": 3 << 29, "2MB": 2e6, "7B": 7} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "-1", "x", "1XB", "1e300", "NaN"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}

// process starts the executor against an address where nobody listens, and waits until it runs.
func process(t *testing.T, extra ...string) (*exec.Cmd, *lockedBuffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--scheduler", "127.0.0.1:1", "--scratch", t.TempDir(), "--memory", "512MiB", "--slots", "1"}, extra...)...)
	cmd.Env = append(os.Environ(), beMain+"=1", TokenEnv+"=canary-token")
	log := newLockedBuffer()
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		require.NotContains(t, log.String(), "canary-token")
	})
	log.await(t, "executor started")
	return cmd, log
}

// X17: a parent handles Ctrl-C; SIGTERM ends the executor in order.
func TestProcess_IgnoresInterruptAndLeavesOnTerm(t *testing.T) {
	cmd, log := process(t, "--ignore-interrupt")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	log.await(t, "no session with the scheduler") // it works on
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	require.Contains(t, log.String(), "executor stopped")
}

func TestProcess_InterruptEndsIt(t *testing.T) {
	cmd, _ := process(t)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}

func TestProcess_EndsWithItsParent(t *testing.T) {
	cmd, log := process(t, "--parent-pid", "1") // not its parent, so as good as gone
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("it runs on without its parent")
	}
	require.Contains(t, log.String(), "executor stopped")
}
