package host

import "golang.org/x/sys/unix"

// awaitExit returns when the process has ended, without reaping it: until then neither its number nor its group's can be taken by another.
// It returns false where it could not wait.
func awaitExit(pid int) bool {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err == nil
		}
	}
}

func onMainThread() bool { return unix.Gettid() == unix.Getpid() }
