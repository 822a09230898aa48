package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
)

// ErrUnknownExecutor is returned for an executor that is not there.
var ErrUnknownExecutor = errors.New("no such executor")

// Drain gives an executor no more work and asks it to leave once nobody needs what it has, or after the limit if there is one. It is named by its id
// or the beginning of it; the id is returned. Asking again does no harm.
func (p *Pool) Drain(name, reason string, limit time.Duration) (string, error) {
	p.mu.Lock()
	defer p.unlock()
	e, err := p.named(name)
	if err != nil {
		return "", err
	}
	e.drained = &executorv1.Drain{Reason: reason, LimitMillis: limit.Milliseconds()}
	if e.session != nil {
		e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Drain{Drain: e.drained}})
	}
	p.cfg.Logger.Info("executor is drained", "executor", e.id, "reason", reason, "running", len(e.running), "limit", limit)
	p.touch(e)
	p.fill() // what waited for this one goes elsewhere
	p.signal()
	return e.id, nil
}

func (p *Pool) named(name string) (*executor, error) {
	if e := p.executors[name]; e != nil {
		return e, nil
	}
	var found *executor
	for id, e := range p.executors {
		if name == "" || !strings.HasPrefix(id, name) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several begin with %q; signet info lists them", ErrUnknownExecutor, name)
		}
		found = e
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %q; signet info lists those that are there", ErrUnknownExecutor, name)
	}
	return found, nil
}
