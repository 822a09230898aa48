package dispatch

import (
	"slices"
	"time"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Work is an attempt that wants an executor.
type Work struct {
	Task  *planv1.Task
	Pull  bool     // it is sent only to an executor that asks
	Avoid []string // executors that it had better not go to
}

// item is an attempt that waits.
type item struct {
	task    *planv1.Task
	avoid   []string
	job     *jobQueue
	dropped bool
	until   time.Time // zero, or when it stops waiting for an executor that it does not avoid
}

// patient tells whether the attempt still waits for an executor that it does not avoid.
func (it *item) patient(now time.Time) bool { return now.Before(it.until) }

// jobQueue is what waits of one job, and how much of it is on executors. It is there while either is.
type jobQueue struct {
	id      string
	pull    bool
	items   []*item // some of them dropped
	waiting int     // those that are not, and those that are parked
	running int
	turn    uint64 // when it had its last one
	atPush  int
	atPull  int
}

func (q *jobQueue) before(o *jobQueue) bool {
	if q.running != o.running {
		return q.running < o.running
	}
	return q.turn < o.turn
}

// next takes the first attempt; nil if none waits.
func (q *jobQueue) next() *item {
	for len(q.items) > 0 {
		it := q.items[0]
		q.items[0] = nil
		q.items = q.items[1:]
		if !it.dropped {
			return it
		}
	}
	q.items = nil
	return nil
}

// trim lets go of dropped attempts at the front, so that a queue is in the ranking only if it has one to give.
func (q *jobQueue) trim() {
	for len(q.items) > 0 && q.items[0].dropped {
		q.items[0] = nil
		q.items = q.items[1:]
	}
	if len(q.items) == 0 {
		q.items = nil
	}
}

// ofJob is a job's queue; it is made where there is none.
func (p *Pool) ofJob(id string) *jobQueue {
	q := p.jobs[id]
	if q == nil {
		p.clock++
		q = &jobQueue{id: id, turn: p.clock}
		p.jobs[id] = q
	}
	return q
}

// ranked puts a job where it belongs after a change.
func (p *Pool) ranked(q *jobQueue) {
	q.trim()
	p.pushing.set(q, !q.pull && len(q.items) > 0)
	p.pulling.set(q, q.pull && len(q.items) > 0)
	if q.waiting == 0 && q.running == 0 {
		delete(p.jobs, q.id)
	}
}

// Launch queues an attempt until an executor can take it. The policy of a job's newest attempt is that of all.
func (p *Pool) Launch(w Work) {
	p.mu.Lock()
	defer p.unlock()
	q := p.ofJob(w.Task.JobId)
	q.pull = w.Pull
	it := &item{task: w.Task, avoid: w.Avoid, job: q}
	q.items = append(q.items, it)
	q.waiting++
	p.waiting[w.Task.AttemptId] = it
	p.ranked(q)
	p.fill()
}

// drop takes an attempt out of the queue.
func (p *Pool) drop(it *item) {
	it.dropped = true
	it.job.waiting--
	delete(p.waiting, it.task.AttemptId)
}

// DropQueued forgets the queued attempts of a job and returns them.
func (p *Pool) DropQueued(job string) []*planv1.Task {
	p.mu.Lock()
	defer p.unlock()
	q := p.jobs[job]
	if q == nil {
		return nil
	}
	var out []*planv1.Task
	for _, it := range slices.Concat(q.items, p.parked) {
		if it.job == q && !it.dropped {
			p.drop(it)
			out = append(out, it.task)
		}
	}
	p.parked = slices.DeleteFunc(p.parked, func(it *item) bool { return it.dropped })
	p.ranked(q)
	return out
}

// Queued is the number of attempts of a job that wait for an executor.
func (p *Pool) Queued(job string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.jobs[job]; q != nil {
		return q.waiting
	}
	return 0
}

// fill matches attempts with executors until one side has no more. Called with mu held.
func (p *Pool) fill() {
	if p.closed {
		return
	}
	p.unpark()
	for {
		q, ranking := p.nextJob()
		if q == nil {
			return
		}
		it := q.next()
		p.ranked(q)
		if it == nil {
			continue
		}
		if len(it.avoid) > 0 && it.until.IsZero() {
			it.until = time.Now().Add(p.cfg.AvoidWait)
		}
		e, wait := p.pick(it, ranking)
		if wait {
			p.park(it)
			continue
		}
		p.assign(it, e)
	}
}

// nextJob is the job whose turn it is among those that an executor could serve, and the executors that could.
func (p *Pool) nextJob() (*jobQueue, *heap[*executor]) {
	push := p.pushing.len() > 0 && p.free.len() > 0
	pull := p.pulling.len() > 0 && p.asking.len() > 0
	switch {
	case push && (!pull || p.pushing.items[0].before(p.pulling.items[0])):
		return p.pushing.items[0], &p.free
	case pull:
		return p.pulling.items[0], &p.asking
	}
	return nil, nil
}

// assign gives an attempt to an executor and sends it.
func (p *Pool) assign(it *item, e *executor) {
	t, q := it.task, it.job
	delete(p.waiting, t.AttemptId)
	ref := &executorv1.AttemptRef{JobId: t.JobId, Stage: t.Stage, Task: t.Task, AttemptId: t.AttemptId, Epoch: t.Epoch}
	p.clock++
	e.served, q.turn = p.clock, p.clock
	if q.pull {
		e.asked--
	}
	q.waiting--
	p.hold(e, ref)
	e.session.send(&executorv1.SessionResponse{Message: &executorv1.SessionResponse_Launch{Launch: &executorv1.Launch{Task: t, Polled: q.pull}}})
	p.assigned = append(p.assigned, assignment{ref, e.id})
}

// park puts an attempt aside that waits for an executor which it does not avoid.
func (p *Pool) park(it *item) {
	p.parked = append(p.parked, it)
	p.waiting[it.task.AttemptId] = it
	p.alarm()
}

// parkedAtOnce bounds what one event looks at.
const parkedAtOnce = 64

// unpark gives what was put aside another chance; what still waits goes to the back.
func (p *Pool) unpark() {
	for range min(len(p.parked), parkedAtOnce) {
		it := p.parked[0]
		p.parked = p.parked[1:]
		if it.dropped {
			continue
		}
		ranking := &p.free
		if it.job.pull {
			ranking = &p.asking
		}
		wait := ranking.len() == 0
		var e *executor
		if !wait {
			e, wait = p.pick(it, ranking)
		}
		if wait {
			p.parked = append(p.parked, it)
			continue
		}
		p.assign(it, e)
	}
}

// alarm sees to it that what was put aside does not wait for ever.
func (p *Pool) alarm() {
	if p.alarmed || len(p.parked) == 0 || p.closed {
		return
	}
	p.alarmed = true
	time.AfterFunc(max(p.cfg.AvoidWait/4, time.Millisecond), func() {
		p.mu.Lock()
		defer p.unlock()
		p.alarmed = false
		p.fill()
		p.alarm()
	})
}
