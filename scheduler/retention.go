package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/signet-io/signet/scheduler/journal"
)

// Finished jobs are kept for signet jobs and for their idempotency keys: the newest keepJobs, trimmed dropJobs at a time. A key that
// comes again after that still finds its marker in the table, as long as the table keeps it. Those of schedules count apart, so that they push out
// nobody's.
const (
	keepJobs = 10_000
	dropJobs = 1_000

	keepScheduled = 1_000
	dropScheduled = 100
)

// trim forgets the oldest finished jobs when there are too many.
func (s *Server) trim() {
	old := s.oldest()
	if len(old) == 0 {
		return
	}
	err := s.journal.Update(func(tx *journal.Tx) error {
		for _, j := range old {
			j.mu.Lock()
			rec := j.rec
			j.mu.Unlock()
			if err := tx.DropJob(&rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log.Error("cannot forget old jobs", "error", err)
		return
	}
	s.observeForgotten(old)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range old {
		if delete(s.jobs, j.id); j.upkeep {
			s.scheduled--
		}
	}
}

// oldest are the finished jobs to forget, oldest first; ids are ordered by time.
func (s *Server) oldest() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	scheduled, most := false, dropJobs
	if len(s.jobs)-s.scheduled <= keepJobs+dropJobs {
		if scheduled, most = true, dropScheduled; s.scheduled <= keepScheduled+dropScheduled {
			return nil
		}
	}
	var old []*job
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		j.mu.Lock()
		done := isTerminal(j.state)
		j.mu.Unlock()
		if done && scheduled == j.upkeep {
			old = append(old, j)
		}
		if len(old) == most {
			break
		}
	}
	return old
}

// largeResult is how many bytes of inline result are kept as long as their job. Larger ones, which only roots other than a commit give, are kept
// for as long as the rows of a SELECT wait for their client.
const largeResult = 64 << 10

// keepResult forgets a large inline result when its client had its time to take it.
func (s *Server) keepResult(j *job) {
	j.mu.Lock()
	size, state, finished := len(j.rec.Result), j.rec.State, j.rec.Finished
	j.mu.Unlock()
	if size <= largeResult || !state.Terminal() {
		return
	}
	time.AfterFunc(max(0, time.Until(finished.Add(outputKept))), func() { s.dropResult(j) })
}

func (s *Server) dropResult(j *job) {
	if s.ctx.Err() != nil {
		return // the next start does it
	}
	j.warn("the result was large and is not kept any more; run the statement again")
	j.update(func() { j.rec.Result = nil })
	j.mu.Lock()
	rec := j.rec
	j.mu.Unlock()
	err := s.journal.Update(func(tx *journal.Tx) error {
		if _, err := tx.Job(rec.ID); err != nil {
			return nil //nolint:nilerr // forgotten meanwhile, with its result
		}
		return tx.PutJob(&rec)
	})
	if err != nil {
		s.log.Warn("cannot forget a large result", "job", j.id, "error", err)
	}
}
