package coordinator

import "fmt"

// handler checks an event and applies it. It changes nothing before its last check.
type handler func(*step, Event) error

// cell is what one state does with one event: either it is handled, leading to one of the states in to, or it is denied.
type cell struct {
	do   handler
	to   []State
	deny func(*Machine) error
}

func allow[E Event](do func(*step, E) error, to ...State) cell {
	return cell{to: to, do: func(s *step, ev Event) error {
		e, ok := ev.(E)
		if !ok {
			return fmt.Errorf("%w: %T", ErrInvalid, ev)
		}
		return do(s, e)
	}}
}

func refuse(err error) cell { return cell{deny: func(*Machine) error { return err }} }

// already refuses because the job has committed, and says where.
var already = cell{deny: func(m *Machine) error {
	return &AlreadyError{Version: m.r.Result.Version, Location: m.r.Result.Location}
}}

// ended refuses because the job was aborted, and says how.
var ended = cell{deny: func(m *Machine) error { return &EndedError{Failure: *m.r.Failure} }}

// transitions is the whole machine. Nothing else changes a state.
var transitions = [stateCount][eventCount]cell{
	Planned: {
		evBegin:    allow(begin, Writing, Ready),
		evAccept:   refuse(ErrNotReady),
		evStart:    refuse(ErrNotReady),
		evSkip:     refuse(ErrNotReady),
		evSeal:     refuse(ErrNotReady),
		evLanded:   refuse(ErrNoSeal),
		evFound:    allow(found, Committed),
		evConflict: refuse(ErrNoSeal),
		evRefused:  refuse(ErrNoSeal),
		evUnknown:  refuse(ErrNoSeal),
		evDead:     refuse(ErrNoSeal),
		evCancel:   allow(cancel, Aborted),
		evFail:     allow(fail, Aborted),
		evRestart:  allow(restart, Planned),
	},
	Writing: {
		evBegin:    refuse(ErrStarted),
		evAccept:   allow(accept, Writing, Ready),
		evStart:    refuse(ErrNotReady), // S15: one missing writer means no commit at all
		evSkip:     refuse(ErrNotReady),
		evSeal:     refuse(ErrNotReady),
		evLanded:   refuse(ErrNoSeal),
		evFound:    allow(found, Committed),
		evConflict: refuse(ErrNoSeal),
		evRefused:  refuse(ErrNoSeal),
		evUnknown:  refuse(ErrNoSeal),
		evDead:     refuse(ErrNoSeal),
		evCancel:   allow(cancel, Aborted),
		evFail:     allow(fail, Aborted),
		evRestart:  allow(restart, Writing),
	},
	Ready: {
		evBegin:    refuse(ErrStarted),
		evAccept:   allow(acceptLate, Ready),
		evStart:    allow(start, Committing),
		evSkip:     allow(skip, Committed),
		evSeal:     refuse(ErrNotReady),
		evLanded:   refuse(ErrNoSeal),
		evFound:    allow(found, Committed),
		evConflict: refuse(ErrNoSeal),
		evRefused:  refuse(ErrNoSeal),
		evUnknown:  refuse(ErrNoSeal),
		evDead:     refuse(ErrNoSeal),
		evCancel:   allow(cancel, Aborted),
		evFail:     allow(fail, Aborted),
		evRestart:  allow(restart, Ready),
	},
	Committing: {
		evBegin:    refuse(ErrStarted),
		evAccept:   allow(acceptLate, Committing),
		evStart:    refuse(ErrStarted), // S13, S24: a second run-root event changes nothing
		evSkip:     allow(skip, Committed),
		evSeal:     allow(seal, Sealed),
		evLanded:   refuse(ErrNoSeal),
		evFound:    allow(found, Committed),
		evConflict: refuse(ErrNoSeal),
		evRefused:  refuse(ErrNoSeal),
		evUnknown:  refuse(ErrNoSeal),
		evDead:     refuse(ErrNoSeal),
		evCancel:   allow(cancel, Aborted), // S21: before the seal a cancel is final
		evFail:     allow(fail, Aborted),
		evRestart:  allow(restart, Ready),
	},
	Sealed: {
		evBegin:    refuse(ErrStarted),
		evAccept:   allow(acceptLate, Sealed),
		evStart:    refuse(ErrStarted),
		evSkip:     refuse(ErrSealed),
		evSeal:     refuse(ErrSealed),
		evLanded:   allow(landed, Committed),
		evFound:    allow(found, Committed),
		evConflict: allow(conflict, Committing, Aborted),
		evRefused:  allow(refused, Aborted),
		evUnknown:  allow(unknown, Resolving),
		evDead:     allow(dead, Committing, Aborted),
		evCancel:   allow(cancelLater, Sealed),
		evFail:     refuse(ErrSealed),
		evRestart:  allow(restartSealed, Resolving),
	},
	Resolving: {
		evBegin:    refuse(ErrStarted),
		evAccept:   allow(acceptLate, Resolving),
		evStart:    refuse(ErrStarted),
		evSkip:     refuse(ErrUnsettled),
		evSeal:     refuse(ErrUnsettled), // S68: units and ids are frozen
		evLanded:   allow(landed, Committed),
		evFound:    allow(found, Committed),
		evConflict: refuse(ErrUnsettled), // about the last send only: an earlier one may still land
		evRefused:  refuse(ErrUnsettled),
		evUnknown:  allow(unknownAgain, Resolving),
		evDead:     allow(dead, Committing, Aborted),
		evCancel:   allow(cancelLater, Resolving),
		evFail:     refuse(ErrUnsettled),
		evRestart:  allow(restartSealed, Resolving),
	},
	Committed: {
		evBegin:    already,
		evAccept:   allow(acceptLate, Committed),
		evStart:    already,
		evSkip:     already,
		evSeal:     already,
		evLanded:   allow(landedAgain, Committed),
		evFound:    allow(foundAgain, Committed),
		evConflict: already,
		evRefused:  already,
		evUnknown:  already,
		evDead:     already,
		evCancel:   already, // S21: refused with what happened
		evFail:     already, // C8, C17: a later step cannot make it a failure
		evRestart:  allow(restartFinal, Committed),
	},
	Aborted: {
		evBegin:    ended,
		evAccept:   ended,
		evStart:    ended, // S18, S19
		evSkip:     ended,
		evSeal:     ended,
		evLanded:   refuse(ErrContradiction),
		evFound:    refuse(ErrContradiction),
		evConflict: ended,
		evRefused:  ended,
		evUnknown:  ended,
		evDead:     ended,
		evCancel:   allow(cancelAgain, Aborted),
		evFail:     ended,
		evRestart:  allow(restartFinal, Aborted),
	},
}
