package schedule

import (
	"maps"
	"slices"

	"github.com/signet-io/signet/internal/mutant"
)

// Times are in milliseconds, instants since 1970.
const (
	base    int64 = 60 * 1000
	longest int64 = 6 * 3600 * 1000
	// atOnce is how many runs that commits asked for a catalog may have at one time.
	atOnce = 2
	// remembered is how many snapshots of a table are known again: those of one commit are told for each of its jobs.
	remembered = 16
)

// Policy of a catalog. Zero values are off.
type Policy struct {
	Every        int64 // ms
	AfterCommits int
}

// Table is one table of a catalog. What its name is made of, and the order of names, are the caller's.
type Table struct{ Catalog, Name string }

// Machine is the state. It belongs to one goroutine at a time.
type Machine struct {
	catalogs map[string]*catalog
	now      int64
}

// New makes a machine. Catalogs without a policy are unknown to it.
func New(policies map[string]Policy) *Machine {
	m := &Machine{catalogs: map[string]*catalog{}}
	for name, p := range policies {
		if p.Every > 0 || p.AfterCommits > 0 {
			m.catalogs[name] = &catalog{name: name, policy: p, tables: map[string]*table{}}
		}
	}
	return m
}

// Restore takes in what an earlier incarnation saw, in the order of time. It asks for nothing: the first Step does.
func (m *Machine) Restore(now int64, e Event) { m.apply(now, e) }

// Step takes in an event and gives the actions that are due.
func (m *Machine) Step(now int64, e Event) []Action {
	m.apply(now, e)
	var out []Action
	for _, name := range slices.Sorted(maps.Keys(m.catalogs)) {
		c := m.catalogs[name]
		out = append(out, c.take(m.now)...)
		if a := c.walk(m.now); a != nil {
			out = append(out, a)
		}
	}
	return out
}

// apply changes the state. A clock that goes back stands still here.
func (m *Machine) apply(now int64, e Event) {
	m.now = max(m.now, now)
	of := func(name string, do func(*catalog)) {
		if c := m.catalogs[name]; c != nil {
			do(c)
		}
	}
	switch e := e.(type) {
	case Committed:
		of(e.Table.Catalog, func(c *catalog) { c.committed(e.Table.Name, e.Snapshot) })
	case Dropped:
		of(e.Table.Catalog, func(c *catalog) { c.dropped(e.Table.Name) })
	case Found:
		of(e.Catalog, func(c *catalog) { c.found(e.Table) })
	case FindFailed:
		of(e.Catalog, func(c *catalog) { c.findFailed(m.now) })
	case Started:
		of(e.Table.Catalog, func(c *catalog) { c.started(e, m.now) })
	case Ended:
		of(e.Table.Catalog, func(c *catalog) { c.ended(e.Table.Name, e.Result, m.now) })
	}
}

// Next is when a Tick is due if nothing happens before; false: never.
func (m *Machine) Next() (at int64, ok bool) {
	earliest := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, c := range m.catalogs {
		switch {
		case c.policy.Every <= 0 || c.asked || c.at != "":
		case c.walking || !c.began:
			earliest(c.wait)
		default:
			earliest(c.slot + c.policy.Every)
		}
		for _, name := range c.failed {
			earliest(c.tables[name].wait)
		}
	}
	return at, ok
}

func backoff(fails int) int64 {
	if mutant.On("schedule/no-backoff") {
		return 0
	}
	return min(base<<min(fails-1, 20), longest)
}
