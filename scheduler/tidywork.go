package scheduler

import (
	"errors"

	"github.com/signet-io/signet/scheduler/journal"
)

// tidyLater is the number of tasks above which the records of a write that has committed are removed in a transaction of their own, behind the one that
// ends the job: of a thousand tasks they are hundreds of megabytes, and nobody needs to wait for them.
const tidyLater = 32

// untidy says whether an end leaves its work in the journal.
func untidy(rec *journal.Job) bool {
	return rec.State == journal.StateSuccessful && rec.Write != nil && rec.Progress.Tasks > tidyLater
}

// tidyWork removes what only a running job needs, and journals what is to be swept of it. Where it fails, the next start does it.
func (s *Server) tidyWork(j *job) {
	err := s.journal.Update(func(tx *journal.Tx) error {
		rec, err := tx.Job(j.id)
		if errors.Is(err, journal.ErrMissing) || err == nil && !rec.Untidy { // forgotten meanwhile, with all that belongs to it
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.oweSweeps(tx, rec); err != nil {
			return err
		}
		rec.Untidy = false
		return errors.Join(tx.DropWork(rec.ID), tx.PutJob(rec))
	})
	if err != nil {
		s.log.Warn("what a finished job has left in the journal stays until the next start", "job", j.id, "error", err)
		return
	}
	j.update(func() { j.rec.Untidy = false })
	s.wakeSweeper()
}
