package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// world is one job between a coordinator that crashes, a network that delays and repeats, and a table that others write to and roll back. It
// plays the broker's part by the rules of the design; the checks after every action are what must hold.
type world struct {
	t        *rapid.T
	m        *Machine
	epoch    uint64
	journal  []byte // the last persisted record
	sent     bool   // this incarnation has sent the sealed attempt; a crash forgets it
	zombies  []*Machine
	resolved bool // was in Resolving once

	// the table
	last      int64 // last sequence number
	head      int64 // snapshot of main, 0: none
	log       []int64
	snapshots map[int64]bool
	landed    []int64 // snapshots of the job
	nextID    int64
	flight    []Attempt // copies of requests that may arrive at any time, or never
	sweptAll  bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, epoch: 1, snapshots: map[int64]bool{}, nextID: 1000}
	w.m = New("job", w.epoch)
	_ = w.step(Begin{Tasks: 2, TableUUID: "uuid"})
	for task := range 2 { // most runs shall reach the commit
		_ = w.step(Accept{Task: task, Attempt: fmt.Sprintf("x%d", task), Epoch: w.epoch, Digest: "00", Totals: Totals{Files: 1}, Paths: []string{fmt.Sprintf("/x%d", task)}})
	}
	return w
}

// step does what a caller must: step a copy, persist, keep the copy, act. A crash may come at each place between.
func (w *world) step(ev Event) error {
	next := *w.m
	eff, err := next.Step(ev)
	if err != nil {
		return err
	}
	if rapid.IntRange(0, 29).Draw(w.t, "crash before the journal") == 0 {
		w.crash()
		return nil
	}
	if eff.Record != nil {
		b, err := json.Marshal(eff.Record)
		require.NoError(w.t, err)
		w.journal = b
	}
	w.m = &next
	if rapid.IntRange(0, 29).Draw(w.t, "crash after the journal") == 0 {
		w.crash()
		return nil
	}
	w.act(eff.Actions)
	return nil
}

func (w *world) act(actions []Action) {
	for _, a := range actions {
		switch a.Kind {
		case ActSend:
			var r Record
			require.NoError(w.t, json.Unmarshal(w.journal, &r))
			require.Equal(w.t, Sealed, r.State, "S68: journalled before it is sent")
			require.Equal(w.t, a.Attempt, r.Open)
			w.sent = false
		case ActSweepAll:
			require.Contains(w.t, []State{Committed, Aborted}, w.m.State(), "S67: nothing is deleted while the outcome is open")
			w.sweptAll = true
		}
	}
}

func (w *world) crash() {
	if w.journal == nil {
		w.m = New("job", w.epoch)
		return
	}
	w.zombies = append(w.zombies, w.m)
	var r Record
	require.NoError(w.t, json.Unmarshal(w.journal, &r))
	w.epoch++
	m, eff, err := Restore(r, w.epoch)
	require.NoError(w.t, err)
	if eff.Record != nil {
		b, err := json.Marshal(eff.Record)
		require.NoError(w.t, err)
		w.journal = b
	}
	w.m, w.sent = m, false
	w.act(eff.Actions)
}

// arrive applies a request as a catalog does: the head is the pinned parent, and the sequence number is a new one.
func (w *world) arrive(a Attempt) bool {
	if w.head != *a.Parent || a.SequenceNumber <= w.last || w.snapshots[a.SnapshotID] {
		return false
	}
	w.commit(a.SnapshotID, a.SequenceNumber)
	w.landed = append(w.landed, a.SnapshotID)
	return true
}

func (w *world) commit(id, seq int64) {
	w.log = append(w.log, w.head)
	w.head, w.last = id, seq
	w.snapshots[id] = true
}

// look is the broker's rule.
func (w *world) look(a *Attempt) OutcomeKind {
	switch {
	case w.snapshots[a.SnapshotID]:
		return OutcomeFound
	case w.last >= a.SequenceNumber:
		return OutcomeDead
	default:
		return OutcomeUnknown
	}
}

func (w *world) settle(k OutcomeKind) {
	a := w.m.Open()
	ev, err := Outcome{Kind: k, Version: a.Version, Location: "loc"}.Event(a.Seq)
	require.NoError(w.t, err)
	require.NoError(w.t, w.step(ev))
}

// sendSealed is the first send of an attempt, with every answer that may come.
func (w *world) sendSealed() {
	a := *w.m.Open()
	w.sent = true
	switch rapid.SampledFrom([]string{"answered", "reply lost", "cut before", "in flight"}).Draw(w.t, "send") {
	case "answered":
		if w.arrive(a) {
			w.settle(OutcomeLanded)
		} else {
			w.settle(OutcomeConflict) // definite: the only send there ever was
		}
		return
	case "reply lost":
		w.arrive(a)
	case "in flight":
		w.flight = append(w.flight, a)
	}
	w.settle(w.look(&a))
}

func (w *world) resolve() {
	a := *w.m.Open()
	if k := w.look(&a); k != OutcomeUnknown {
		w.settle(k)
		return
	}
	switch rapid.SampledFrom([]string{"answered", "cut", "in flight"}).Draw(w.t, "resend") {
	case "answered":
		if w.arrive(a) {
			w.settle(OutcomeLanded)
			return
		}
	case "in flight":
		w.flight = append(w.flight, a)
	}
	w.settle(w.look(&a))
}

func (w *world) actions() map[string]func(*rapid.T) {
	only := func(f func(), states ...State) func(*rapid.T) {
		return func(t *rapid.T) {
			if !slices.Contains(states, w.m.State()) {
				t.Skip("not now")
			}
			f()
		}
	}
	seldom := func(f func()) func(*rapid.T) {
		return func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "dice") != 0 {
				t.Skip("seldom")
			}
			f()
		}
	}
	return map[string]func(*rapid.T){
		"": func(*rapid.T) { w.check() },
		"accept": only(func() {
			task := rapid.IntRange(0, 1).Draw(w.t, "task")
			who := rapid.SampledFrom([]string{"x", "y"}).Draw(w.t, "attempt")
			id := fmt.Sprintf("%s%d", who, task)
			_ = w.step(Accept{Task: task, Attempt: id, Epoch: w.epoch, Digest: "00", Totals: Totals{Files: 1}, Paths: []string{"/" + id}})
		}, Planned, Writing, Ready, Committed),
		"begin": only(func() { _ = w.step(Begin{Tasks: 2, TableUUID: "uuid"}) }, Planned),
		"start": only(func() { _ = w.step(Start{}) }, Ready),
		"seal":  only(w.seal, Committing),
		"send": only(func() {
			if !w.sent {
				w.sendSealed()
			}
		}, Sealed),
		"resolve": only(w.resolve, Resolving),
		"cancel":  seldom(func() { _ = w.step(Cancel{Reason: "user"}) }),
		"fail":    seldom(func() { _ = w.step(Fail{Reason: "broken"}) }),
		"advance": func(*rapid.T) { // the way to the commit point, without which most runs would stop early
			switch w.m.State() {
			case Ready:
				_ = w.step(Start{})
			case Committing:
				w.seal()
			case Sealed:
				if !w.sent {
					w.sendSealed()
				}
			case Resolving:
				w.resolve()
			}
		},
		"other writer": func(*rapid.T) { w.nextID++; w.commit(w.nextID, w.last+1) },
		"rollback": func(t *rapid.T) { // C33
			if len(w.log) == 0 {
				t.Skip("no history")
			}
			w.head = rapid.SampledFrom(w.log).Draw(t, "to")
		},
		"arrival": func(t *rapid.T) {
			if len(w.flight) == 0 {
				t.Skip("nothing in flight")
			}
			i := rapid.IntRange(0, len(w.flight)-1).Draw(t, "which")
			w.arrive(w.flight[i])
			if rapid.Bool().Draw(t, "once") {
				w.flight = slices.Delete(w.flight, i, i+1)
			}
		},
		"crash": seldom(w.crash),
		"zombie": func(t *rapid.T) { // S65, C7: an old incarnation asks at the journal
			if len(w.zombies) == 0 || w.m.State() != Committing {
				t.Skip("no zombie")
			}
			z := rapid.SampledFrom(w.zombies).Draw(t, "zombie")
			if z.Epoch() == w.epoch {
				t.Skip("same epoch")
			}
			err := w.step(Seal{Attempt: w.attempt(z.Epoch())})
			require.ErrorIs(t, err, ErrFenced)
		},
	}
}

func (w *world) attempt(epoch uint64) Attempt {
	w.nextID++
	a := attempt(epoch, strconv.FormatInt(w.nextID, 10))
	parent := w.head
	a.SnapshotID, a.Parent, a.SequenceNumber = w.nextID, &parent, w.last+1
	return a
}

func (w *world) seal() {
	if w.lookForMarker() {
		return
	}
	a := w.attempt(w.epoch)
	if rapid.Bool().Draw(w.t, "built on an old head") && len(w.log) > 0 {
		w.nextID++
		w.commit(w.nextID, w.last+1)
	}
	require.NoError(w.t, w.step(Seal{Attempt: a}))
}

// lookForMarker is what every commit begins with (C4).
func (w *world) lookForMarker() bool {
	if len(w.landed) == 0 {
		return false
	}
	require.NoError(w.t, w.step(Found{Version: strconv.FormatInt(w.landed[0], 10)}))
	return true
}

func (w *world) check() {
	require.LessOrEqual(w.t, len(w.landed), 1, "landed twice")
	switch w.m.State() {
	case Aborted:
		require.Empty(w.t, w.landed, "the job says %+v while the table holds its rows", w.m.Failure())
	case Committed:
		require.Len(w.t, w.landed, 1, "the job says Committed while the table holds nothing")
		require.Equal(w.t, strconv.FormatInt(w.landed[0], 10), w.m.Result().Version)
		require.False(w.t, w.m.Result().Already, "its own attempt landed")
		require.False(w.t, w.sweptAll, "C1, C9, C17: files of a landed commit deleted")
	case Sealed, Resolving:
		require.False(w.t, w.sweptAll)
		w.resolved = w.resolved || w.m.State() == Resolving
	}
	if w.journal != nil {
		var r Record
		require.NoError(w.t, json.Unmarshal(w.journal, &r))
		if r.State == Aborted || r.State == Committed {
			require.Equal(w.t, r.State, w.m.State(), "a final state was left")
		}
	}
}

// TestWorld_ExactlyOnceOrNever: whatever crashes, is lost, repeated, delayed, rolled back or cancelled, the job lands at most once, and
// its end says what the table holds (S16, S62, S63, S67, S68, C1 to C9, C17, C19, C33).
func TestWorld_ExactlyOnceOrNever(t *testing.T) {
	total := map[State]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		total[w.m.State()]++
		if w.resolved {
			total[Resolving]++
		}
	})
	for _, s := range []State{Committed, Aborted, Resolving} { // a simulation that never gets there proves nothing
		require.Positive(t, total[s], "no run reached %s: %v", s, total)
	}
}

// TestWorld_RequestsInFlightNeverLandAfterTheEnd drains the network after the job's end.
func TestWorld_RequestsInFlightNeverLandAfterTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		if !w.m.State().Final() {
			return
		}
		for _, head := range append(slices.Clone(w.log), w.head) {
			w.head = head // C33: rolled back to wherever a request was pinned
			for _, a := range w.flight {
				w.arrive(a)
			}
			w.check()
		}
	})
}
