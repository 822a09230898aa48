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
	// MemoryBytes is the memory limit of instances whose Access has none, and of bare ones. Default: DuckDB's own, 80 % of the machine.
	MemoryBytes int64
	// Logger receives failures of the background refill. Default slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Ready == 0 {
		o.Ready = 2
	}
	o.Ready = max(0, o.Ready)
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
	bare   []*Instance   // idle instances without access
	done   chan struct{} // closed when the refill has ended
	ending sync.WaitGroup
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

// Warm reports whether as many instances are ready as Options ask for.
func (p *Pool) Warm() bool { return len(p.ready) == cap(p.ready) }

// Close ends the refill and closes the instances that nobody took. Instances already handed out belong to their callers; those that Discard
// was called for are waited for.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	close(p.wake)
	idle := p.bare
	p.bare = nil
	p.mu.Unlock()
	<-p.done
	close(p.ready)
	for inst := range p.ready {
		idle = append(idle, inst)
	}
	var errs []error
	for _, inst := range idle {
		errs = append(errs, inst.Close())
	}
	p.ending.Wait()
	return errors.Join(errs...)
}

// Discard closes an instance in the background: closing one takes milliseconds that nobody has to wait for who only read.
func (p *Pool) Discard(inst *Instance) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		p.closeLogged(inst)
		return
	}
	p.ending.Add(1)
	p.mu.Unlock()
	go func() {
		defer p.ending.Done()
		p.closeLogged(inst)
	}()
}

func (p *Pool) closeLogged(inst *Instance) {
	if err := inst.Close(); err != nil {
		p.opts.Logger.Warn("DuckDB: cannot close an instance", "error", err)
	}
}

func (p *Pool) take(ctx context.Context) (*Instance, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrPoolClosed
	}
	select { // p.mu is held: Close drains ready only after it has set closed
	case inst := <-p.ready:
		p.nudge()
		p.mu.Unlock()
		return inst, nil
	default:
	}
	p.nudge()
	p.mu.Unlock()
	return open(ctx, p.opts)
}

// nudge wakes the refill; p.mu is held, so wake is open.
func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// refill opens one instance at a time, at low priority, so that tasks are not slowed by the replacements of what they took.
func (p *Pool) refill() {
	defer close(p.done)
	lowerPriority()
	for range p.wake {
		for len(p.ready) < cap(p.ready) && !p.isClosed() {
			inst, err := open(context.Background(), p.opts)
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
