package coordinator

import (
	"fmt"
	"slices"
)

func seal(s *step, e Seal) error {
	a := e.Attempt
	m := s.m
	if a.Epoch != m.r.Epoch && !mutated("any-epoch") { // S65: an old incarnation, or this one is
		return fmt.Errorf("%w: attempt of epoch %d, the job belongs to %d", ErrFenced, a.Epoch, m.r.Epoch)
	}
	if err := a.validate(); err != nil {
		return err
	}
	if m.r.TableUUID != "" && a.TableUUID != "" && a.TableUUID != m.r.TableUUID { // C32
		return fmt.Errorf("%w: attempt on table %s, the job writes to %s", ErrInvalid, a.TableUUID, m.r.TableUUID)
	}
	m.r.Seals++
	a.Seq = m.r.Seals
	m.r.Open = &a
	s.to(Sealed)
	s.actOn(ActSend, &a)
	return nil
}

// current checks that an outcome is about the sealed attempt.
func (m *Machine) current(seq int) error {
	if m.r.Open == nil || m.r.Open.Seq != seq && !mutated("stale-outcome") {
		return fmt.Errorf("%w: outcome of attempt %d, sealed is %d", ErrStale, seq, m.r.Seals)
	}
	return nil
}

func landed(s *step, e Landed) error {
	if err := s.m.current(e.Seq); err != nil {
		return err
	}
	version := e.Version
	if version == "" {
		version = s.m.r.Open.Version
	}
	s.commit(Result{Version: version, Location: e.Location})
	return nil
}

func found(s *step, e Found) error {
	m := s.m
	if e.Seq != 0 {
		if err := m.current(e.Seq); err != nil {
			return err
		}
	}
	if e.Version == "" {
		return fmt.Errorf("%w: found without a version", ErrInvalid)
	}
	r := Result{Version: e.Version, Location: e.Location, Already: !m.sealedVersion(e.Version)}
	r.Unreferenced = r.Already && m.r.Open == nil
	s.commit(r)
	return nil
}

// sealedVersion reports whether one of the job's own attempts carried the version.
func (m *Machine) sealedVersion(v string) bool {
	if m.r.Open != nil && m.r.Open.Version == v {
		return true
	}
	return slices.ContainsFunc(m.r.Ended, func(e Ended) bool { return e.Version == v })
}

// commit ends the job well.
func (s *step) commit(r Result) {
	m := s.m
	m.r.Result, m.r.Open = &r, nil
	m.r.CancelPending, m.r.CancelReason = false, ""
	s.to(Committed)
	s.finish()
}

func landedAgain(s *step, e Landed) error { return s.m.sameVersion(e.Version) }

func foundAgain(s *step, e Found) error { return s.m.sameVersion(e.Version) }

// sameVersion takes a repeated report; another version would mean that the job landed twice.
func (m *Machine) sameVersion(v string) error {
	if v != "" && v != m.r.Result.Version {
		return fmt.Errorf("%w: version %q, committed is %q", ErrContradiction, v, m.r.Result.Version)
	}
	return nil
}

func conflict(s *step, e Conflict) error {
	return s.release(e.Seq, OutcomeConflict, e.Reason)
}

func dead(s *step, e Dead) error {
	return s.release(e.Seq, OutcomeDead, e.Reason)
}

// release ends an attempt that did not and cannot land: a waiting cancel is honoured, otherwise a new attempt may follow.
func (s *step) release(seq int, k OutcomeKind, reason string) error {
	m := s.m
	if err := m.current(seq); err != nil {
		return err
	}
	s.endAttempt(k, reason)
	if m.r.CancelPending {
		s.abort(Failure{Cancelled: true, Reason: m.r.CancelReason})
		return nil
	}
	s.to(Committing)
	s.act(ActCallSink)
	return nil
}

func refused(s *step, e Refused) error {
	if err := s.m.current(e.Seq); err != nil {
		return err
	}
	s.endAttempt(OutcomeRefused, e.Reason)
	if s.m.r.CancelPending {
		s.abort(Failure{Cancelled: true, Reason: s.m.r.CancelReason})
		return nil
	}
	s.abort(Failure{Reason: e.Reason})
	return nil
}

func (s *step) endAttempt(k OutcomeKind, reason string) {
	m := s.m
	e := Ended{Seq: m.r.Open.Seq, Version: m.r.Open.Version, Outcome: k.String(), Reason: clip(reason)}
	m.r.Ended = append(slices.Clip(m.r.Ended), e)
	m.r.Open = nil
}

// clip keeps records small: reasons come from catalogs and plugins.
func clip(s string) string {
	const limit = 2048
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}

func unknown(s *step, e Unknown) error {
	if err := s.m.current(e.Seq); err != nil {
		return err
	}
	s.to(Resolving)
	s.actOn(ActResolve, s.m.r.Open)
	return nil
}

func unknownAgain(s *step, e Unknown) error { return s.m.current(e.Seq) }
