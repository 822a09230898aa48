package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A group is one attempt that carries the units of several jobs: one snapshot, with one marker each. Every unit keeps its own Machine, and what is
// decided for one of them alone (a cancel, a lost task) goes there. What is decided for all of them goes through SealGroup and SettleGroup, which
// step all machines or none, and whose results the caller persists in one transaction.

// Unit is one job's share of a group.
type Unit struct {
	Job     string
	Marker  string
	Machine *Machine // as it stands; it is not changed
}

// GroupUnit is a unit of a sealed group.
type GroupUnit struct {
	Job    string `json:"job"`
	Marker string `json:"marker"`
	Seq    int    `json:"seq"` // of the attempt, as the unit's machine counts
}

// GroupRecord is the seal of a group: what is sent, and for whom. It is kept until the attempt has its end.
type GroupRecord struct {
	ID      string      `json:"id"`
	Attempt Attempt     `json:"attempt"` // of the first unit, with the request
	Units   []GroupUnit `json:"units"`
}

// GroupStep is what a step of a group asks of its caller: persist, in one transaction, every Effects.Record and the group's record, or its end;
// keep the machines; then take the actions.
type GroupStep struct {
	Machines []*Machine // in the order of the units: copies where the step changed them, otherwise what was given
	Effects  []Effects  // in the order of the units; the zero value where nothing changed
	Over     bool       // the attempt has its end: the group's record is to be forgotten
}

// LeftError refuses a seal because units are not part of the group any more. Nothing was sealed: the others go without them.
type LeftError struct {
	Jobs map[string]error // by job: why
}

func (e *LeftError) Error() string {
	var out []string
	for job, err := range e.Jobs {
		out = append(out, fmt.Sprintf("job %s: %v", job, err))
	}
	slices.Sort(out)
	return "units have left the group: " + strings.Join(out, "; ")
}

// Unwrap makes it an ErrFenced, and no AlreadyError of one unit: what is true of one is not of all.
func (*LeftError) Unwrap() error { return ErrFenced }

// SealGroup seals one attempt for all units, or, with an error, for none. A *LeftError names units that their machines do not let through.
func SealGroup(id string, units []Unit, a Attempt) (*GroupRecord, *GroupStep, error) {
	if id == "" || len(units) == 0 {
		return nil, nil, fmt.Errorf("%w: a group without id or units", ErrInvalid)
	}
	rec, step := &GroupRecord{ID: id}, newGroupStep(units)
	left := map[string]error{}
	for i, u := range units {
		if !slices.Contains(a.Markers, u.Marker) || slices.ContainsFunc(rec.Units, func(o GroupUnit) bool { return o.Job == u.Job || o.Marker == u.Marker }) {
			return nil, nil, fmt.Errorf("%w: the attempt does not carry the marker of job %s, or it comes twice", ErrInvalid, u.Job)
		}
		one := a
		one.Group = id
		next := *u.Machine
		eff, err := next.StepApart(Seal{Attempt: one})
		if err != nil && mutated("group-seals-the-rest") {
			continue
		}
		if errors.Is(err, ErrInvalid) { // the request's fault, and so everybody's
			return nil, nil, err
		}
		if err != nil {
			left[u.Job] = err
			continue
		}
		step.Machines[i], step.Effects[i] = &next, eff
		rec.Units = append(rec.Units, GroupUnit{Job: u.Job, Marker: u.Marker, Seq: next.Open().Seq})
	}
	if len(left) > 0 {
		return nil, nil, &LeftError{Jobs: left}
	}
	if len(a.Markers) != len(units) {
		return nil, nil, fmt.Errorf("%w: the attempt carries %d markers for %d units", ErrInvalid, len(a.Markers), len(units))
	}
	rec.Attempt = *step.Machines[0].Open()
	return rec, step, nil
}

func newGroupStep(units []Unit) *GroupStep {
	step := &GroupStep{Machines: make([]*Machine, len(units)), Effects: make([]Effects, len(units))}
	for i, u := range units {
		step.Machines[i] = u.Machine
	}
	return step
}

// SettleGroup gives the one outcome of a group's attempt to all its units. A unit whose attempt has its end already is left as it is, so that an
// outcome may be reported again.
func SettleGroup(rec *GroupRecord, units []Unit, o Outcome) (*GroupStep, error) {
	if o.Kind == OutcomeRefused && len(rec.Units) > 1 && !mutated("group-refused-together") {
		// It says which request is refused, not whose fault that is: each unit may try without the others.
		o.Kind, o.Reason = OutcomeConflict, "refused together with other jobs: "+o.Reason
	}
	step := newGroupStep(units)
	step.Over = o.Kind != OutcomeUnknown
	for i, u := range units {
		seq := rec.seq(u.Job)
		if seq == 0 {
			return nil, fmt.Errorf("%w: job %s is no unit of group %s", ErrInvalid, u.Job, rec.ID)
		}
		if open := u.Machine.Open(); open == nil || open.Group != rec.ID || i > 0 && mutated("group-settles-one") {
			continue
		}
		ev, err := o.forUnit(u.Marker).Event(seq)
		if err != nil {
			return nil, err
		}
		next := *u.Machine
		eff, err := next.StepApart(ev)
		if err != nil {
			return nil, err
		}
		step.Machines[i], step.Effects[i] = &next, eff
	}
	return step, nil
}

// forUnit is the outcome as it is one unit's: markers that were found may be in different snapshots.
func (o Outcome) forUnit(marker string) Outcome {
	if o.Versions != nil {
		o.Version = o.Versions[marker]
	}
	return o
}

func (g *GroupRecord) seq(job string) int {
	for _, u := range g.Units {
		if u.Job == job {
			return u.Seq
		}
	}
	return 0
}

// Apart is the record without the request of an attempt that a group's record has.
func (r Record) Apart() Record {
	if r.Open != nil && r.Open.Group != "" {
		open := *r.Open
		open.Requirements, open.Updates, open.Body = nil, nil, nil
		r.Open = &open
	}
	return r
}

// Fill is the inverse of Record.Apart.
func (g *GroupRecord) Fill(r *Record) error {
	switch {
	case r.Open == nil || r.Open.Group != g.ID:
		return fmt.Errorf("%w of job %q: its open attempt is not of group %s", ErrCorrupt, r.JobID, g.ID)
	case g.seq(r.JobID) != r.Open.Seq || g.Attempt.Version != r.Open.Version:
		return fmt.Errorf("%w of job %q: attempt %d, version %s of group %s, which has %d, %s", ErrCorrupt, r.JobID, r.Open.Seq, r.Open.Version, g.ID, g.seq(r.JobID), g.Attempt.Version)
	}
	open := *r.Open
	open.Requirements, open.Updates, open.Body = g.Attempt.Requirements, g.Attempt.Updates, g.Attempt.Body
	r.Open = &open
	return nil
}
