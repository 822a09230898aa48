package main

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer collects output and lets a test wait for a piece of it.
type lockedBuffer struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newLockedBuffer() *lockedBuffer { return &lockedBuffer{changed: make(chan struct{})} }

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lockedBuffer) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		b.mu.Lock()
		found, changed := strings.Contains(b.text.String(), want), b.changed
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited for %q in:\n%s", want, b.String())
		}
	}
}
