package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/plugins/host"
)

const canary = "canary-4f1d0c9e-secret"

// eventually waits for a condition that another process makes true.
func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, 10*time.Millisecond)
}

// marked lists the processes that carry this test's mark, as they are in /proc.
func marked(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), markEnv+"="+t.Name()+"\x00") && f != fmt.Sprintf("/proc/%d/environ", os.Getpid()) {
			found = append(found, filepath.Base(filepath.Dir(f)))
		}
	}
	return found
}

func noProcess(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second) // X16
	for left := marked(t); len(left) > 0; left = marked(t) {
		if time.Now().After(deadline) {
			t.Fatalf("processes %v outlive their plugin", left)
		}
		time.Sleep(10 * time.Millisecond) // nothing signals the end of another process's child
	}
}

func freeze(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, func() bool { // every thread has to stop
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, s := range stats {
			b, _ := os.ReadFile(s)
			if !strings.Contains(string(b), ") T ") {
				return false
			}
		}
		return err == nil
	})
}

func isolated(t *testing.T) {
	t.Helper()
	level, line := host.DetectIsolation()
	t.Log(line)
	if level != host.IsolationFull && level != host.IsolationUserNet {
		t.Skip("this system allows no user namespaces")
	}
}

func TestIsolation_NoSecretNoNetworkNoMemory(t *testing.T) {
	isolated(t)
	t.Setenv("SIGNET_CATALOG_SECRET", canary)
	t.Setenv("HTTP_PROXY", "http://user:"+canary+"@proxy:3128")
	cfg, log := config(t, "")
	p := start(t, cfg)
	host := os.Getpid()

	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID()))
	require.NoError(t, err)
	require.Contains(t, string(environ), "PATH=")
	require.NotContains(t, string(environ), canary, "the plugin's environment is an allow-list")
	require.NotContains(t, ask(t, p, "environ").GetVersion(), canary)

	for _, verb := range []string{
		fmt.Sprintf("read /proc/%d/environ", host), fmt.Sprintf("memory %d", host), "dial " + listener(t),
	} {
		r := ask(t, p, verb)
		require.False(t, r.GetFound(), "%s: %q", verb, r.GetVersion())
	}
	require.NotContains(t, log.String(), canary)
}

// A plugin has its directory and nothing else of the file system: it can neither read a secret's file nor touch a table behind the host's
// back, nor, where the host is root, set kernel parameters.
func TestIsolation_FilesAreItsOwn(t *testing.T) {
	isolated(t)
	if _, line := host.DetectIsolation(); !strings.Contains(line, "no files but their own") {
		t.Skip(line)
	}
	outside := openDir(t, nil)
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(canary), 0o600))
	cfg, _ := config(t, "")
	p := start(t, cfg)
	for _, verb := range []string{
		"read " + secret, "write " + secret, "remove " + secret, "write " + outside + "/new", "list " + outside, "write " + cfg.Path,
		"write /proc/sys/kernel/core_pattern", "read /etc/shadow", "list " + cfg.Dir,
	} {
		r := ask(t, p, verb)
		require.False(t, r.GetFound(), "%s: %q", verb, r.GetVersion())
	}
	require.FileExists(t, secret)
	own := ask(t, p, "dir").GetVersion()
	for _, verb := range []string{
		"write " + own + "/tmp/x", "read " + own + "/tmp/x", "remove " + own + "/tmp/x", "read /etc/passwd", "read /proc/self/status",
		"write /dev/null", "list " + filepath.Dir(cfg.Path),
	} {
		r := ask(t, p, verb)
		require.True(t, r.GetFound(), "%s: %q", verb, r.GetVersion())
	}
	cfg.AllowRead, cfg.Dir = []string{outside}, t.TempDir()
	p = start(t, cfg)
	require.Equal(t, canary, ask(t, p, "read "+secret).GetVersion())
	require.False(t, ask(t, p, "write "+secret).GetFound())
}

// Every level that claims it keeps the host's memory closed, for a host of any user.
func TestIsolation_MemoryByLevel(t *testing.T) {
	users := map[string]*syscall.Credential{"own": nil}
	if os.Geteuid() == 0 {
		users["nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	best, line := host.DetectIsolation()
	for name, as := range users {
		for l := host.IsolationFull; l <= host.IsolationNone; l++ {
			t.Run(name+" "+l.String(), func(t *testing.T) {
				root := os.Geteuid() == 0 && as == nil
				if l < best || root && l == host.IsolationUndumpable || l == host.IsolationLandlock && !strings.Contains(line, "files but their own") {
					t.Skip("not on this system")
				}
				t.Setenv(markEnv, t.Name())
				dir := openDir(t, as)
				self := filepath.Join(dir, "signet-sink-hostile")
				copyFile(t, os.Args[0], self)
				require.NoError(t, os.Chmod(self, 0o755))
				t.Setenv("TMPDIR", dir)
				cmd, ask := hostProcess(t, self, self, filepath.Join(dir, "run"), l, as)
				for verb, open := range map[string]bool{
					"memory PID": l == host.IsolationNone, "read /proc/PID/environ": l == host.IsolationNone, "pgrp": true,
					"dial " + listener(t): l == host.IsolationNone || l == host.IsolationUndumpable,
				} {
					assert.Equal(t, fmt.Sprint(open, " <nil>"), ask(verb), verb)
				}
				require.NoError(t, cmd.Process.Kill())
				require.Error(t, cmd.Wait())
				noProcess(t)
			})
		}
	}
}

// openDir is a directory that another user can use.
func openDir(t *testing.T, as *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "plug") //nolint:usetesting // no other user may enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	if as != nil {
		require.NoError(t, os.Chown(dir, int(as.Uid), int(as.Gid)))
	}
	return dir
}

// The same probes succeed without isolation: the test above can fail.
func TestIsolation_NoneIsOpen(t *testing.T) {
	t.Setenv("SIGNET_CATALOG_SECRET", canary)
	t.Setenv("HTTP_PROXY", "http://user:"+canary+"@proxy:3128")
	t.Setenv("HTTPS_PROXY", "http://proxy:3128")
	cfg, _ := config(t, "")
	cfg.Isolation = host.IsolationNone
	p := start(t, cfg)
	require.True(t, ask(t, p, "dial "+listener(t)).GetFound())
	env := ask(t, p, "environ").GetVersion()
	require.NotContains(t, env, canary, "a proxy's password is not passed on either")
	require.Contains(t, env, "HTTPS_PROXY=http://proxy:3128")
	if os.Geteuid() == 0 {
		require.True(t, ask(t, p, fmt.Sprintf("memory %d", os.Getpid())).GetFound())
	}
}

func TestIsolation_CannotSignalTheHost(t *testing.T) {
	if l, line := host.DetectIsolation(); l != host.IsolationFull {
		t.Skip(line)
	}
	cfg, _ := config(t, "")
	p := start(t, cfg)
	require.False(t, ask(t, p, fmt.Sprintf("kill %d", os.Getpid())).GetFound())
}

func TestProcess_InheritsNothing(t *testing.T) {
	f, err := os.Open(os.Args[0]) // a file of the host's
	require.NoError(t, err)
	defer f.Close()
	cfg, _ := config(t, "")
	p := start(t, cfg)
	require.Empty(t, ask(t, p, "fds").GetVersion())
	require.Equal(t, "0 bytes", ask(t, p, "stdin").GetVersion())
	require.True(t, strings.HasPrefix(ask(t, p, "dir").GetVersion(), cfg.Dir))
}

// X17: a plugin is in no terminal's foreground group, and ignores SIGINT that reaches it anyway.
func TestProcess_IgnoresInterrupt(t *testing.T) {
	cfg, _ := config(t, "")
	p := start(t, cfg)
	require.True(t, strings.HasPrefix(ask(t, p, "pgrp").GetVersion(), "true"), "it leads a group of its own")
	require.True(t, ask(t, p, "interrupt").GetFound())
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGINT))
	require.True(t, ask(t, p, "pgrp").GetFound())
}

func TestProcess_EndsAfterSIGTERM(t *testing.T) {
	cfg, _ := config(t, "")
	p := start(t, cfg)
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGTERM))
	select {
	case <-p.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("it ignores SIGTERM")
	}
}
