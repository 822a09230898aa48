package broker

import (
	"context"
	"errors"
	"slices"
	"sync"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
)

// sealService serves host.v1.Seal: for commit points that only the sink reaches. The host keeps the order and the journal; what it is told about
// the outcome it has to believe.
type sealService struct {
	hostv1.UnimplementedSealServer
	b *Broker
}

// external is the open attempt at a system of the sink's own.
type external struct {
	l   *Lease
	seq int

	mu       sync.Mutex
	unknown  bool // an unknown outcome was recorded: only landed, found and dead may follow
	settled  bool
	version  string
	settling sync.Mutex
}

// Take asks for the seal.
func (s *sealService) Take(ctx context.Context, r *hostv1.TakeRequest) (*hostv1.TakeResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	l.committing.Lock()
	defer l.committing.Unlock()
	if err := l.mayCommit(ctx); err != nil {
		return nil, err
	}
	cp := r.GetCommitPoint()
	got := slices.Sorted(slices.Values(cp.GetMarkers()))
	switch want := slices.Sorted(slices.Values(l.spec.Markers)); {
	case l.spec.Sink.GetCommitPoint() != sinkv1.CommitPoint_COMMIT_POINT_EXTERNAL:
		return nil, refuse(kindPermanent, "sink %s has no external commit point", l.spec.Sink.GetName())
	case cp.GetVersion() == "":
		return nil, invalid("the commit point has no version")
	case !slices.Equal(got, want):
		return nil, invalid("the commit point names markers %q: want exactly %q", got, want)
	case l.openExternal() != nil:
		return nil, refuse(kindUnknown, "attempt %d has not been reported yet", l.openExternal().seq)
	}
	if err := fault.Hit("broker.seal.before"); err != nil {
		return nil, refuse(kindRetryable, "seal: %v", err)
	}
	seq, err := l.spec.Gate.Seal(ctx, coordinator.Attempt{
		Epoch: s.b.cfg.Epoch, Kind: coordinator.KindExternal, Version: cp.GetVersion(), ParentVersion: cp.GetParent(), Markers: l.spec.Markers,
		TableUUID: l.spec.TableUUID, Location: l.spec.Location, Digest: r.GetRequestDigest(),
	})
	if err != nil {
		return nil, l.refusedSeal(err)
	}
	e := &external{l: l, seq: seq, version: cp.GetVersion()}
	l.mu.Lock()
	l.external = e
	closed := l.closed
	l.mu.Unlock()
	if closed { // closed in between: nobody will report
		e.abandon()
		return nil, refuse(kindFenced, "the lease is closed")
	}
	return &hostv1.TakeResponse{Attempt: int64(seq)}, nil
}

func (l *Lease) openExternal() *external {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.external
}

// reportOutcomes maps what a sink reports. After an unknown outcome, "conflict" is the sink's word that the request can never land.
var reportOutcomes = map[hostv1.RefusalKind]coordinator.OutcomeKind{
	hostv1.RefusalKind_REFUSAL_KIND_UNSPECIFIED: coordinator.OutcomeLanded,
	kindAlready:   coordinator.OutcomeFound,
	kindConflict:  coordinator.OutcomeConflict,
	kindRetryable: coordinator.OutcomeConflict,
	kindPermanent: coordinator.OutcomeRefused,
	kindUnknown:   coordinator.OutcomeUnknown,
}

// Report settles the attempt.
func (s *sealService) Report(ctx context.Context, r *hostv1.ReportRequest) (*hostv1.ReportResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.live(); err != nil {
		return nil, err
	}
	e := l.openExternal()
	if e == nil || int64(e.seq) != r.GetAttempt() {
		return nil, invalid("attempt %d is not open", r.GetAttempt())
	}
	kind, ok := reportOutcomes[r.GetKind()]
	if !ok {
		return nil, invalid("outcome %v", r.GetKind())
	}
	if err := e.report(ctx, coordinator.Outcome{Kind: kind, Version: r.GetVersion(), Reason: r.GetMessage()}); err != nil {
		return nil, s.b.explain(l, "report", err)
	}
	return &hostv1.ReportResponse{}, nil
}

func (e *external) report(ctx context.Context, o coordinator.Outcome) error {
	e.settling.Lock()
	defer e.settling.Unlock()
	e.mu.Lock()
	settled, unknown := e.settled, e.unknown
	e.mu.Unlock()
	if settled {
		return invalid("attempt %d has been settled", e.seq)
	}
	if unknown && (o.Kind == coordinator.OutcomeConflict || o.Kind == coordinator.OutcomeRefused) {
		o.Kind = coordinator.OutcomeDead
	}
	if o.Version == "" {
		o.Version = e.version
	}
	if err := e.l.spec.Gate.Settle(context.WithoutCancel(ctx), e.seq, o); err != nil {
		return err
	}
	if err := fault.Hit("broker.settle.after"); err != nil {
		return err
	}
	e.mu.Lock()
	e.unknown = e.unknown || !definite(o)
	e.settled = definite(o)
	e.mu.Unlock()
	if definite(o) {
		e.l.mu.Lock()
		e.l.external = nil
		e.l.mu.Unlock()
	}
	if o.Kind == coordinator.OutcomeLanded || o.Kind == coordinator.OutcomeFound {
		e.l.markLanded(o.Version, o.Location)
	}
	return nil
}

// abandon records that nobody will report: the outcome is unknown until the sink is asked again.
func (e *external) abandon() {
	err := e.report(e.l.b.ctx, coordinator.Outcome{Kind: coordinator.OutcomeUnknown, Reason: "the sink did not report the outcome"})
	if err != nil && !errors.Is(err, coordinator.ErrUnsettled) {
		e.l.b.log.Warn("outcome of an external attempt not recorded", "job", e.l.spec.JobID, "attempt", e.seq, "cause", err)
	}
}
