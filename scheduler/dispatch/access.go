package dispatch

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// maxAccess is how many requests for access one session may have under way. Executors keep to fewer.
const maxAccess = 64

// access answers a request for access to object stores. Who asks has to hold the attempt, or be asked for the analysis, on this very session: the pool
// knows that, and nobody else. The answer is a credential: it goes into the session, and nowhere else.
func (p *Pool) access(ctx context.Context, id string, s *session, r *executorv1.AccessRequest) {
	if !s.beginAccess() {
		s.send(accessAnswer(refusedAccess(r, planv1.ErrorClass_ERROR_CLASS_IO, "this executor asks for access more often than it may at a time")))
		return
	}
	go func() {
		defer s.endAccess()
		analysis, reason := p.mayAsk(id, s, r)
		if reason != "" {
			p.cfg.Logger.Warn("access refused", "executor", id, "attempt", r.GetAttempt().GetAttemptId(), "reason", reason)
			s.send(accessAnswer(refusedAccess(r, planv1.ErrorClass_ERROR_CLASS_KILLED, reason)))
			return
		}
		answer := p.handler.Access(ctx, id, r, analysis)
		if _, reason = p.mayAsk(id, s, r); reason != "" { // it was taken away meanwhile
			answer = refusedAccess(r, planv1.ErrorClass_ERROR_CLASS_KILLED, reason)
		}
		answer.RequestId, answer.Attempt = r.GetRequestId(), r.GetAttempt()
		s.send(accessAnswer(answer))
	}()
}

// mayAsk tells what of this session a request is about: an attempt that it holds (nil), or an analysis that it was asked for. reason: it is neither.
func (p *Pool) mayAsk(id string, s *session, r *executorv1.AccessRequest) (analysis *executorv1.Analyze, reason string) {
	ref := r.GetAttempt()
	switch {
	case ref == nil && r.GetAnalysis() == "", ref != nil && r.GetAnalysis() != "":
		return nil, "a request for access is about an attempt or about an analysis"
	case ref == nil:
		if analysis = s.analysis(r.GetAnalysis()); analysis == nil {
			return nil, fmt.Sprintf("analysis %q is none of this session", r.GetAnalysis())
		}
		return analysis, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.executors[id]
	if e == nil || e.session != s || p.closed {
		return nil, "the session is over"
	}
	if held := e.running[ref.GetAttemptId()]; (held == nil || !proto.Equal(held, ref)) && !mutant.On("dispatch/access-for-anybody") {
		return nil, fmt.Sprintf("attempt %q is none that this executor holds", ref.GetAttemptId())
	}
	return nil, ""
}

// refusedAccess grants nothing.
func refusedAccess(r *executorv1.AccessRequest, class planv1.ErrorClass, reason string) *executorv1.Access {
	return &executorv1.Access{RequestId: r.GetRequestId(), Attempt: r.GetAttempt(), Error: &planv1.Error{Class: class, Message: reason}}
}

func accessAnswer(a *executorv1.Access) *executorv1.SessionResponse {
	return &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Access{Access: a}}
}

// beginAccess takes one of the places of requests that are under way.
func (s *session) beginAccess() bool {
	select {
	case s.accesses <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *session) endAccess() { <-s.accesses }

// analysis is what the executor was asked for and has not answered yet.
func (s *session) analysis(id string) *executorv1.Analyze {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.waits[id]; ok && !s.broken {
		return w.req
	}
	return nil
}
