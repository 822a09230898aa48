package duckdb

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lowerPriority gives the calling goroutine a thread of its own with the lowest priority. The thread is not reused: a process without privileges
// cannot raise its priority again.
func lowerPriority() {
	runtime.LockOSThread()                                     // never unlocked: the thread ends with the goroutine
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) // not allowed: then the priority stays, which is only slower
}
