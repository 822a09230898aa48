package executor

import (
	"context"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/fault"
)

// leave tells the scheduler that this executor takes no more tasks, and is gone when its session ends.
func leave(reason string) *executorv1.SessionRequest {
	return &executorv1.SessionRequest{Message: &executorv1.SessionRequest_Leave{Leave: &executorv1.Leave{Reason: reason}}}
}

// leaving is why this executor takes no more tasks; empty if it does. e.mu is held.
func (e *Executor) leaving() string {
	switch {
	case e.draining:
		return "drained"
	case e.stopping:
		return "stopped"
	default:
		return ""
	}
}

// startDrain takes nothing new from now on. What runs may end, and what was left here may be fetched, for as long as it takes or as the drain allows.
func (e *Executor) startDrain(d *executorv1.Drain) {
	if err := fault.Hit("executor.drain.received"); err != nil {
		e.log.Warn("drain ignored", "error", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := time.Duration(d.GetLimitMillis()) * time.Millisecond
	if limit > 0 { // also of a later one, that has lost its patience
		time.AfterFunc(limit, func() { e.late.Do(func() { close(e.overdue) }) })
	}
	if e.draining {
		return
	}
	e.draining = true
	close(e.drain)
	e.log.Info("draining", "reason", d.GetReason(), "attempts", len(e.attempts), "limit", limit)
}

// drained is closed when a drain is over: nothing runs, every end is acknowledged, and no output is kept; or its limit is. The end of ctx ends the wait.
func (e *Executor) drained(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		select {
		case <-e.drain:
		case <-ctx.Done():
			return
		}
		for late := false; !late; {
			e.mu.Lock()
			attempts, wake := len(e.attempts), e.wake
			e.mu.Unlock()
			outputs, freed := e.serving.store.Held()
			if attempts == 0 && outputs == 0 {
				break
			}
			select {
			case <-wake:
			case <-freed:
			case <-e.overdue:
				e.log.Warn("the drain has taken as long as it may", "attempts", attempts, "outputs", outputs)
				late = true
			case <-ctx.Done():
				return
			}
		}
		if err := fault.Hit("executor.drain.before-leave"); err != nil {
			e.log.Warn("leaving after a drain", "error", err)
		}
		close(done)
	}()
	return done
}
