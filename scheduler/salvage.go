package scheduler

import (
	"errors"
	"fmt"
	"os"

	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/journal"
)

// Salvaged is what came of a damaged journal.
type Salvaged struct {
	Damaged *journal.Report `json:"damaged"`
	// Again are open jobs of which something is lost: they begin anew. If one had committed already, its commit finds its marker (S64).
	Again  []string `json:"jobs_that_begin_anew"`
	Strays int      `json:"records_without_job"`
}

// SalvageJournal makes a journal that a scheduler can start with of one that is damaged. An open job goes on from where it was if recovery has all that it
// needs of it; otherwise it is planned and run anew under its commit key. Files that its lost attempts have written are left: nobody can tell any more
// whether a commit that was under way refers to them.
func SalvageJournal(from, to string) (*Salvaged, error) {
	report, err := journal.Salvage(from, to)
	if err != nil {
		return nil, err
	}
	out := &Salvaged{Damaged: report}
	j, err := journal.Open(to, journal.Options{})
	if err != nil {
		return nil, errors.Join(err, os.Remove(to))
	}
	err = j.Update(func(tx *journal.Tx) error {
		var open []*journal.Job
		if err := tx.Jobs(func(rec *journal.Job) error {
			if !rec.State.Terminal() && rec.Write != nil {
				open = append(open, rec)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, rec := range open {
			if recoverable(tx, rec) == nil {
				continue
			}
			out.Again = append(out.Again, rec.ID)
			if err := tx.ForgetPlan(rec); err != nil {
				return err
			}
		}
		var err error
		out.Strays, err = tx.DropStrays()
		return err
	})
	if err = errors.Join(err, j.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(to))
	}
	return out, nil
}

// recoverable tells whether recovery has what it needs of a planned write.
func recoverable(tx *journal.Tx, rec *journal.Job) error {
	tasks, err := tx.Tasks(rec.ID)
	if err != nil {
		return err
	}
	stages, err := stagesOf(tasks, rec.Write.Repeatable)
	if err != nil {
		return err
	}
	if have := len(stages[len(stages)-1].tasks); have != rec.Write.Tasks {
		return fmt.Errorf("%w: %d of %d tasks that write", journal.ErrDamaged, have, rec.Write.Tasks)
	}
	state, err := commitState(tx, rec.ID)
	if err != nil {
		return err
	}
	if _, _, err := coordinator.Restore(state, state.Epoch+1); err != nil {
		return err
	}
	manifests := map[int]string{}
	if err := tx.Manifests(rec.ID, func(m *journal.Manifest) error { manifests[int(m.Task)] = m.Attempt; return nil }); err != nil {
		return err
	}
	for _, a := range state.Accepted {
		if manifests[a.Task] != a.Attempt {
			return fmt.Errorf("%w: the manifest of task %d is gone", journal.ErrDamaged, a.Task)
		}
		delete(manifests, a.Task)
	}
	if len(manifests) > 0 { // they were accepted, and their executors were told so
		return fmt.Errorf("%w: %d manifests that nothing says were accepted", journal.ErrDamaged, len(manifests))
	}
	return nil
}
