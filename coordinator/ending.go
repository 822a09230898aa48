package coordinator

import "fmt"

// abort ends the job without a commit. Its callers have made sure that nothing of it can land.
func (s *step) abort(f Failure) {
	f.Reason = clip(f.Reason)
	s.m.r.Failure = &f
	s.m.r.CancelPending, s.m.r.CancelReason = false, ""
	s.to(Aborted)
	s.finish()
}

// finish asks for what a final state asks for.
func (s *step) finish() {
	s.act(ActFinish)
	if r := s.m.r.Result; r == nil || r.Unreferenced || mutated("commit-swept") {
		s.act(ActSweepAll)
	} else {
		s.act(ActSweepLosers)
	}
}

func cancel(s *step, e Cancel) error {
	s.abort(Failure{Cancelled: true, Reason: e.Reason})
	return nil
}

// cancelLater notes a cancel that has to wait for the outcome of the sealed attempt.
func cancelLater(s *step, e Cancel) error {
	if m := s.m; !m.r.CancelPending {
		m.r.CancelPending, m.r.CancelReason = true, clip(e.Reason)
		s.changed = true
	}
	return nil
}

// cancelAgain repeats nothing; a failed job is not cancelled.
func cancelAgain(s *step, _ Cancel) error {
	if f := *s.m.r.Failure; !f.Cancelled {
		return &EndedError{Failure: f}
	}
	return nil
}

func fail(s *step, e Fail) error {
	s.abort(Failure{Reason: e.Reason})
	return nil
}

// newEpoch fences older incarnations.
func (s *step) newEpoch(r Restart) error {
	e := r.Epoch
	if e < s.m.r.Epoch {
		return fmt.Errorf("%w: epoch %d, the record is of %d", ErrFenced, e, s.m.r.Epoch)
	}
	s.m.r.Epoch, s.changed = e, true
	return nil
}

// restart keeps what was accepted. A commit that had not been sealed starts over.
func restart(s *step, e Restart) error {
	if err := s.newEpoch(e); err != nil {
		return err
	}
	if s.m.r.State == Committing {
		s.to(Ready)
	}
	return nil
}

// restartSealed: nobody knows whether the request left. It only rolls forward.
func restartSealed(s *step, e Restart) error {
	if err := s.newEpoch(e); err != nil {
		return err
	}
	s.to(Resolving)
	s.actOn(ActResolve, s.m.r.Open)
	return nil
}

// restartFinal repeats the last actions, because a crash may have come before them.
func restartFinal(s *step, e Restart) error {
	if err := s.newEpoch(e); err != nil {
		return err
	}
	s.changed = false // nothing more will be decided: the epoch of the last change stays in the journal
	s.finish()
	return nil
}
