package dispatch

import (
	"context"
	"fmt"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Analyze has one executor analyse a query. It waits for an executor up to the grace time.
func (p *Pool) Analyze(ctx context.Context, req *executorv1.Analyze) (*executorv1.AnalyzeResult, error) {
	for tries := 0; ; tries++ {
		s, err := p.anySession(ctx)
		if err != nil {
			return nil, err
		}
		ch := s.expect(req)
		if ch == nil {
			continue
		}
		s.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Analyze{Analyze: req}})
		select {
		case r, ok := <-ch:
			if ok {
				return r, nil
			}
			if tries >= 2 { // the query may be what ends them
				return nil, fmt.Errorf("%w: %d executors were lost while they analysed this statement", ErrNoExecutor, tries+1)
			}
		case <-ctx.Done():
			s.forget(req.RequestId)
			return nil, ctx.Err()
		}
	}
}

// anySession is the session of the least busy executor.
func (p *Pool) anySession(ctx context.Context) (*session, error) {
	grace := time.NewTimer(p.cfg.EmptyGrace)
	defer grace.Stop()
	for {
		p.mu.Lock()
		var best *executor
		for _, e := range p.executors {
			if e.usable() && (best == nil || len(e.running) < len(best.running)) {
				best = e
			}
		}
		changed := p.changed
		var s *session
		if best != nil {
			s = best.session
		}
		p.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grace.C:
			if mutant.On("dispatch/no-advice") {
				return nil, ErrNoExecutor
			}
			return nil, fmt.Errorf("%w: waited %s; start one with: signet executor --scheduler ADDRESS", ErrNoExecutor, p.cfg.EmptyGrace)
		}
	}
}
