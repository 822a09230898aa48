package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/signet-io/signet/catalog"
)

// ErrLost is what a commit answers whose reply was lost: unknown to the caller.
var ErrLost = errors.New("connection lost")

// Fault is what happens to one commit.
type Fault int

// The faults.
const (
	Pass      Fault = iota // nothing
	LostReply              // it lands, and the caller hears ErrLost
	Dropped                // it is not sent, and the caller hears ErrLost
	Conflict               // it is not sent, and the caller hears catalog.ErrConflict
	Refuse                 // it is not sent, and the caller hears catalog.ErrPermanent
	Late                   // the caller hears ErrLost; Release sends it
	Slow                   // it waits for Release, then lands
)

// Sent is one request as Faulty was given it.
type Sent struct {
	Ident                 catalog.Ident
	Requirements, Updates []byte
	Fault                 Fault
}

// Faulty is a catalog whose commits go wrong as the test says. Everything else passes through.
type Faulty struct {
	catalog.Catalog
	mu      sync.Mutex
	next    []Fault
	sent    []Sent
	late    []Sent
	release chan struct{}
	arrived chan struct{}
}

// NewFaulty wraps a catalog.
func NewFaulty(c catalog.Catalog) *Faulty {
	return &Faulty{Catalog: c, release: make(chan struct{}), arrived: make(chan struct{}, 1024)}
}

// Next queues faults for the commits to come; after them commits pass.
func (f *Faulty) Next(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, faults...)
}

// Sent returns all requests so far.
func (f *Faulty) Sent() []Sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Sent(nil), f.sent...)
}

// Arrived yields once for each commit that came in, before its fault takes effect.
func (f *Faulty) Arrived() <-chan struct{} { return f.arrived }

// Release lets Slow commits go on and sends the Late ones; it returns the errors of those.
func (f *Faulty) Release(ctx context.Context) error {
	f.mu.Lock()
	late := f.late
	f.late = nil
	close(f.release)
	f.release = make(chan struct{})
	f.mu.Unlock()
	var errs []error
	for _, s := range late {
		_, err := f.Catalog.Commit(ctx, s.Ident, s.Requirements, s.Updates)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Commit implements catalog.Catalog.
func (f *Faulty) Commit(ctx context.Context, id catalog.Ident, requirements, updates []byte) (*catalog.Table, error) {
	s, release := f.record(id, requirements, updates)
	select {
	case f.arrived <- struct{}{}:
	default:
	}
	switch s.Fault {
	case LostReply:
		_, err := f.Catalog.Commit(ctx, id, requirements, updates)
		if err != nil {
			return nil, err
		}
		return nil, ErrLost
	case Dropped, Late:
		return nil, ErrLost
	case Conflict:
		return nil, fmt.Errorf("injected: %w", catalog.ErrConflict)
	case Refuse:
		return nil, fmt.Errorf("injected: %w", catalog.ErrPermanent)
	case Slow:
		select {
		case <-release:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return f.Catalog.Commit(ctx, id, requirements, updates)
}

func (f *Faulty) record(id catalog.Ident, requirements, updates []byte) (Sent, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Sent{Ident: id, Requirements: requirements, Updates: updates}
	if len(f.next) > 0 {
		s.Fault, f.next = f.next[0], f.next[1:]
	}
	f.sent = append(f.sent, s)
	if s.Fault == Late {
		f.late = append(f.late, s)
	}
	return s, f.release
}
