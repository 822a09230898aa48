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

// crowd is several jobs that share attempts, between a scheduler that crashes, a network that delays and repeats, and a table.
type crowd struct {
	t     *rapid.T
	epoch uint64
	jobs  []string
	m     map[string]*Machine
	sent  map[string]bool // groups whose request this incarnation has sent

	// the journal: written in transactions
	records map[string][]byte
	groups  map[string][]byte

	// the table
	last, head int64
	snapshots  map[int64][]string // the jobs of each
	nextID     int64
	flight     []*GroupRecord // copies of requests that may arrive at any time, or never
	shared     int            // snapshots of several jobs
}

const crowdSize = 4

func newCrowd(t *rapid.T) *crowd {
	w := &crowd{
		t: t, epoch: 1, m: map[string]*Machine{}, sent: map[string]bool{}, records: map[string][]byte{}, groups: map[string][]byte{},
		snapshots: map[int64][]string{}, nextID: 1000,
	}
	for i := range crowdSize {
		job := fmt.Sprintf("job%d", i)
		w.jobs, w.m[job] = append(w.jobs, job), New(job, 1)
		w.step(job, Begin{TableUUID: "uuid"})
		w.step(job, Start{})
	}
	return w
}

// step is a step of one job by itself.
func (w *crowd) step(job string, ev Event) bool {
	next := *w.m[job]
	eff, err := next.StepApart(ev)
	if err != nil {
		return false
	}
	w.commit(map[string]Effects{job: eff}, nil, false)
	w.m[job] = &next
	return true
}

// commit is one transaction of the journal.
func (w *crowd) commit(records map[string]Effects, g *GroupRecord, over bool) {
	for job, eff := range records {
		if eff.Record != nil {
			b, err := json.Marshal(eff.Record.Apart())
			require.NoError(w.t, err)
			w.records[job] = b
		}
	}
	if g == nil {
		return
	}
	delete(w.groups, g.ID)
	if !over {
		b, err := json.Marshal(g)
		require.NoError(w.t, err)
		w.groups[g.ID] = b
	}
}

func (w *crowd) in(states ...State) (out []string) {
	for _, j := range w.jobs {
		if slices.Contains(states, w.m[j].State()) {
			out = append(out, j)
		}
	}
	return out
}

func (w *crowd) units(jobs []string) (out []Unit) {
	for _, j := range jobs {
		out = append(out, Unit{Job: j, Marker: "m-" + j, Machine: w.m[j]})
	}
	return out
}

// keep is what a caller does with a step; a crash comes before or after the transaction, never in it.
func (w *crowd) keep(g *GroupRecord, jobs []string, step *GroupStep) {
	if w.dies("before the journal") {
		return
	}
	records := map[string]Effects{}
	for i, j := range jobs {
		records[j] = step.Effects[i]
	}
	w.commit(records, g, step.Over)
	for i, j := range jobs {
		w.m[j] = step.Machines[i]
	}
	w.dies("after the journal")
}

func (w *crowd) dies(when string) bool {
	if rapid.IntRange(0, 19).Draw(w.t, "crash "+when) != 0 {
		return false
	}
	w.crash()
	return true
}

func (w *crowd) crash() {
	w.epoch++
	clear(w.sent)
	for _, j := range w.jobs {
		var r Record
		require.NoError(w.t, json.Unmarshal(w.records[j], &r))
		if r.Open != nil && r.Open.Group != "" {
			require.Nil(w.t, r.Open.Updates, "the request lies in the group's record")
			require.NoError(w.t, w.group(r.Open.Group).Fill(&r))
			require.NotNil(w.t, r.Open.Updates)
		}
		m, eff, err := Restore(r, w.epoch)
		require.NoError(w.t, err)
		w.m[j] = m
		w.commit(map[string]Effects{j: eff}, nil, false)
	}
}

func (w *crowd) group(id string) *GroupRecord {
	g := &GroupRecord{}
	require.Contains(w.t, w.groups, id, "a unit is sealed, and its group is not journalled")
	require.NoError(w.t, json.Unmarshal(w.groups[id], g))
	return g
}

func (g *GroupRecord) jobs() (out []string) {
	for _, u := range g.Units {
		out = append(out, u.Job)
	}
	return out
}

func (w *crowd) seal(t *rapid.T) {
	jobs := rapid.SliceOfNDistinct(rapid.SampledFrom(w.jobs), 1, crowdSize, rapid.ID[string]).Draw(t, "units")
	jobs = slices.DeleteFunc(jobs, func(j string) bool { // C4: before every commit the table is asked for the markers
		for id, landed := range w.snapshots {
			if slices.Contains(landed, j) {
				w.step(j, Found{Version: strconv.FormatInt(id, 10)})
				return true
			}
		}
		return false
	})
	if len(jobs) == 0 {
		return
	}
	w.nextID++
	a := attempt(w.epoch, strconv.FormatInt(w.nextID, 10))
	parent := w.head
	a.SnapshotID, a.Parent, a.SequenceNumber, a.Markers = w.nextID, &parent, w.last+1, nil
	for _, j := range jobs {
		a.Markers = append(a.Markers, "m-"+j)
	}
	g, step, err := SealGroup(a.Version, w.units(jobs), a)
	free := !slices.ContainsFunc(jobs, func(j string) bool { return w.m[j].State() != Committing })
	require.Equal(t, free, err == nil, "it is sealed if and only if each unit may be: %v", err)
	if err == nil {
		w.keep(g, jobs, step)
	}
}

// arrive applies a request as a catalog does.
func (w *crowd) arrive(g *GroupRecord) bool {
	a := g.Attempt
	if w.head != *a.Parent || a.SequenceNumber <= w.last || w.snapshots[a.SnapshotID] != nil {
		return false
	}
	w.head, w.last = a.SnapshotID, a.SequenceNumber
	w.snapshots[a.SnapshotID] = g.jobs()
	if len(g.Units) > 1 {
		w.shared++
	}
	return true
}

func (w *crowd) look(g *GroupRecord) OutcomeKind {
	switch {
	case w.snapshots[g.Attempt.SnapshotID] != nil:
		return OutcomeLanded
	case w.last >= g.Attempt.SequenceNumber:
		return OutcomeDead
	}
	return OutcomeUnknown
}

func (w *crowd) settle(g *GroupRecord, k OutcomeKind) {
	jobs := g.jobs()
	step, err := SettleGroup(g, w.units(jobs), Outcome{Kind: k, Version: g.Attempt.Version})
	require.NoError(w.t, err)
	for i, m := range step.Machines {
		if f := m.Failure(); k == OutcomeRefused && len(jobs) > 1 && f != nil {
			require.True(w.t, f.Cancelled, "%s fails (%s) for what may be another's fault", jobs[i], f.Reason)
		}
	}
	w.keep(g, jobs, step)
}

// send is the broker's part, for one of the groups that are sealed.
func (w *crowd) send(t *rapid.T) {
	if len(w.groups) == 0 {
		t.Skip("nothing is sealed")
	}
	var ids []string
	for id := range w.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	g := w.group(rapid.SampledFrom(ids).Draw(t, "group"))
	first := !w.sent[g.ID] && w.m[g.Units[0].Job].State() == Sealed
	w.sent[g.ID] = true
	if k := w.look(g); !first && k != OutcomeUnknown {
		w.settle(g, k)
		return
	}
	switch rapid.SampledFrom([]string{"answered", "refused", "lost", "in flight"}).Draw(t, "send") {
	case "answered":
		switch {
		case w.arrive(g):
			w.settle(g, OutcomeLanded)
			return
		case first:
			w.settle(g, OutcomeConflict)
			return
		}
	case "refused":
		if first {
			w.settle(g, OutcomeRefused)
			return
		}
	case "lost":
		w.arrive(g)
	case "in flight":
		w.flight = append(w.flight, g)
	}
	w.settle(g, w.look(g))
}

func (w *crowd) check() {
	where := map[string][]int64{}
	for id, jobs := range w.snapshots {
		for _, j := range jobs {
			where[j] = append(where[j], id)
		}
	}
	for _, j := range w.jobs {
		m := w.m[j]
		require.LessOrEqual(w.t, len(where[j]), 1, "%s landed twice", j)
		switch m.State() {
		case Aborted:
			require.Empty(w.t, where[j], "%s says %+v while the table holds its rows", j, m.Failure())
			require.NotContains(w.t, m.Failure().Reason, "refused together", "nobody fails for what others did")
		case Committed:
			require.Len(w.t, where[j], 1, "%s says Committed while the table holds nothing", j)
			require.Equal(w.t, strconv.FormatInt(where[j][0], 10), m.Result().Version)
		case Sealed, Resolving:
			require.Contains(w.t, w.groups, m.Open().Group)
		}
	}
	for id := range w.groups { // all of a group are open, but for those that were found in the table meanwhile
		g := w.group(id)
		for _, u := range g.Units {
			if w.m[u.Job].State() == Committed && slices.Contains(w.snapshots[g.Attempt.SnapshotID], u.Job) {
				continue
			}
			require.NotNil(w.t, w.m[u.Job].Open(), "%s of an open group is %s", u.Job, w.m[u.Job].State())
			require.Equal(w.t, id, w.m[u.Job].Open().Group)
			require.Equal(w.t, g.Attempt.Version, w.m[u.Job].Open().Version)
		}
	}
}

// TestGroup_EachJobExactlyOnceOrNever: whatever crashes, is lost, repeated, delayed, refused or cancelled, each job of a group lands at most once, with all
// others of its snapshot or not at all, and its end says what the table holds (S16, S21, S62, S63, S67, S68).
func TestGroup_EachJobExactlyOnceOrNever(t *testing.T) {
	total, shared := map[State]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newCrowd(t)
		t.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) { w.check() },
			"seal": w.seal,
			"send": w.send,
			"start": func(t *rapid.T) {
				for _, j := range w.in(Ready) {
					w.step(j, Start{})
				}
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "dice") > 0 {
					t.Skip("seldom")
				}
				w.step(rapid.SampledFrom(w.jobs).Draw(t, "job"), Cancel{Reason: "user"})
			},
			"other writer": func(t *rapid.T) {
				w.nextID++
				w.head, w.last = w.nextID, w.last+1
				w.snapshots[w.nextID] = []string{"other" + strconv.FormatInt(w.nextID, 10)}
			},
			"arrival": func(t *rapid.T) {
				if len(w.flight) == 0 {
					t.Skip("nothing in flight")
				}
				w.arrive(rapid.SampledFrom(w.flight).Draw(t, "which"))
			},
			"crash": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "dice") > 0 {
					t.Skip("seldom")
				}
				w.crash()
			},
		})
		for _, j := range w.jobs {
			total[w.m[j].State()]++
		}
		shared += w.shared
	})
	for _, s := range []State{Committed, Aborted, Resolving} { // a simulation that never gets there proves nothing
		require.Positive(t, total[s], "no run reached %s: %v", s, total)
	}
	require.Positive(t, shared, "no snapshot had several jobs")
}
