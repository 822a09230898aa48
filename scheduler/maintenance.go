package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/tableprops"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/schedule"
	"github.com/signet-io/signet/scheduler/sql"
	"github.com/signet-io/signet/scheduler/telemetry"
	"github.com/signet-io/signet/scheduler/upkeep"
)

// expireProcedure is what schedules call, so far the only one.
const expireProcedure = "expire_snapshots"

// maintenance calls procedures by the catalogs' schedules. What is due when, package schedule decides; here its actions become jobs as those of clients are,
// and their ends its events. It keeps nothing durable of its own: the jobs in the journal say after a restart what was done, and what had been committed.
type maintenance struct {
	mu    sync.Mutex
	m     *schedule.Machine // nil: no catalog has a schedule
	todo  []schedule.Action
	wake  chan struct{}
	walks map[string]*tableWalk // of the loop's finds, of which each catalog has one at a time
}

// openMaintenance comes after the jobs of earlier incarnations are known.
func (s *Server) openMaintenance() {
	policies := map[string]schedule.Policy{}
	for name, c := range s.cfg.Catalogs {
		if x := c.Maintenance.ExpireSnapshots; x != (config.Schedule{}) && s.catalogs[name].catalog != nil {
			policies[name] = schedule.Policy{Every: x.Every.Milliseconds(), AfterCommits: x.AfterCommits}
		}
	}
	if len(policies) == 0 {
		return
	}
	u := &s.maintenance
	u.m, u.wake, u.walks = schedule.New(policies), make(chan struct{}, 1), map[string]*tableWalk{}
	type past struct {
		at int64
		e  schedule.Event
	}
	var all []past
	jobs := s.jobsNewestFirst()
	slices.Reverse(jobs)
	for _, j := range jobs {
		j.mu.Lock()
		rec := j.rec
		j.mu.Unlock()
		if e := committedBy(&rec); e != nil {
			all = append(all, past{rec.Finished.UnixMilli(), *e})
		}
		if r := rec.Upkeep; r != nil {
			all = append(all, past{rec.Submitted.UnixMilli(), schedule.Started{Table: tableOf(r.Catalog, r.Ident), Why: schedule.Why(r.Why), Key: r.Key, Slot: r.Slot}})
			if rec.State.Terminal() {
				all = append(all, past{rec.Finished.UnixMilli(), schedule.Ended{Table: tableOf(r.Catalog, r.Ident), Result: resultOf(&rec)}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b past) int { return int(a.at - b.at) })
	for _, p := range all {
		u.m.Restore(p.at, p.e)
	}
}

func failureText(rec *journal.Job) string {
	if rec.Error == nil {
		return string(rec.State)
	}
	return rec.Error.Message
}

func resultOf(rec *journal.Job) schedule.Result {
	if rec.State == journal.StateSuccessful {
		return schedule.Done
	}
	return schedule.Failed
}

// tableOf is a table as schedules name it.
func tableOf(catalogName string, ident []string) schedule.Table {
	b, _ := json.Marshal(ident) //nolint:errchkjson // strings
	return schedule.Table{Catalog: catalogName, Name: string(b)}
}

func identOf(name string) catalog.Ident {
	var id catalog.Ident
	_ = json.Unmarshal([]byte(name), &id) // "" is none
	return id
}

// committedBy is the event of a job that has made a snapshot.
func committedBy(rec *journal.Job) *schedule.Committed {
	if rec.State != journal.StateSuccessful || rec.Write == nil || rec.Landing == nil || rec.Landing.SnapshotID == 0 {
		return nil
	}
	return &schedule.Committed{Table: tableOf(rec.Write.Catalog, append(slices.Clone(rec.Write.Schema), rec.Write.Table)), Snapshot: rec.Landing.SnapshotID}
}

// noteMaintenance tells the schedules what happened.
func (s *Server) noteMaintenance(e schedule.Event) {
	u := &s.maintenance
	if u.m == nil {
		return
	}
	u.mu.Lock()
	before, was := u.m.Next()
	u.todo = append(u.todo, u.m.Step(time.Now().UnixMilli(), e)...)
	next, is := u.m.Next()
	due := len(u.todo) > 0 || next != before || is != was // the loop waits until then
	u.mu.Unlock()
	if due {
		select {
		case u.wake <- struct{}{}:
		default:
		}
	}
}

// noteCommitted is called with every job that ends.
func (s *Server) noteCommitted(rec *journal.Job) {
	if s.maintenance.m == nil {
		return
	}
	if e := committedBy(rec); e != nil {
		s.noteMaintenance(*e)
	}
}

// maintain carries the schedules out until the scheduler stops.
func (s *Server) maintain() {
	u := &s.maintenance
	if u.m == nil {
		return
	}
	for _, j := range s.jobsNewestFirst() { // those that go on after a restart
		j.mu.Lock()
		r, over := j.rec.Upkeep, j.rec.State.Terminal()
		j.mu.Unlock()
		if r != nil && !over {
			s.spawn(func() { s.awaitMaintenance(j, tableOf(r.Catalog, r.Ident)) })
		}
	}
	s.spawn(func() {
		for {
			s.noteMaintenance(schedule.Tick{})
			u.mu.Lock()
			todo := u.todo
			u.todo = nil
			next, timed := u.m.Next()
			u.mu.Unlock()
			for _, a := range todo {
				s.spawn(func() { s.carryOut(a) })
			}
			timer := &time.Timer{}
			if timed {
				timer = time.NewTimer(max(time.Until(time.UnixMilli(next)), time.Millisecond))
			}
			select {
			case <-s.stopping:
			case <-u.wake:
			case <-timer.C:
			}
			if timed {
				timer.Stop()
			}
			select {
			case <-s.stopping:
				return
			default:
			}
		}
	})
}

func (s *Server) carryOut(a schedule.Action) {
	switch a := a.(type) {
	case schedule.Find:
		id, err := s.walkOf(a.Catalog).next(s.ctx, identOf(a.After))
		if err != nil {
			if s.ctx.Err() == nil {
				s.log.Warn("maintenance: the tables cannot be listed; they are later", "catalog", a.Catalog, "error", err)
				s.noteMaintenance(schedule.FindFailed{Catalog: a.Catalog})
			}
			return
		}
		e := schedule.Found{Catalog: a.Catalog}
		if id != nil {
			e.Table = tableOf(a.Catalog, id).Name
		}
		s.noteMaintenance(e)
	case schedule.Run:
		s.callScheduled(a)
	}
}

// callScheduled calls the procedure for one table, if there is anything to do.
func (s *Server) callScheduled(r schedule.Run) {
	at := &target{entry: s.catalogs[r.Table.Catalog], ident: identOf(r.Table.Name), who: config.MaintenancePrincipal, does: toMaintain}
	ended := func(result schedule.Result, word string) {
		s.views.metrics.Maintained(expireProcedure, r.Table.Catalog, word)
		s.noteMaintenance(schedule.Ended{Table: r.Table, Result: result})
	}
	t, err := at.entry.catalog.Load(s.ctx, at.ident)
	switch {
	case s.ctx.Err() != nil:
		return
	case errors.Is(err, catalog.ErrNotFound):
		ended(schedule.Gone, telemetry.MaintenanceGone)
		return
	case err != nil:
		s.log.Warn("maintenance failed and is tried again later", "procedure", expireProcedure, "table", at.String(), "error", err)
		ended(schedule.Failed, telemetry.MaintenanceFailed)
		return
	case upkeep.Excluded(t.Metadata.Properties()):
		ended(schedule.Nothing, telemetry.MaintenanceExcluded)
		return
	case !upkeep.Expires(t.Metadata, time.Now()):
		ended(schedule.Nothing, telemetry.MaintenanceNothing)
		return
	}
	j, existing, err := s.submit(config.MaintenancePrincipal, &schedulerv1.SubmitRequest{
		Sql: fmt.Sprintf("CALL system.%s(table => %s)", expireProcedure, sql.QuoteString(at.String())), IdempotencyKey: scheduledKey(r),
	}, func(rec *journal.Job) {
		rec.Upkeep = &journal.Upkeep{Catalog: r.Table.Catalog, Ident: at.ident, Why: string(r.Why), Key: r.Key, Slot: r.Slot}
	})
	if err != nil {
		if !s.isStopping() {
			s.log.Warn("maintenance cannot begin and is tried again later", "procedure", expireProcedure, "table", at.String(), "error", err)
			ended(schedule.Failed, telemetry.MaintenanceFailed)
		}
		return
	}
	s.log.Info("maintenance", "procedure", expireProcedure, "table", at.String(), "due_by", string(r.Why), "job", j.id, "existing", existing)
	s.awaitMaintenance(j, r.Table)
}

// scheduledKey names a run for good: a scheduler that died after it had begun one begins no second.
func scheduledKey(r schedule.Run) string {
	return expireProcedure + "/" + hashParts("maintenance", r.Table.Catalog, r.Table.Name)[:32] + "/" + r.Key
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return s.ctx.Err() != nil
	}
}

// awaitMaintenance tells how a job of a schedule ended. One that a stop leaves open goes on after the next start.
func (s *Server) awaitMaintenance(j *job, t schedule.Table) {
	select {
	case <-j.done:
	case <-s.ctx.Done():
		return
	}
	j.mu.Lock()
	rec := j.rec
	j.mu.Unlock()
	if !rec.State.Terminal() {
		return
	}
	result, word := resultOf(&rec), telemetry.MaintenanceDone
	if result == schedule.Failed {
		word = telemetry.MaintenanceFailed
		s.log.Warn("maintenance failed and is tried again later", "procedure", expireProcedure, "statement", rec.SQL, "job", j.id, "error", failureText(&rec))
	}
	s.views.metrics.Maintained(expireProcedure, t.Catalog, word)
	s.noteMaintenance(schedule.Ended{Table: t, Result: result})
}

// keptOut tells why a scheduled job finds its table not to be maintained after all: the job may have waited. One that has begun goes on to its end.
func (s *Server) keptOut(j *job, at *target) (string, error) {
	if !j.upkeep {
		return "", nil
	}
	var d *journal.Duty
	err := s.journal.View(func(tx *journal.Tx) (err error) {
		d, err = expiryOf(tx, j.id)
		return err
	})
	if err != nil || d != nil {
		return "", err
	}
	if s.cfg.Catalogs[at.entry.name].Maintenance.ExpireSnapshots == (config.Schedule{}) {
		return "catalog " + at.entry.name + " has no schedule for it any more", nil
	}
	t, err := at.entry.catalog.Load(j.ctx, at.ident)
	if err != nil {
		return "", catalogError(err, "table "+at.String())
	}
	if upkeep.Excluded(t.Metadata.Properties()) {
		return "its property " + tableprops.ExpireSnapshots + " or gc.enabled is false", nil
	}
	return "", nil
}
