package duckdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// ErrPoolClosed is returned by Open after Close.
var ErrPoolClosed = errors.New("duckdb: pool is closed")

// Options configure a Pool. The zero value is usable.
type Options struct {
	// Ready is the number of unlocked instances kept open ahead of need; opening one takes some 8 ms. Default 2; negative: none.
	Ready int
	// Setup runs once on each instance before it is locked, on the connection that Instance.Conn will return: the place to register
	// functions of our own. It runs ahead of Open, so it costs no latency there.
	Setup Setup
	// Logger receives failures of the background refill. Default slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Ready == 0 {
		o.Ready = 2
	}
	if o.Ready < 0 {
		o.Ready = 0
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Pool keeps a few fresh, unlocked instances ready. It is safe for concurrent use.
type Pool struct {
	opts  Options
	ready chan *Instance
	wake  chan struct{}

	mu     sync.Mutex
	closed bool
	done   chan struct{} // closed when the refill has ended
}

// NewPool starts filling the pool in the background and returns at once.
func NewPool(opts Options) *Pool {
	opts = opts.withDefaults()
	p := &Pool{opts: opts, ready: make(chan *Instance, opts.Ready), wake: make(chan struct{}, 1), done: make(chan struct{})}
	p.wake <- struct{}{}
	go p.refill()
	return p
}

// Open takes an instance, grants it what access names, and locks it. The caller closes it.
func (p *Pool) Open(ctx context.Context, access Access) (*Instance, error) {
	inst, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := inst.lock(ctx, access); err != nil {
		return nil, errors.Join(fmt.Errorf("lock DuckDB: %w", err), inst.Close())
	}
	return inst, nil
}

// Close ends the refill and closes the instances that nobody took. Instances already handed out belong to their callers.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.wake)
	p.mu.Unlock()
	<-p.done
	close(p.ready)
	var errs []error
	for inst := range p.ready {
		errs = append(errs, inst.Close())
	}
	return errors.Join(errs...)
}

func (p *Pool) take(ctx context.Context) (*Instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrPoolClosed
	}
	select { // while closed is held false: Close drains ready only after it was set
	case inst := <-p.ready:
		p.nudge()
		p.mu.Unlock()
		return inst, nil
	default:
	}
	p.nudge()
	p.mu.Unlock()
	return open(ctx, p.opts.Setup)
}

// nudge wakes the refill; p.mu is held, so wake is open.
func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// refill opens one instance at a time, so that a burst of tasks is not slowed further by its own replacements.
func (p *Pool) refill() {
	defer close(p.done)
	for range p.wake {
		for len(p.ready) < cap(p.ready) && !p.isClosed() {
			inst, err := open(context.Background(), p.opts.Setup)
			if err != nil {
				p.opts.Logger.Warn("DuckDB: cannot open an instance ahead of need", "error", err)
				break // the next Open tries itself and reports what is wrong
			}
			p.ready <- inst // the only sender, and there is room
		}
	}
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
