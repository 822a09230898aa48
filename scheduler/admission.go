package scheduler

import (
	"cmp"
	"context"
	"math"
	"sync"

	"github.com/signet-io/signet/scheduler/config"
)

// admission decides which jobs run: so many at one time, so many of one principal, the others in the order in which they came. What waits is
// bounded, too.
type admission struct {
	max, each, queue int

	mu      sync.Mutex
	running int
	of      map[string]int // running, by principal
	waiting []*turn
}

// turn is a job's place.
type turn struct {
	principal string
	due       chan struct{} // closed when the job may run
	runs      bool
}

func newAdmission(l config.Limits) *admission {
	return &admission{max: cmp.Or(l.MaxRunningJobs, math.MaxInt), each: cmp.Or(l.MaxUserJobs, math.MaxInt), queue: l.MaxQueuedJobs, of: map[string]int{}}
}

// room refuses a job for which there is none, neither to run nor to wait.
func (a *admission) room(principal string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.roomLocked(principal)
}

func (a *admission) roomLocked(principal string) error {
	if a.free(principal) || len(a.waiting) < a.queue {
		return nil
	}
	return fail(codeResource, "try again when some have ended; limits.max_running_jobs, limits.max_user_jobs and limits.max_queued_jobs say how many there may be",
		"too many jobs: %d run, %d of them of this principal, and %d wait", a.running, a.of[principal], len(a.waiting))
}

// claim gives a job its turn, or refuses it where there is no room for it.
func (a *admission) claim(principal string) (*turn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.roomLocked(principal); err != nil {
		return nil, err
	}
	return a.enterLocked(principal, false), nil
}

// free is called with mu held.
func (a *admission) free(principal string) bool {
	return a.running < a.max && a.of[principal] < a.each
}

// enter gives a job its turn. at once: whatever the limits say.
func (a *admission) enter(principal string, atOnce bool) *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.enterLocked(principal, atOnce)
}

func (a *admission) enterLocked(principal string, atOnce bool) *turn {
	t := &turn{principal: principal, due: make(chan struct{})}
	if atOnce || a.free(principal) {
		a.start(t)
	} else {
		a.waiting = append(a.waiting, t)
	}
	return t
}

func (a *admission) start(t *turn) {
	t.runs = true
	a.running++
	a.of[t.principal]++
	close(t.due)
}

// leave ends a turn, also of a job that still waits, and lets others run.
func (a *admission) leave(t *turn) {
	if t == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.runs {
		t.runs = false
		a.running--
		if a.of[t.principal]--; a.of[t.principal] == 0 {
			delete(a.of, t.principal)
		}
	}
	rest := a.waiting[:0]
	for _, w := range a.waiting {
		switch {
		case w == t:
		case a.free(w.principal):
			a.start(w)
		default:
			rest = append(rest, w)
		}
	}
	clear(a.waiting[len(rest):])
	a.waiting = rest
}

func (t *turn) wait(ctx context.Context) error {
	select {
	case <-t.due: // also where ctx has ended: the statement finds out
		return nil
	default:
	}
	select {
	case <-t.due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// inTurn runs a job's statement when it may.
func (s *Server) inTurn(j *job) error {
	if j.turn != nil {
		select {
		case <-j.turn.due:
		default:
			j.update(func() {
				j.message = "waiting for other jobs to end: limits.max_running_jobs and limits.max_user_jobs say how many run at one time"
			})
		}
		if err := j.turn.wait(j.ctx); err != nil {
			return err
		}
	}
	return s.execute(j)
}
