package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
)

const lookTimeout = 30 * time.Second

// run is one sealed attempt on its way. It outlives the call that began it.
type run struct {
	attempt   coordinator.Attempt
	resolving chan struct{} // closed when it will take longer: the outcome is unknown, or cannot be recorded
	slow      sync.Once
	done      chan struct{} // closed when outcome is set
	outcome   coordinator.Outcome
	unsent    bool
}

func (r *run) slowDown() { r.slow.Do(func() { close(r.resolving) }) }

// seal takes the seal for an attempt and sends it in the background. An error: nothing was or will be sent.
func (l *Lease) seal(ctx context.Context, a coordinator.Attempt, t target) (*run, error) {
	if err := fault.Hit("broker.seal.before"); err != nil {
		return nil, refuse(kindRetryable, "seal: %v", err)
	}
	a.Epoch = l.b.cfg.Epoch
	seq, err := l.spec.Gate.Seal(ctx, a)
	if err != nil {
		return nil, l.refusedSeal(err)
	}
	a.Seq = seq
	r := &run{attempt: a, resolving: make(chan struct{}), done: make(chan struct{})}
	l.mu.Lock()
	l.run = r
	l.mu.Unlock()
	if !l.b.start(func() { l.drive(context.WithoutCancel(ctx), r, t) }) {
		// Sealed, and the process is going down: the next incarnation resolves it from the journal.
		r.slowDown()
		return r, nil
	}
	return r, nil
}

// refusedSeal gives the gate's errors their kinds; a gate that could not write its journal let nothing through.
func (l *Lease) refusedSeal(err error) error {
	var done *AlreadyError
	if errors.As(err, &done) {
		l.markLanded(done.Version, done.Location)
	}
	return l.b.explain(l, "seal", err)
}

// drive sends, settles, and resolves until the attempt has its end or the broker closes.
func (l *Lease) drive(ctx context.Context, r *run, t target) {
	o, unsent := l.first(ctx, r, t)
	if !definite(o) {
		l.b.log.Warn("commit outcome unknown, resolving", "job", l.spec.JobID, "attempt", r.attempt.Seq, "version", r.attempt.Version, "cause", o.Reason)
		r.slowDown()
		if !l.settle(r, o) {
			return
		}
		var err error
		if o, err = l.b.resolve(l.b.ctx, t, &r.attempt); err != nil {
			return // the broker closes; the journal has the attempt
		}
		l.b.log.Info("commit outcome resolved", "job", l.spec.JobID, "attempt", r.attempt.Seq, "outcome", o.Kind.String(), "version", o.Version)
	}
	if o.Kind == coordinator.OutcomeLanded || o.Kind == coordinator.OutcomeFound {
		l.markLanded(o.Version, o.Location)
	}
	if !l.settle(r, o) {
		return
	}
	l.b.Forget(&r.attempt)
	r.outcome, r.unsent = o, unsent
	l.mu.Lock()
	l.run = nil
	l.mu.Unlock()
	close(r.done)
}

func (l *Lease) first(ctx context.Context, r *run, t target) (coordinator.Outcome, bool) {
	if err := fault.Hit("broker.seal.after"); err != nil {
		return outcome(coordinator.OutcomeConflict, "nothing was sent: %v", err), true
	}
	ctx, cancel := context.WithTimeout(ctx, l.b.cfg.CommitTimeout)
	defer cancel()
	return sendOnce(ctx, t, &r.attempt, true)
}

// settle tells the gate, until it knows; false when the broker closes before. What the gate refuses by rule is not repeated: the rule
// stands, and the log says so.
func (l *Lease) settle(r *run, o coordinator.Outcome) bool {
	for n := 0; ; n++ {
		err := fault.Hit("broker.settle.before")
		if err == nil {
			err = l.spec.Gate.Settle(l.b.ctx, r.attempt.Seq, o)
		}
		if err == nil {
			err = fault.Hit("broker.settle.after")
		}
		if err == nil {
			return true
		}
		if byRule(err) {
			l.b.log.Error("the coordinator refuses an outcome", "job", l.spec.JobID, "attempt", r.attempt.Seq, "outcome", o.Kind.String(), "cause", err)
			return true
		}
		r.slowDown()
		l.b.log.Warn("outcome not recorded yet", "job", l.spec.JobID, "attempt", r.attempt.Seq, "outcome", o.Kind.String(), "cause", err)
		if l.b.pause(l.b.ctx, n) != nil {
			return false
		}
	}
}

func byRule(err error) bool {
	var done *AlreadyError
	if errors.As(err, &done) {
		return true
	}
	for _, rule := range []error{
		coordinator.ErrFenced, coordinator.ErrStale, coordinator.ErrNoSeal, coordinator.ErrUnsettled, coordinator.ErrContradiction, coordinator.ErrInvalid,
	} {
		if errors.Is(err, rule) {
			return true
		}
	}
	return false
}

// resolve looks, and sends the identical request again, until the outcome is definite. Its only error is the context's.
func (b *Broker) resolve(ctx context.Context, t target, a *coordinator.Attempt) (coordinator.Outcome, error) {
	for n := 0; ; n++ {
		if o, ok := b.resolveOnce(ctx, t, a); ok {
			return o, nil
		}
		if err := b.pause(ctx, n); err != nil {
			return coordinator.Outcome{}, err
		}
	}
}

func (b *Broker) resolveOnce(ctx context.Context, t target, a *coordinator.Attempt) (coordinator.Outcome, bool) {
	seen, err := look(ctx, t, a)
	if err != nil {
		b.log.Debug("resolving: the table cannot be read", "attempt", a.Seq, "version", a.Version, "cause", err)
		return coordinator.Outcome{}, false
	}
	if definite(seen) {
		return seen, true
	}
	if err := fault.Hit("broker.resolve.before-send"); err != nil {
		return coordinator.Outcome{}, false
	}
	// Not ended by ctx: a send that is cut in the middle says nothing.
	sendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer cancel()
	o, _ := sendOnce(sendCtx, t, a, false)
	if !definite(o) && a.Apart != nil { // its file may be missing or damaged, and nobody else says so
		b.log.Warn("resolving: the outcome is still unknown", "attempt", a.Seq, "version", a.Version, "cause", o.Reason)
	}
	return o, definite(o)
}

// pause waits before the next try, longer each time, spread so that jobs do not march in step.
func (b *Broker) pause(ctx context.Context, n int) error {
	d := min(b.cfg.BackoffMin<<min(n, 20), b.cfg.BackoffMax)
	if d <= 0 {
		d = b.cfg.BackoffMax
	}
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits for a run on behalf of a plugin's call: as long as it is being sent, and a bounded time once it is being resolved.
func (l *Lease) await(ctx context.Context, r *run) (coordinator.Outcome, error) {
	late := refuse(kindUnknown, "the outcome of version %s is not known yet; the host goes on resolving it", r.attempt.Version)
	select {
	case <-r.done:
		return r.outcome, nil
	case <-ctx.Done():
		return coordinator.Outcome{}, late
	case <-r.resolving:
	}
	timer := time.NewTimer(l.b.cfg.SettleWait)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.outcome, nil
	case <-ctx.Done():
	case <-timer.C:
	case <-l.b.ctx.Done():
	}
	return coordinator.Outcome{}, late
}

// answer turns a definite outcome into the plugin's answer: nil where this very attempt landed.
func answer(r *run, o coordinator.Outcome) (*landing, error) {
	switch o.Kind {
	case coordinator.OutcomeLanded:
		return &landing{version: o.Version, location: o.Location}, nil
	case coordinator.OutcomeFound:
		if o.Version == r.attempt.Version {
			return &landing{version: o.Version, location: o.Location}, nil
		}
		return nil, alreadyAt(o.Version, o.Location)
	case coordinator.OutcomeRefused:
		return nil, refuse(kindPermanent, "refused: %s", o.Reason)
	case coordinator.OutcomeConflict, coordinator.OutcomeDead:
		if r.unsent {
			return nil, refuse(kindRetryable, "nothing was sent") // the cause is in the log: it may name hosts
		}
		return nil, refuse(kindConflict, "%s", o.Reason)
	default:
		return nil, refuse(kindUnknown, "%s", o.Reason)
	}
}

// Resolve sends a journalled attempt again until it has landed, is found, or is dead: for attempts that an earlier incarnation sealed. It returns
// a definite outcome, or the error of ctx; once that is journalled the caller calls Forget. An attempt at an external system cannot be sent by the host: ErrExternal.
func (b *Broker) Resolve(ctx context.Context, spec LeaseSpec, a coordinator.Attempt) (coordinator.Outcome, error) {
	t, err := b.target(&spec, a.Kind)
	if err != nil {
		return coordinator.Outcome{}, err
	}
	return b.resolve(ctx, t, &a)
}

// ErrExternal: only the sink can say what became of the attempt; ask it (Lookup, or Commit with the same units).
var ErrExternal = errors.New("the attempt went to a system that only the sink reaches")

func (b *Broker) target(s *LeaseSpec, k coordinator.AttemptKind) (target, error) {
	switch {
	case k == coordinator.KindCatalog && s.Catalog != nil:
		return &catalogTarget{catalog: s.Catalog, ident: s.Ident, property: s.MarkerProperty}, nil
	case k == coordinator.KindStorage && s.Store != nil:
		return &storageTarget{store: s.Store, bodies: &b.bodies}, nil
	case k == coordinator.KindExternal:
		return nil, ErrExternal
	default:
		return nil, errors.New("resolve: the lease has no " + string(k) + " to send to")
	}
}
