package coordinator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Machine is the commit of one job.
type Machine struct {
	r        Record      // without Accepted
	accepted []*Accepted // by task; entries never change, the slice is copied on write
	missing  int         // tasks without an accepted manifest
	// paths says which attempt brought a path. Copies share it: an entry of a dropped copy names an attempt that never
	// came to anything, and only another attempt with the same path would be refused for it.
	paths map[pathHash]string
}

type pathHash [16]byte

func hashPath(p string) pathHash {
	sum := sha256.Sum256([]byte(p))
	return pathHash(sum[:16])
}

// New returns the machine of a job that has just been planned.
func New(jobID string, epoch uint64) *Machine {
	return &Machine{r: Record{JobID: jobID, Epoch: epoch}, paths: map[pathHash]string{}}
}

// Step takes one event. On an error nothing has changed.
func (m *Machine) Step(ev Event) (Effects, error) {
	eff, err := m.StepApart(ev)
	if eff.Record != nil {
		eff.Record.Accepted = m.accepts()
	}
	return eff, err
}

// StepApart is Step for journals that store accepted manifests one by one: Record.Accepted is empty unless the state is final, and
// Effects.Accepted is the entry to add.
func (m *Machine) StepApart(ev Event) (Effects, error) {
	if ev == nil {
		return Effects{State: m.r.State}, fmt.Errorf("job %s: %w: nil", m.r.JobID, ErrInvalid)
	}
	c := rule(m.r.State, ev.kind())
	if c.deny != nil {
		return Effects{State: m.r.State}, fmt.Errorf("job %s: %s while %s: %w", m.r.JobID, ev.kind(), m.r.State, c.deny(m))
	}
	s := step{m: m}
	if err := c.do(&s, ev); err != nil {
		return Effects{State: m.r.State}, fmt.Errorf("job %s: %s while %s: %w", m.r.JobID, ev.kind(), m.r.State, err)
	}
	return s.effects(), nil
}

// step collects what one event changes.
type step struct {
	m       *Machine
	changed bool
	entry   *Accepted
	actions []Action
}

func (s *step) effects() Effects {
	e := Effects{State: s.m.r.State, Actions: s.actions, Accepted: s.entry}
	if s.changed {
		r := s.m.record()
		if r.State.Final() {
			r.Accepted = s.m.accepts()
		}
		e.Record = &r
	}
	return e
}

func (s *step) to(st State) { s.m.r.State, s.changed = st, true }

func (s *step) act(k ActionKind) { s.actions = append(s.actions, Action{Kind: k}) }

func (s *step) actOn(k ActionKind, a *Attempt) {
	s.actions = append(s.actions, Action{Kind: k, Attempt: a})
}

// State returns where the commit stands.
func (m *Machine) State() State { return m.r.State }

// Epoch returns the incarnation that the machine belongs to.
func (m *Machine) Epoch() uint64 { return m.r.Epoch }

// CancelPending reports whether a cancel waits for the outcome of a sealed attempt.
func (m *Machine) CancelPending() bool { return m.r.CancelPending }

// Open returns the sealed attempt, or nil. It is not to be changed.
func (m *Machine) Open() *Attempt { return m.r.Open }

// Result returns how the job committed, or nil.
func (m *Machine) Result() *Result { return m.r.Result }

// Failure returns how the job was aborted, or nil.
func (m *Machine) Failure() *Failure { return m.r.Failure }

// Seals returns the number of attempts that were let through to the commit point.
func (m *Machine) Seals() int { return m.r.Seals }

// Winner returns the accepted manifest of a task.
func (m *Machine) Winner(task int) (Accepted, bool) {
	if task < 0 || task >= len(m.accepted) || m.accepted[task] == nil {
		return Accepted{}, false
	}
	return *m.accepted[task], true
}

// Totals sums the accepted manifests.
func (m *Machine) Totals() Totals {
	var t Totals
	for _, a := range m.accepted {
		if a != nil {
			t = t.add(a.Totals)
		}
	}
	return t
}

// Digest is the sha256 over the accepted manifests' digests in task order; it names the content of the job's unit.
func (m *Machine) Digest() []byte {
	h := sha256.New()
	for _, a := range m.accepted {
		if a != nil {
			b, err := hex.DecodeString(a.Digest)
			if err != nil {
				b = []byte(a.Digest) // Accept takes hex only; a record of other origin still gets a stable digest
			}
			h.Write(b)
		}
	}
	return h.Sum(nil)
}

// HasPath reports whether another attempt than the given one brought the path.
func (m *Machine) HasPath(attempt, path string) bool {
	owner, ok := m.paths[hashPath(path)]
	return ok && owner != attempt
}

// Index tells a restored machine the paths of an accepted manifest, so that it refuses them from others.
func (m *Machine) Index(attempt string, paths []string) {
	for _, p := range paths {
		m.paths[hashPath(p)] = attempt
	}
}
