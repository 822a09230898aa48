// Package heapfloor keeps the garbage collector of a process with a small heap from running all the time.
//
// The collector starts a cycle when the heap has doubled since the last one. A process with some megabytes that live and many calls a second, each of which
// leaves a part of a megabyte behind, so spends its time on cycles that find little. Under a floor the first so many bytes of garbage are left alone.
package heapfloor

import (
	"runtime"
	"sync"
)

var (
	mu    sync.Mutex
	floor []byte
)

// Set lets the heap grow by so many bytes, at least, between two cycles of the collector. The bytes count as a part of the heap, but are never touched, so that
// they take no memory by themselves; the process grows by as much garbage at most.
func Set(bytes int) {
	mu.Lock()
	defer mu.Unlock()
	floor = make([]byte, bytes)
	runtime.KeepAlive(floor)
}
