package plan

import "fmt"

// adaptive plans a stage when all that it reads is measured.
type adaptive struct {
	b     *builder
	begun bool
	done  bool
}

// patience is how much larger than a broadcast a side of a join may look for the other side to wait until it is measured: filters and
// aggregates make most of what is read disappear.
const patience = 32

// Plan implements Planner.
func (a *adaptive) Plan() *Plan { return a.b.plan }

// Next implements Planner.
func (a *adaptive) Next(measured map[int32]Measure) (Batch, error) {
	b := a.b
	if a.done {
		return Batch{}, nil
	}
	b.measured = measured
	if !a.begun {
		a.begun = true
		b.fanOut = 4 // small partitions are joined again when they are measured
		for _, u := range b.segments {
			b.chooseBroadcast(u, b.smallSource)
		}
	}
	for _, u := range b.segments {
		b.chooseBroadcast(u, a.smallMeasured)
	}
	from := len(b.plan.Stages)
	for _, u := range b.segments {
		if u.absorbed || u.placed >= 0 || !a.ready(u) || a.waits(u) {
			continue
		}
		if err := b.place(u); err != nil {
			return Batch{}, err
		}
	}
	if err := b.finishWrite(); err != nil {
		return Batch{}, err
	}
	if len(b.plan.Stages) == from {
		return Batch{}, fmt.Errorf("no stage can be planned after %d of %d", from, len(b.segments))
	}
	b.plan.later = b.unplaced()
	a.done = len(b.plan.later) == 0
	return Batch{Stages: b.plan.Stages[from:], More: !a.done}, b.check()
}

// ready: everything that the unit reads was measured before this batch.
func (a *adaptive) ready(u *segment) bool {
	for _, e := range u.edges {
		if e.from == nil {
			continue
		}
		if e.from.placed < 0 {
			return false
		}
		if _, ok := a.b.measured[e.from.placed]; !ok {
			return false
		}
	}
	return true
}

// waits: the unit need not run at all if the other side of its reader's join turns out to be small. Of two sides only one waits, for the
// one that looks smaller.
func (a *adaptive) waits(u *segment) bool {
	b := a.b
	for _, r := range u.readers {
		if r.choice != nil || r.placed >= 0 {
			continue
		}
		best, limit := int32(-1), b.limits.BroadcastBytes*patience
		for _, alt := range r.query.GetBroadcasts() {
			other := b.byIndex(alt.GetBroadcasts())
			if other == nil || !b.absorbable(b.byIndex(alt.GetAbsorbs()), r) || other.placed >= 0 || other.absorbed {
				continue
			}
			if size := b.estimate(other); size <= limit {
				best, limit = alt.GetAbsorbs(), size
			}
		}
		if best >= 0 && b.byIndex(best) == u {
			return true
		}
	}
	return false
}

// smallMeasured tells whether a unit's rows can be sent to every task, by their measure.
func (a *adaptive) smallMeasured(u *segment) bool {
	if u.placed < 0 {
		return false
	}
	m, ok := a.b.measured[u.placed]
	return ok && m.Total() <= a.b.limits.BroadcastBytes
}
