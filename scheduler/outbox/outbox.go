package outbox

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/journal"
)

// Target is a receiver.
type Target interface {
	// Send delivers messages in their order. It returns how many need not be sent again: all that were delivered, and those that the receiver refuses
	// for good. An error says why the next one was not delivered.
	Send(ctx context.Context, list []Message) (done int, err error)
	// Close lets go of it.
	Close() error
}

// Message is what is sent.
type Message struct {
	Body []byte // JSON, one line
	// Path are values for the placeholders of an address.
	Path map[string]string
}

// Config of an Outbox.
type Config struct {
	To      string // which messages: journal.Outgoing.To
	Name    string // for people
	Target  Target
	Journal *journal.Journal
	// Pending bounds what waits; 10,000 if 0.
	Pending int
	Logger  *slog.Logger
	// Backoff are the first and the longest pause after a failure; 1 s and 1 min if 0.
	BackoffMin, BackoffMax time.Duration
}

// Stats count since the start.
type Stats struct {
	Pending         int
	Sent            int64 // and those that the receiver has refused
	Dropped, Failed int64 // did not fit; tries that failed
}

// DefaultPending is how many messages wait at most.
const DefaultPending = 10_000

// batch is how many messages are read, sent and forgotten together.
const batch = 64

// Outbox tells one receiver. A nil Outbox takes nothing.
type Outbox struct {
	cfg  Config
	wake chan struct{}

	mu       sync.Mutex
	stats    Stats
	volatile []Message
	warned   bool          // that messages are dropped
	quiet    chan struct{} // closed and replaced whenever nothing waits any more
}

// New makes an Outbox, which begins to tell when it is run.
func New(cfg Config) (*Outbox, error) {
	cfg.Pending = cmp.Or(cfg.Pending, DefaultPending)
	cfg.BackoffMin, cfg.BackoffMax = cmp.Or(cfg.BackoffMin, time.Second), cmp.Or(cfg.BackoffMax, time.Minute)
	o := &Outbox{cfg: cfg, wake: make(chan struct{}, 1), quiet: make(chan struct{})}
	err := cfg.Journal.View(func(tx *journal.Tx) error {
		list, err := tx.Outgoing(cfg.To, 1<<30)
		o.stats.Pending = len(list)
		return err
	})
	return o, err
}

// Put adds a message in the transaction of what it tells of. A message that does not fit is dropped: the transaction is the job's, and goes on.
func (o *Outbox) Put(tx *journal.Tx, job string, m Message) error {
	if o == nil || !o.room() {
		return nil
	}
	tx.OnCommit(func() {
		o.mu.Lock()
		o.stats.Pending++
		o.mu.Unlock()
		o.look()
	})
	return tx.PutOutgoing(&journal.Outgoing{To: o.cfg.To, Job: job, Body: m.Body, Path: m.Path})
}

// Note adds a message that a crash may lose. It is sent before everything that is put afterwards.
func (o *Outbox) Note(m Message) {
	if o == nil || !o.room() {
		return
	}
	o.mu.Lock()
	o.volatile = append(o.volatile, m)
	o.stats.Pending++
	o.mu.Unlock()
	o.look()
}

// room tells whether a message may wait, and counts it if it may not.
func (o *Outbox) room() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stats.Pending < o.cfg.Pending {
		return true
	}
	o.stats.Dropped++
	if !o.warned {
		o.warned = true
		o.cfg.Logger.Warn("messages are dropped: too many wait", "for", o.cfg.Name, "waiting", o.stats.Pending)
	}
	return false
}

// look has the journal looked at.
func (o *Outbox) look() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Flush waits until nothing waits, as long as ctx allows.
func (o *Outbox) Flush(ctx context.Context) error {
	if o == nil {
		return nil
	}
	for {
		o.mu.Lock()
		quiet, pending := o.quiet, o.stats.Pending
		o.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Stats tells what became of the messages so far.
func (o *Outbox) Stats() Stats {
	if o == nil {
		return Stats{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stats
}

// Run tells until ctx ends, and lets go of the receiver. What was not told by then is told by the next one.
func (o *Outbox) Run(ctx context.Context) {
	defer func() {
		if err := o.cfg.Target.Close(); err != nil {
			o.cfg.Logger.Warn("cannot close", "receiver", o.cfg.Name, "error", err)
		}
	}()
	pause := o.cfg.BackoffMin
	for ctx.Err() == nil {
		more, err := o.tell(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			o.mu.Lock()
			o.stats.Failed++
			o.mu.Unlock()
			o.cfg.Logger.Warn("cannot deliver; it is tried again", "to", o.cfg.Name, "after", pause, "error", err)
			sleep(ctx, pause)
			pause = min(2*pause, o.cfg.BackoffMax)
			continue
		}
		pause = o.cfg.BackoffMin
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-o.wake:
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// tell sends one batch: what is volatile first, since it is older than what is in the journal by then.
func (o *Outbox) tell(ctx context.Context) (more bool, err error) {
	var stored []*journal.Outgoing
	if err := o.cfg.Journal.View(func(tx *journal.Tx) (err error) {
		stored, err = tx.Outgoing(o.cfg.To, batch)
		return err
	}); err != nil {
		return false, err
	}
	o.mu.Lock()
	noted := o.volatile
	o.mu.Unlock()
	list := append(make([]Message, 0, len(noted)+len(stored)), noted...)
	for _, s := range stored {
		list = append(list, Message{Body: s.Body, Path: s.Path})
	}
	if len(list) == 0 {
		return false, nil
	}
	done, err := o.cfg.Target.Send(ctx, list)
	told := stored[:max(0, min(done-len(noted), len(stored)))]
	err = errors.Join(err, o.forget(min(done, len(noted)), told))
	return true, err // until a look finds nothing
}

// forget lets go of what has been told.
func (o *Outbox) forget(noted int, told []*journal.Outgoing) error {
	if len(told) > 0 {
		if err := fault.Hit("scheduler.outbox.after-send"); err != nil {
			return err
		}
		if err := o.cfg.Journal.Update(func(tx *journal.Tx) error { return tx.DropOutgoing(told) }); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.volatile = o.volatile[noted:]
	if o.stats.Pending -= noted + len(told); o.stats.Pending == 0 {
		close(o.quiet)
		o.quiet = make(chan struct{})
	}
	o.stats.Sent += int64(noted + len(told))
	o.warned = o.warned && o.stats.Pending > o.cfg.Pending/2
	return nil
}
