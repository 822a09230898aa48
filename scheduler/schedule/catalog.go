package schedule

import (
	"maps"
	"slices"
	"strconv"

	"github.com/signet-io/signet/internal/mutant"
)

// catalog is one with a policy.
type catalog struct {
	name   string
	policy Policy
	tables map[string]*table // those about which there is something to remember
	queue  []string          // of them, those that are due whatever the walk does, in that order
	failed []string          // of them, those that failed and are not due yet
	busy   int               // runs that are not the walk's

	// The walk through all tables, once in a period.
	slot    int64 // beginning of the period
	began   bool  // there was one
	walking bool  // its end is not reached
	asked   bool  // for the next table
	after   string
	at      string // the table that was found last, until it needs nothing more
	fails   int    // in a row, to find tables
	wait    int64  // until when no table is asked for
}

type table struct {
	commits int     // since the last run began
	seen    []int64 // their snapshots, the newest
	queued  bool
	run     *Run // under way
	walk    bool // it is the walk's
	begun   int64
	again   *Run // it failed, and is to be repeated
	fails   int  // in a row
	wait    int64
	done    int64 // when the last run that was not the walk's, and went well, began
}

func (c *catalog) table(name string) *table {
	t := c.tables[name]
	if t == nil {
		t = &table{}
		c.tables[name] = t
	}
	return t
}

// forget lets go of a table about which there is nothing to remember.
func (c *catalog) forget(name string) {
	t := c.tables[name]
	if t != nil && t.commits == 0 && !t.queued && t.run == nil && t.again == nil && (c.policy.Every <= 0 || t.done == 0 || t.done < c.slot) {
		delete(c.tables, name)
	}
}

func (c *catalog) committed(name string, snapshot int64) {
	if c.policy.AfterCommits <= 0 {
		return
	}
	t := c.table(name)
	if slices.Contains(t.seen, snapshot) {
		return
	}
	if t.seen = append(t.seen, snapshot); len(t.seen) > remembered {
		t.seen = t.seen[1:]
	}
	t.commits++
	c.enqueue(name, t)
}

// enqueue makes a table due if its commits ask for it. One that has failed comes back by itself.
func (c *catalog) enqueue(name string, t *table) {
	if c.policy.AfterCommits > 0 && t.commits >= c.policy.AfterCommits && !t.queued && t.run == nil && t.again == nil {
		t.queued = true
		c.queue = append(c.queue, name)
	}
}

func (c *catalog) dropped(name string) {
	if t := c.tables[name]; t != nil && t.run == nil { // Ended comes for one that runs
		c.remove(name)
	}
}

func (c *catalog) remove(name string) {
	delete(c.tables, name)
	is := func(n string) bool { return n == name }
	c.queue, c.failed = slices.DeleteFunc(c.queue, is), slices.DeleteFunc(c.failed, is)
}

// take gives the runs that are due whatever the walk does.
func (c *catalog) take(now int64) []Action {
	c.failed = slices.DeleteFunc(c.failed, func(name string) bool {
		t := c.tables[name]
		if t.wait > now {
			return false
		}
		if !t.queued {
			t.queued = true
			c.queue = append(c.queue, name)
		}
		return true
	})
	var out []Action
	for len(c.queue) > 0 && c.busy < atOnce {
		name := c.queue[0]
		c.queue = c.queue[1:]
		t := c.tables[name]
		if t.queued = false; t.run != nil && !mutant.On("schedule/two-runs") || t.again != nil && t.wait > now {
			continue // the walk was faster
		}
		c.busy++
		r := Run{Table: Table{c.name, name}, Why: ByCommits}
		if n := len(t.seen); n > 0 {
			r.Key = "commits/" + strconv.FormatInt(t.seen[n-1], 10)
		}
		out = append(out, t.begin(r, now))
	}
	return out
}

// begin starts a run, or repeats the one that failed.
func (t *table) begin(r Run, now int64) Run {
	if t.again != nil {
		r = *t.again
	}
	t.run, t.again, t.begun, t.commits = &r, nil, now, 0
	return r
}

// walk goes on through all tables.
func (c *catalog) walk(now int64) Action {
	if c.policy.Every <= 0 || c.asked {
		return nil
	}
	if c.at != "" {
		switch t := c.table(c.at); {
		case t.walk:
			return nil
		case t.run == nil && t.again == nil && (t.done == 0 || t.done < c.slot):
			t.walk = true
			return t.begin(Run{Table: Table{c.name, c.at}, Why: ByPeriod, Key: "period/" + strconv.FormatInt(c.slot, 10), Slot: c.slot}, now)
		}
		c.forget(c.at)
		c.at = ""
	}
	if slot := now - now%c.policy.Every; !c.walking && (!c.began || slot > c.slot) {
		c.slot, c.began, c.walking, c.after = slot, true, true, ""
		for _, name := range slices.Collect(maps.Keys(c.tables)) {
			c.forget(name)
		}
	}
	if !c.walking || c.wait > now {
		return nil
	}
	c.asked = true
	return Find{Catalog: c.name, After: c.after}
}

func (c *catalog) found(name string) {
	if c.asked {
		c.asked, c.fails, c.after, c.at, c.walking = false, 0, name, name, name != ""
	}
}

func (c *catalog) findFailed(now int64) {
	if c.asked {
		c.asked = false
		c.fails++
		c.wait = now + backoff(c.fails)
	}
}

// started takes over a run of an earlier incarnation, and the walk where it stood.
func (c *catalog) started(e Started, now int64) {
	t := c.table(e.Table.Name)
	if t.run != nil || mutant.On("schedule/restart-forgets") {
		return
	}
	c.remove(e.Table.Name) // from what waits
	c.tables[e.Table.Name] = t
	t.queued, t.again = false, nil
	t.begin(Run(e), now)
	if e.Why != ByPeriod || c.policy.Every <= 0 || c.began && e.Slot < c.slot {
		c.busy++
		return
	}
	t.walk = true
	c.slot, c.began, c.walking, c.after, c.at = e.Slot, true, true, e.Table.Name, e.Table.Name
}

func (c *catalog) ended(name string, r Result, now int64) {
	t := c.tables[name]
	if t == nil || t.run == nil {
		return
	}
	run := t.run
	t.run = nil
	if !t.walk {
		c.busy--
	}
	if c.at == name {
		c.at = ""
	}
	switch {
	case r == Gone:
		c.remove(name)
		return
	case r == Failed:
		t.fails++
		t.again, t.wait = run, now+backoff(t.fails)
		c.failed = append(c.failed, name)
	case !t.walk:
		t.done = t.begun
		fallthrough
	default:
		t.fails, t.wait = 0, 0
	}
	t.walk = false
	c.enqueue(name, t) // by what was committed meanwhile
	c.forget(name)
}
