package sim

import (
	"errors"

	"github.com/signet-io/signet/coordinator"
)

// look tells from the table alone what became of the sealed attempt.
func (w *World) look(r *run) coordinator.OutcomeKind {
	a, t := r.m.Open(), r.table
	_, there := t.snaps[a.SnapshotID]
	switch {
	case there:
		return coordinator.OutcomeFound
	case t.last >= a.SequenceNumber:
		return coordinator.OutcomeDead
	}
	return coordinator.OutcomeUnknown
}

func (w *World) settle(r *run, k coordinator.OutcomeKind) bool {
	a := r.m.Open()
	ev, err := coordinator.Outcome{Kind: k, Version: a.Version, Reason: k.String()}.Event(a.Seq)
	if err == nil {
		_, err = w.stepMachine(r, ev)
	}
	if k == coordinator.OutcomeConflict || k == coordinator.OutcomeDead {
		r.tries++
	}
	return !errors.Is(err, errJournal)
}

// resolve looks, and sends the identical request again (S67).
func (w *World) resolve(r *run) {
	if k := w.look(r); k != coordinator.OutcomeUnknown {
		w.settle(r, k)
		return
	}
	flying := 0
	for _, m := range w.net {
		if m.job == r.n && m.req != nil {
			flying++
		}
	}
	if flying < 3 {
		w.sendRequest(r, r.m.Open())
	}
}

// gotReply takes the catalog's answer. Only a success is believed without a look, and a refusal only of a request that was never sent before.
func (w *World) gotReply(m *message) {
	r := w.runOf(m.job)
	if r == nil || m.epoch != w.epoch {
		return // the connection went with its process
	}
	open := r.m.Open()
	if open == nil || open.Seq != m.seq { // late, of an attempt that has its end
		switch {
		case m.never:
			_, _ = w.stepMachine(r, coordinator.Refused{Seq: m.seq})
		case !m.yes:
			_, _ = w.stepMachine(r, coordinator.Conflict{Seq: m.seq})
		}
		return
	}
	first := r.first == m.seq && r.m.State() == coordinator.Sealed
	kept := true
	switch {
	case m.yes:
		kept = w.settle(r, coordinator.OutcomeLanded)
	case first:
		k := w.look(r)
		if k == coordinator.OutcomeUnknown {
			if k = coordinator.OutcomeConflict; m.never {
				k = coordinator.OutcomeRefused
			}
		}
		kept = w.settle(r, k)
	default: // an earlier send may still land: the answer to the last one says nothing, and the coordinator knows
		if m.never {
			_, _ = w.stepMachine(r, coordinator.Refused{Seq: m.seq})
		} else {
			_, _ = w.stepMachine(r, coordinator.Conflict{Seq: m.seq})
		}
		if r.m.Open() != nil {
			kept = w.settle(r, w.look(r))
		}
	}
	if !kept {
		w.send(m) // told again until it is recorded
	}
}
