package flightsql

import (
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// boundedAllocator refuses, by a panic that the readers turn into an error, to hold more than its limit: a compressed message says itself how
// large it wants to become.
type boundedAllocator struct {
	limit int64
	held  atomic.Int64
}

func (a *boundedAllocator) take(n int) {
	if n < 0 || a.held.Add(int64(n)) > a.limit {
		panic(fmt.Sprintf("a batch needs more than %d bytes of memory; send smaller batches", a.limit))
	}
}

// Allocate implements memory.Allocator.
func (a *boundedAllocator) Allocate(n int) []byte {
	a.take(n)
	return memory.DefaultAllocator.Allocate(n)
}

// Reallocate implements memory.Allocator.
func (a *boundedAllocator) Reallocate(n int, b []byte) []byte {
	if grow := n - len(b); grow > 0 {
		a.take(grow)
	} else {
		a.held.Add(int64(grow))
	}
	return memory.DefaultAllocator.Reallocate(n, b)
}

// Free implements memory.Allocator.
func (a *boundedAllocator) Free(b []byte) {
	a.held.Add(-int64(len(b)))
	memory.DefaultAllocator.Free(b)
}
