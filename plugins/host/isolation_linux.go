package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func detect() detection {
	full := try(IsolationFull)
	spaces, level := "user, network, process and IPC namespaces", IsolationFull
	if full != nil {
		spaces, level = "user and network namespaces", IsolationUserNet
	}
	switch {
	case full == nil || try(IsolationUserNet) == nil:
		return detection{level, "sink plugins run in their own " + spaces + ": no network, and no way into the scheduler's memory" + files()}
	case landlockABI() >= 4 && onOwnThread(dropCapabilities) == nil:
		return detection{IsolationLandlock, fmt.Sprintf("namespaces are not available here (%v): sink plugins are confined by Landlock: no TCP, no files but their own, and no way into the scheduler's memory", full)}
	case os.Geteuid() != 0:
		return detection{IsolationUndumpable, fmt.Sprintf("user namespaces are not available here (%v): sink plugins cannot read the scheduler's memory, which is made undumpable, but they have its network and its user's files", full)}
	}
	return detection{IsolationNone, fmt.Sprintf("WARNING: sink plugins are trusted code here: the scheduler runs as root and user namespaces are not available (%v), so a plugin can read its memory and secrets; run it as another user, or allow user namespaces", full)}
}

func files() string {
	switch {
	case landlockABI() > 0:
		return ", and no files but their own"
	case os.Geteuid() == 0:
		return "; WARNING: the scheduler runs as root and this kernel has no Landlock, so they have root's files; run it as another user"
	}
	return "; this kernel has no Landlock, so they have its user's files"
}

// try clones into the namespaces and execs a file that does not exist. Where that is the only thing that fails, the namespaces work.
func try(i Isolation) error {
	return onOwnThread(func() error {
		cmd := &exec.Cmd{Path: "/nonexistent/signet-isolation-probe", SysProcAttr: attributes(i)}
		err := cmd.Start()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		return err
	})
}

// attributes are those of the plugin's first process. The caller starts it from a thread that lives as long as the plugin: the
// parent-death signal is sent when that thread ends.
//
// The user namespace gets no mapping: the process keeps its user for the file system, is nobody inside, and so has no capability even in
// its own namespaces. With a mapping a root host's plugin would be root there.
func attributes(i Isolation) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	switch i {
	case IsolationFull:
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	case IsolationUserNet:
		a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	}
	return a
}

// hide makes the host undumpable: processes of its own user can no longer open its memory or environment.
func hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
