package plan

// static plans everything at submission: the sizes of the sources are all that it knows.
type static struct {
	b    *builder
	done bool
}

// Plan implements Planner.
func (s *static) Plan() *Plan { return s.b.plan }

// Next implements Planner.
func (s *static) Next(map[int32]Measure) (Batch, error) {
	if s.done {
		return Batch{}, nil
	}
	s.done = true
	b := s.b
	for _, u := range b.segments {
		b.chooseBroadcast(u, b.smallSource)
	}
	for _, u := range b.segments {
		if u.absorbed {
			continue
		}
		if err := b.place(u); err != nil {
			return Batch{}, err
		}
	}
	return Batch{Stages: b.plan.Stages}, b.check()
}

// smallSource tells whether a unit's rows can be sent to every task, by the size of what it reads.
func (b *builder) smallSource(u *segment) bool {
	return u.placed < 0 && b.estimate(u) <= b.limits.BroadcastBytes
}
