package flightsql

import (
	"crypto/rand"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// preparedStore keeps prepared statements until they are closed or have not been used for a time.
type preparedStore struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[string]*held
	bytes int // of texts and values
}

type held struct {
	*prepared
	used  time.Time
	bytes int
}

const (
	preparedIdle     = time.Hour
	maxPrepared      = 1000      // of one principal
	maxPreparedBytes = 256 << 20 // of all
)

func newPreparedStore() *preparedStore { return &preparedStore{now: time.Now, all: map[string]*held{}} }

func (st *preparedStore) add(p *prepared) ([]byte, error) {
	handle := make([]byte, 16)
	_, _ = rand.Read(handle) // never fails
	st.mu.Lock()
	defer st.mu.Unlock()
	st.expire()
	own := 0
	for _, h := range st.all {
		if h.principal == p.principal {
			own++
		}
	}
	if own >= maxPrepared {
		return nil, status.Errorf(codes.ResourceExhausted, "you have %d prepared statements open; close some, or wait until they have been idle for %s", own, preparedIdle)
	}
	h := &held{prepared: p, used: st.now()}
	if err := st.grow(h, len(p.text)); err != nil {
		return nil, err
	}
	st.all[string(handle)] = h
	return handle, nil
}

// expire and grow are called with mu held.
func (st *preparedStore) expire() {
	for k, h := range st.all {
		if st.now().Sub(h.used) > preparedIdle {
			st.bytes -= h.bytes
			delete(st.all, k)
		}
	}
}

func (st *preparedStore) grow(h *held, to int) error {
	if st.bytes+to-h.bytes > maxPreparedBytes {
		return status.Errorf(codes.ResourceExhausted, "prepared statements and their values take %d bytes, of %d that all together may take; close some, or bind fewer rows", st.bytes, maxPreparedBytes)
	}
	st.bytes += to - h.bytes
	h.bytes = to
	return nil
}

// resize tells what a statement takes with its values.
func (st *preparedStore) resize(handle []byte, to int) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.all[string(handle)]
	if h == nil {
		return unknownHandle("prepared statement") // closed meanwhile
	}
	st.expire()
	return st.grow(h, to)
}

func (st *preparedStore) get(principal string, handle []byte) *prepared {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.all[string(handle)]
	if h == nil || h.principal != principal || st.now().Sub(h.used) > preparedIdle {
		return nil
	}
	h.used = st.now()
	return h.prepared
}

func (st *preparedStore) remove(principal string, handle []byte) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.all[string(handle)]
	if h == nil || h.principal != principal {
		return false
	}
	st.bytes -= h.bytes
	delete(st.all, string(handle))
	return true
}
