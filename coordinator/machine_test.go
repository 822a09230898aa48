package coordinator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func anyEvent(t *rapid.T) Event {
	seq := rapid.IntRange(0, 3).Draw(t, "seq")
	version := rapid.SampledFrom([]string{"", "100", "101"}).Draw(t, "version")
	switch rapid.SampledFrom(eventNames[:]).Draw(t, "event") {
	case "Begin":
		return Begin{Tasks: rapid.IntRange(-1, 3).Draw(t, "tasks"), TableUUID: rapid.SampledFrom([]string{"", "uuid", "other"}).Draw(t, "uuid")}
	case "Accept":
		return Accept{
			Task: rapid.IntRange(-1, 3).Draw(t, "task"), Attempt: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "attempt"),
			Epoch: rapid.Uint64Range(1, 9).Draw(t, "epoch"), Digest: rapid.SampledFrom([]string{"", "00", "ff", "no"}).Draw(t, "digest"),
			Totals: Totals{Files: rapid.Int64Range(-1, 1).Draw(t, "files")}, Paths: rapid.SliceOfN(rapid.SampledFrom([]string{"/p", "/q"}), 0, 2).Draw(t, "paths"),
		}
	case "Start":
		return Start{}
	case "Skip":
		return Skip{}
	case "Seal":
		a := attempt(rapid.Uint64Range(6, 8).Draw(t, "epoch"), rapid.SampledFrom([]string{"100", "101"}).Draw(t, "version"))
		a.TableUUID = rapid.SampledFrom([]string{"uuid", "other"}).Draw(t, "uuid")
		return Seal{Attempt: a}
	case "Landed":
		return Landed{Seq: seq, Version: version}
	case "Found":
		return Found{Seq: seq, Version: version}
	case "Conflict":
		return Conflict{Seq: seq}
	case "Refused":
		return Refused{Seq: seq}
	case "Unknown":
		return Unknown{Seq: seq}
	case "Dead":
		return Dead{Seq: seq}
	case "Cancel":
		return Cancel{}
	case "Fail":
		return Fail{}
	default:
		return Restart{Epoch: rapid.Uint64Range(6, 9).Draw(t, "epoch")}
	}
}

// TestMachine_RestoredBehavesLikeTheOriginal: a machine restored from its JSON record and the original after a restart take the same
// decisions, whatever comes; only the memory of paths is the journal's to give back.
func TestMachine_RestoredBehavesLikeTheOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New("job", 7)
		for range rapid.IntRange(0, 25).Draw(t, "events") {
			_, _ = m.Step(anyEvent(t))
		}
		raw, err := json.Marshal(m.Record())
		require.NoError(t, err)
		var r Record
		require.NoError(t, json.Unmarshal(raw, &r))
		epoch := m.Epoch() + 1
		restored, eff, err := Restore(r, epoch)
		require.NoError(t, err)
		want, err := m.Step(Restart{Epoch: epoch})
		require.NoError(t, err)
		require.Equal(t, want.Actions, eff.Actions)
		restored.paths = m.paths
		for range rapid.IntRange(0, 25).Draw(t, "more events") {
			require.Equal(t, m.Record(), restored.Record())
			ev := anyEvent(t)
			e1, err1 := m.Step(ev)
			e2, err2 := restored.Step(ev)
			require.Equal(t, err1, err2)
			require.Equal(t, e1, e2)
		}
	})
}

// TestMachine_CopiesAreIndependent: stepping a copy leaves the original as it was, so that a record that could not be persisted never
// happened.
func TestMachine_CopiesAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New("job", 7)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			ev := anyEvent(t)
			before := m.Record()
			dropped := *m
			e1, err1 := dropped.Step(ev)
			require.Equal(t, before, m.Record())
			kept := *m
			e2, err2 := kept.Step(ev)
			require.Equal(t, err1, err2, "a dropped copy has left nothing behind")
			require.Equal(t, e1, e2)
			if err2 != nil {
				require.Equal(t, before, kept.Record())
				require.Nil(t, e2.Record)
			} else if e2.Record == nil {
				require.Equal(t, before.State, kept.State(), "an unrecorded change of state")
			} else {
				require.Equal(t, *e2.Record, kept.Record())
			}
			m = &kept
		}
	})
}

// C14: an attempt that died after it had been let in denies nothing to the next one; C21, C6: no path twice.
// Numbers in docs/semantics.md: S60.
func TestMachine_Accept(t *testing.T) {
	m := at(t, Writing) // a0 accepted for task 0
	refused := func(a Accept, want error) {
		t.Helper()
		_, err := m.Step(a)
		require.ErrorIs(t, err, want)
	}
	repeat := accept0()
	eff, err := m.Step(repeat)
	require.NoError(t, err)
	require.Nil(t, eff.Record, "a repeat changes nothing")
	require.Equal(t, []Action{{Kind: ActAcknowledge, Task: 0, AttemptID: "a0"}}, eff.Actions)

	changed := accept0()
	changed.Digest = "0a"
	refused(changed, ErrContent)
	loser := accept0()
	loser.Attempt = "b0"
	refused(loser, ErrLost)
	_, err = m.Step(loser)
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, LostError{Task: 0, Attempt: "b0", Winner: "a0"}, *lost)

	stolen := accept1()
	stolen.Paths = accept0().Paths
	refused(stolen, ErrDuplicatePath)
	twice := accept1()
	twice.Totals.Files, twice.Paths = 2, []string{"/p", "/p"}
	refused(twice, ErrDuplicatePath)
	fewer := accept1()
	fewer.Totals.Files = 2
	refused(fewer, ErrInvalid)
	moved := accept1()
	moved.Attempt = "a0"
	refused(moved, ErrContent)
	future := accept1()
	future.Epoch = 8 // journalled by a newer scheduler: this one is the zombie
	refused(future, ErrFenced)
	for _, a := range []Accept{{Task: -1, Attempt: "x", Digest: "00"}, {Task: 2, Attempt: "x", Digest: "00"}} {
		refused(a, ErrNoTask)
	}
	refused(Accept{Task: 1, Digest: "00"}, ErrInvalid)
	refused(Accept{Task: 1, Attempt: "x", Digest: "zz"}, ErrInvalid)
	refused(Accept{Task: 1, Attempt: "x", Digest: "00", Totals: Totals{Rows: -1}}, ErrInvalid)

	eff, err = m.Step(accept1())
	require.NoError(t, err)
	require.Equal(t, Ready, eff.State)
	require.Equal(t, "a1", eff.Accepted.Attempt)
	w, ok := m.Winner(1)
	require.True(t, ok)
	require.Equal(t, accept1().Totals, w.Totals)
	_, ok = m.Winner(9)
	require.False(t, ok)
	require.Equal(t, Totals{Files: 2, Rows: 30, Bytes: 300}, m.Totals())
	require.Len(t, m.Digest(), 32)
	require.True(t, m.HasPath("b", "file:///t/a0/x"))
	require.False(t, m.HasPath("a0", "file:///t/a0/x"))
}

// The unit's digest depends on content and order of tasks, not on the order of acceptance.
func TestMachine_DigestByTaskOrder(t *testing.T) {
	a, b := New("job", 7), New("job", 7)
	stepped(t, a, Begin{Tasks: 2}, accept0(), accept1())
	stepped(t, b, Begin{Tasks: 2}, accept1(), accept0())
	require.Equal(t, a.Digest(), b.Digest())
	other := accept1()
	other.Digest = "02"
	c := New("job", 7)
	stepped(t, c, Begin{Tasks: 2}, accept0(), other)
	require.NotEqual(t, a.Digest(), c.Digest())
}

func TestMachine_SealRefusals(t *testing.T) {
	m := at(t, Committing)
	for name, tc := range map[string]struct {
		edit func(*Attempt)
		want error
	}{
		"older epoch (S65)":      {func(a *Attempt) { a.Epoch = 6 }, ErrFenced},
		"newer epoch":            {func(a *Attempt) { a.Epoch = 8 }, ErrFenced},
		"other table (C32)":      {func(a *Attempt) { a.TableUUID = "other" }, ErrInvalid},
		"no marker":              {func(a *Attempt) { a.Markers = nil }, ErrInvalid},
		"no version":             {func(a *Attempt) { a.Version = "" }, ErrInvalid},
		"no request":             {func(a *Attempt) { a.Updates = nil }, ErrInvalid},
		"no UUID":                {func(a *Attempt) { a.TableUUID = "" }, ErrInvalid},
		"no sequence number":     {func(a *Attempt) { a.SequenceNumber = 0 }, ErrInvalid},
		"unknown kind":           {func(a *Attempt) { a.Kind = "carrier pigeon" }, ErrInvalid},
		"storage without URI":    {func(a *Attempt) { a.Kind = KindStorage; a.Body = []byte("x") }, ErrInvalid},
		"storage without body":   {func(a *Attempt) { a.Kind = KindStorage; a.URI = "x" }, ErrInvalid},
		"storage body too large": {func(a *Attempt) { a.Kind = KindStorage; a.URI = "x"; a.Body = make([]byte, MaxBody+1) }, ErrInvalid},
	} {
		a := attempt(7, "100")
		tc.edit(&a)
		eff, err := m.Step(Seal{Attempt: a})
		require.ErrorIs(t, err, tc.want, name)
		require.Empty(t, eff.Actions, name)
		require.Equal(t, Committing, m.State(), name)
	}
	for _, kind := range []AttemptKind{KindExternal, KindStorage} {
		a := attempt(7, "100")
		a.Kind, a.URI, a.Body = kind, "file:///t/1.json", []byte("x")
		require.Equal(t, Sealed, stepped(t, at(t, Committing), Seal{Attempt: a}))
	}
}

// The record carries the attempt whole: what a new incarnation resends is byte for byte what was sealed.
func TestMachine_SealIsJournalledWhole(t *testing.T) {
	m := at(t, Committing)
	a := attempt(7, "100")
	parent := int64(41)
	a.Parent, a.Requirements, a.Updates = &parent, json.RawMessage(`[{"type":"x"}]`), json.RawMessage(`[{"action":"y"}]`)
	eff, err := m.Step(Seal{Attempt: a})
	require.NoError(t, err)
	a.Seq = 1
	require.Equal(t, &a, eff.Record.Open)
	require.Equal(t, []Action{{Kind: ActSend, Attempt: &a}}, eff.Actions)
	raw, err := json.Marshal(eff.Record)
	require.NoError(t, err)
	var r Record
	require.NoError(t, json.Unmarshal(raw, &r))
	restored, eff, err := Restore(r, 8)
	require.NoError(t, err)
	require.Equal(t, Resolving, restored.State())
	require.Equal(t, []Action{{Kind: ActResolve, Attempt: &a}}, eff.Actions)
}

func TestRestore_RefusesWhatNoMachineWrote(t *testing.T) {
	for name, edit := range map[string]func(*Record){
		"unknown state":             func(r *Record) { r.State = 42 },
		"negative tasks":            func(r *Record) { r.Tasks = -1 },
		"absurd tasks":              func(r *Record) { r.Tasks = 1 << 40 },
		"task out of range":         func(r *Record) { r.Accepted[0].Task = 9 },
		"task twice":                func(r *Record) { r.Accepted[1].Task = 0 },
		"sealed without an attempt": func(r *Record) { r.Open = nil },
		"attempt without a seal":    func(r *Record) { r.State = Committing },
		"wrong attempt number":      func(r *Record) { r.Open.Seq = 9 },
		"committed without result":  func(r *Record) { r.State, r.Open = Committed, nil },
		"aborted without failure":   func(r *Record) { r.State, r.Open = Aborted, nil },
		"result too early":          func(r *Record) { r.Result = &Result{} },
		"sealed with a task open":   func(r *Record) { r.Accepted = r.Accepted[:1] },
		"writing with all accepted": func(r *Record) { r.State, r.Open = Writing, nil },
	} {
		r := at(t, Sealed).Record()
		open := *r.Open
		r.Open = &open
		edit(&r)
		_, _, err := Restore(r, 8)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
	_, _, err := Restore(at(t, Sealed).Record(), 6) // S65
	require.ErrorIs(t, err, ErrFenced)
}

func TestMachine_OddEvents(t *testing.T) {
	m := at(t, Committing)
	_, err := m.Step(nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = m.Step(&Start{}) // a pointer is no event of the table
	require.Error(t, err)
	_, err = m.Step(&Cancel{})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = Outcome{}.Event(1)
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, Committing, m.State())

	m = at(t, Sealed)
	_, err = m.Step(Refused{Seq: 1, Reason: strings.Repeat("x", 1<<20)})
	require.NoError(t, err)
	require.Less(t, len(m.Failure().Reason), 4096, "reasons of strangers stay small")
}
