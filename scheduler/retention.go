package scheduler

import (
	"maps"
	"slices"

	"github.com/signet-io/signet/scheduler/journal"
)

// Finished jobs are kept for signet jobs and for their idempotency keys: the newest keepJobs, trimmed dropJobs at a time. A key that
// comes again after that still finds its marker in the table, as long as the table keeps it.
const (
	keepJobs = 10_000
	dropJobs = 1_000
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range old {
		delete(s.jobs, j.id)
	}
}

// oldest are the finished jobs to forget, oldest first; ids are ordered by time.
func (s *Server) oldest() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) <= keepJobs+dropJobs {
		return nil
	}
	var old []*job
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		j.mu.Lock()
		done := isTerminal(j.state)
		j.mu.Unlock()
		if done {
			old = append(old, j)
		}
		if len(old) == dropJobs {
			break
		}
	}
	return old
}
