package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
)

// groupKey is equal for commits that may share a snapshot: appends to one table under the same write spec. Empty: this one may not.
func (w *writeState) groupKey(sink *sinkv1.DescribeResponse, staged *sinkv1.StageResponse) string {
	if w.mode != sinkv1.WriteMode_WRITE_MODE_APPEND || w.target.entry.catalog != nil && w.spec.FormatVersion == 1 || w.spec.WapId != "" || w.spec.GetAddsFiles() || refBytes(staged) > maxGroupBytes/4 ||
		!slices.Contains(sink.GetCapabilities(), sinkv1.Capability_CAPABILITY_GROUP_COMMIT) {
		return ""
	}
	spec := proto.CloneOf(w.spec)
	spec.BaseVersion, spec.Warnings = "", nil // where each job found the table
	b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func refBytes(staged *sinkv1.StageResponse) int {
	n := 0
	for _, r := range staged.GetRefs() {
		n += len(r.GetData())
	}
	return n
}

// commitTurn makes the commits of one turn, together if there are several.
func (s *Server) commitTurn(turn []*queuedCommit) {
	defer func() {
		if p := recover(); p != nil { // a defect here must not take the other jobs along
			s.log.Error("commit panicked", "panic", p, "stack", stack())
			for _, c := range turn {
				select {
				case <-c.done:
				default:
					c.finish(fail(codeInternal, "this is a defect; the scheduler's log has the stack", "internal error: %v", p))
				}
			}
		}
	}()
	ctx, stop := turnContext(turn)
	defer stop()
	if err := s.commitPool.Acquire(ctx, 1); err != nil { // after the table's turn: who waits for one holds no place in the other
		for _, c := range turn {
			c.finish(cmp.Or(context.Cause(c.ctx), err))
		}
		return
	}
	defer s.commitPool.Release(1)
	for _, c := range turn {
		c.w.job.timed("queue", c.since)
	}
	s.commitTogether(ctx, turn)
}

// turnContext ends when no job of the turn wants to commit any more.
func turnContext(turn []*queuedCommit) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(turn[0].ctx))
	var mu sync.Mutex
	left := len(turn)
	stops := make([]func() bool, 0, len(turn))
	for _, c := range turn {
		stops = append(stops, context.AfterFunc(c.ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel(context.Cause(c.ctx))
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// commitTogether commits for several jobs with one snapshot. Jobs that leave do not hold up the others; where the commit is refused, its halves are
// tried by themselves, so that it fails only for those whose fault it is.
func (s *Server) commitTogether(ctx context.Context, units []*queuedCommit) {
	for {
		units = s.stillThere(units)
		switch len(units) {
		case 0:
			return
		case 1:
			c := units[0]
			if !c.begin() {
				c.finish(context.Cause(c.ctx))
				return
			}
			c.finish(s.commitAlone(c))
			return
		}
		left, res, err := s.commitGroup(ctx, units)
		if len(left) == 0 {
			s.judgeGroup(ctx, units, res, err)
			return
		}
		units = slices.DeleteFunc(units, func(c *queuedCommit) bool {
			why := left[c.w.job.id]
			if why != nil {
				c.finish(why)
			}
			return why != nil
		})
	}
}

// stillThere takes out the units of jobs that do not want to commit any more, or are decided.
func (s *Server) stillThere(units []*queuedCommit) []*queuedCommit {
	return slices.DeleteFunc(slices.Clone(units), func(c *queuedCommit) bool {
		if err := context.Cause(c.ctx); err != nil {
			c.finish(err)
			return true
		}
		return false
	})
}

// judgeGroup tells each job what the answer to the group's commit means for it.
func (s *Server) judgeGroup(ctx context.Context, units []*queuedCommit, res *sinkv1.CommitResponse, err error) {
	refused := err == nil && res.Outcome == sinkv1.Outcome_OUTCOME_PERMANENT
	if refused && !slices.ContainsFunc(units, func(c *queuedCommit) bool { return c.w.isFinal() }) {
		s.log.Warn("a commit for several jobs is refused; its halves are tried by themselves", "table", units[0].w.target.String(), "jobs", len(units), "reason", res.Message)
		half := len(units) / 2
		s.commitTogether(ctx, units[:half])
		s.commitTogether(ctx, units[half:])
		return
	}
	for _, c := range units {
		if err != nil {
			c.finish(err)
			continue
		}
		c.finish(s.judge(c.w, res))
	}
}

// commitGroup calls the sink's Commit once for several jobs. left are those that may not be part of it any more; then nothing was sent.
func (s *Server) commitGroup(ctx context.Context, units []*queuedCommit) (left map[string]error, res *sinkv1.CommitResponse, err error) {
	if err := fault.Hit("scheduler.group.before-commit"); err != nil {
		return nil, nil, err
	}
	g := &groupGate{s: s}
	totals := &sinkv1.Totals{}
	var adopted, markers []string
	summaries := make([]map[string]string, 0, len(units))
	for _, c := range units {
		g.writes = append(g.writes, c.w)
		c.w.keepCreated(c.w.lease)
		adopted = append(adopted, c.w.adopted()...)
		markers = append(markers, c.w.job.rec.Marker)
		addTotals(totals, c.w.totals())
		summaries = append(summaries, c.w.summary())
	}
	slices.SortFunc(g.writes, func(a, b *writeState) int { return cmp.Compare(a.job.id, b.job.id) })
	spec, err := units[0].w.commitLease(ctx, adopted)
	if err != nil {
		return nil, nil, err
	}
	spec.Gate, spec.Markers, spec.Totals, spec.Summary = g, markers, totals, summaries
	spec.KeepMarkers = slices.DeleteFunc(spec.KeepMarkers, func(m string) bool { return slices.Contains(markers, m) })
	lease, res, err := s.callCommit(ctx, spec, units)
	if lease != nil {
		lease.Close()
		s.spawn(func() { s.sweepGroup(g, lease, adopted) })
	}
	return g.out(), res, err
}

func addTotals(sum, t *sinkv1.Totals) {
	sum.Files, sum.Rows, sum.Bytes = sum.Files+t.Files, sum.Rows+t.Rows, sum.Bytes+t.Bytes
}

// groupGate is the coordinators of several jobs as the broker sees them. What is decided for all is one record, in one synced transaction.
type groupGate struct {
	s      *Server
	writes []*writeState // in the order in which they are locked

	mu    sync.Mutex
	rec   *coordinator.GroupRecord // the newest seal
	seals int
	left  map[string]error
}

// lock locks all writes.
func (g *groupGate) lock() (units []coordinator.Unit, unlock func()) {
	for _, w := range g.writes {
		w.mu.Lock()
		units = append(units, coordinator.Unit{Job: w.job.id, Marker: w.job.rec.Marker, Machine: w.machine})
	}
	return units, func() {
		for _, w := range g.writes {
			w.mu.Unlock()
		}
	}
}

// out are the jobs that were refused at the seal.
func (g *groupGate) out() map[string]error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left
}

// Seal implements broker.Gate.
func (g *groupGate) Seal(_ context.Context, a coordinator.Attempt) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.Epoch = g.s.journal.Epoch()
	if err := fault.Hit("scheduler.group.before-seal"); err != nil {
		return 0, err
	}
	units, unlock := g.lock()
	defer unlock()
	rec, step, err := coordinator.SealGroup(uuid.NewString(), units, a)
	if err != nil {
		if left := (*coordinator.LeftError)(nil); errors.As(err, &left) {
			g.left = left.Jobs
		}
		return 0, err
	}
	if err := g.s.journal.Update(func(tx *journal.Tx) error { return putGroup(tx, rec, step) }); err != nil {
		return 0, err
	}
	g.become(step)
	g.rec = rec
	g.seals++
	if err := fault.Hit("scheduler.group.after-seal"); err != nil {
		return 0, err
	}
	return g.seals, nil
}

// become keeps the machines of a durable step. Called with the writes locked.
func (g *groupGate) become(step *coordinator.GroupStep) {
	for i, w := range g.writes {
		w.become(step.Machines[i])
	}
}

// putGroup writes the seal of a group, or its end, and the records of its units.
func putGroup(tx *journal.Tx, rec *coordinator.GroupRecord, step *coordinator.GroupStep) error {
	for _, eff := range step.Effects {
		if eff.Record == nil {
			continue
		}
		if err := putCommit(tx, eff.Record, nil); err != nil {
			return err
		}
	}
	if step.Over {
		return tx.DropGroup(rec.ID)
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return tx.PutGroup(&journal.Group{ID: rec.ID, Record: b})
}

// fillGroup gives a commit state the request that its group's record has.
func fillGroup(tx *journal.Tx, rec *coordinator.Record) error {
	if rec.Open == nil || rec.Open.Group == "" {
		return nil
	}
	g, err := groupRecord(tx, rec.Open.Group)
	if err != nil {
		return fmt.Errorf("%w: group %s: %w", journal.ErrDamaged, rec.Open.Group, err)
	}
	return g.Fill(rec)
}

func groupRecord(tx *journal.Tx, id string) (*coordinator.GroupRecord, error) {
	g, err := tx.Group(id)
	if err != nil {
		return nil, err
	}
	rec := &coordinator.GroupRecord{}
	return rec, json.Unmarshal(g.Record, rec)
}

// Settle implements broker.Gate.
func (g *groupGate) Settle(_ context.Context, _ int, o coordinator.Outcome) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.writes {
		w.job.view.outcome(o)
	}
	if err := fault.Hit("scheduler.group.before-settle"); err != nil {
		return err
	}
	states, ended, err := g.settle(o)
	if err != nil {
		return err
	}
	if err := fault.Hit("scheduler.group.after-settle"); err != nil {
		return err
	}
	for i, w := range g.writes {
		w.settledAs(states[i], ended[i])
	}
	return nil
}

// settle makes an outcome durable: for all units, with the ends of their jobs, in one transaction.
func (g *groupGate) settle(o coordinator.Outcome) (states []coordinator.State, ended []*journal.Job, err error) {
	units, unlock := g.lock()
	defer unlock()
	step, err := coordinator.SettleGroup(g.rec, units, o)
	if err != nil {
		return nil, nil, err
	}
	err = g.s.journal.Update(func(tx *journal.Tx) error {
		ended = make([]*journal.Job, len(units))
		var landed *journal.Landing // the same for all of them
		for i, m := range step.Machines {
			if step.Effects[i].Record == nil || m.State() != coordinator.Committed {
				continue
			}
			if ended[i], err = g.writes[i].successRecord(m); err != nil {
				return err
			}
			if landed == nil {
				landed = landing(m, &g.rec.Attempt)
			}
			if err := g.writes[i].noteLanding(tx, ended[i], m, &g.rec.Attempt, landed); err != nil {
				return err
			}
		}
		if err := putGroup(tx, g.rec, step); err != nil {
			return err
		}
		for _, rec := range ended {
			if rec == nil {
				continue
			}
			if err := g.s.putFinished(tx, rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	g.become(step)
	for _, m := range step.Machines {
		states = append(states, m.State())
	}
	return states, ended, nil
}

// settled waits until no attempt of the group is open; false when the scheduler stops before.
func (g *groupGate) settled() bool {
	for _, w := range g.writes {
		for {
			w.mu.Lock()
			open, changed := w.machine.Open(), w.changed
			w.mu.Unlock()
			if open == nil {
				break
			}
			select {
			case <-changed:
			case <-g.s.ctx.Done():
				return false
			}
		}
	}
	return true
}

// sweepGroup removes what a group's commit call has created and nothing refers to: what staging made of each job is that job's own affair.
func (s *Server) sweepGroup(g *groupGate, lease *broker.Lease, adopted []string) {
	if !g.settled() {
		return
	}
	g.mu.Lock()
	clean := g.seals == 1 && g.left == nil && !slices.ContainsFunc(g.writes, func(w *writeState) bool { return !w.isFinal() })
	g.mu.Unlock()
	if clean {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	n, err := lease.Sweep(ctx, func(uri string) bool { return slices.Contains(adopted, uri) })
	if err != nil && s.ctx.Err() == nil {
		s.log.Info("metadata files of a commit for several jobs are left to orphan removal", "job", g.writes[0].job.id, "error", err)
	}
	if n > 0 {
		s.log.Info("swept metadata files", "job", g.writes[0].job.id, "files", n)
	}
}
