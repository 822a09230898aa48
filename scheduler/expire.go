package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/broker"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/upkeep"
)

func init() {
	register("expire_snapshots", toMaintain, ofSnapshots(expireSnapshots), param{"older_than", argTime, false}, param{"retain_last", argInt, false},
		param{"snapshot_ids", argInts, false}, param{"dry_run", argBool, false})
}

// expiryPrefix begins the names of duties after an expiry, which end in the job's id.
const expiryPrefix = "expiry of "

// expireSnapshots has the sink remove snapshots from the metadata, and then removes the files that only they needed. What is to be removed is
// journalled before the metadata changes, so that no crash leaves files behind.
func expireSnapshots(s *Server, j *job, c *procedureCall) error {
	if why, err := s.keptOut(j, c.table); err != nil {
		return err
	} else if why != "" {
		j.warn("nothing was done: " + why)
		return s.answerExpiry(j, &upkeep.Result{}, 0)
	}
	x := &sinkv1.ExpireSnapshots{}
	if t, ok := c.time("older_than"); ok {
		ms := t.UnixMilli()
		x.OlderThanMillis = &ms
	}
	if n, ok := c.int("retain_last"); ok {
		if n < 1 || n > 1<<31-1 {
			return fail(codeUser, "", "expire_snapshots: retain_last must be at least 1: the current snapshot stays")
		}
		last := int32(n)
		x.RetainLast = &last
	}
	ids, _ := c.args["snapshot_ids"].([]int64)
	for _, id := range ids {
		x.Snapshots = append(x.Snapshots, strconv.FormatInt(id, 10))
	}
	req := &sinkv1.AlterTableRequest{Changes: []*sinkv1.Change{{Kind: &sinkv1.Change_ExpireSnapshots{ExpireSnapshots: x}}}, DryRun: c.flag("dry_run")}
	resp, err := s.alter(j, c.table, req, func(spec *broker.LeaseSpec) {
		spec.BeforeExpire = func(t *catalog.Table, ids []int64) error { return s.oweExpiry(j, c.table, t, ids) }
	})
	if err != nil {
		return err
	}
	if req.DryRun {
		return s.answerDryExpiry(j, c, resp.Values["expired_snapshots"])
	}
	if err := fault.Hit("scheduler.expire.after-commit"); err != nil {
		return err
	}
	res, err := s.finishExpiry(j)
	if err != nil {
		return err
	}
	return s.answerExpiry(j, res, countOf(resp.Values["expired_snapshots"]))
}

func (s *Server) answerExpiry(j *job, res *upkeep.Result, snapshots int64) error {
	return s.answer(j, []string{
		"deleted_data_files_count:int", "deleted_position_delete_files_count:int", "deleted_equality_delete_files_count:int",
		"deleted_manifest_files_count:int", "deleted_manifest_lists_count:int", "deleted_statistics_files_count:int", "expired_snapshots_count:int",
	}, []row{{
		res.Removed[upkeep.Data], res.Removed[upkeep.PositionDeletes], res.Removed[upkeep.EqualityDeletes],
		res.Removed[upkeep.Manifest], res.Removed[upkeep.List], res.Removed[upkeep.Statistics], snapshots,
	}})
}

func countOf(list string) int64 {
	if list == "" {
		return 0
	}
	return int64(strings.Count(list, ",") + 1)
}

// answerDryExpiry lists what an expiry would remove.
func (s *Server) answerDryExpiry(j *job, c *procedureCall, list string) error {
	t, err := c.table.entry.catalog.Load(j.ctx, c.table.ident)
	if err != nil {
		return catalogError(err, "table "+c.table.String())
	}
	var rows []row
	for text := range strings.SplitSeq(list, ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if snap := t.Metadata.SnapshotByID(id); err == nil && snap != nil {
			rows = append(rows, row{id, time.UnixMilli(snap.TimestampMs).UTC().Format("2006-01-02 15:04:05.000")})
		}
	}
	return s.answer(j, []string{"snapshot_id:int", "committed_at"}, rows)
}

// oweExpiry journals what will have to be removed once the request has landed. An earlier request of the job may have, so nothing is taken back.
func (s *Server) oweExpiry(j *job, at *target, t *catalog.Table, ids []int64) error {
	readers := s.readersOf(at, j.id)
	return s.journal.Update(func(tx *journal.Tx) error {
		d, err := expiryOf(tx, j.id)
		if err != nil {
			return err
		}
		if d == nil {
			d = &journal.Duty{
				Prefix: expiryPrefix + j.id, Catalog: at.entry.name, Location: t.Location, Job: j.id,
				Expiry: &journal.Expiry{Ident: at.ident, TableUUID: t.UUID},
			}
		}
		known := map[int64]bool{}
		for _, s := range d.Expiry.Snapshots {
			known[s.ID] = true
		}
		for _, id := range ids {
			if snap := t.Metadata.SnapshotByID(id); snap != nil && !known[id] {
				d.Expiry.Snapshots = append(d.Expiry.Snapshots, journal.ExpiredSnapshot{ID: id, List: snap.ManifestList})
			}
		}
		d.Expiry.Statistics = append(d.Expiry.Statistics, upkeep.StatisticsOf(t.Metadata)...)
		d.Expiry.Readers = append(d.Expiry.Readers, readers...)
		for _, list := range []*[]string{&d.Expiry.Statistics, &d.Expiry.Readers} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		return tx.PutDuty(d)
	})
}

func expiryOf(tx *journal.Tx, job string) (found *journal.Duty, err error) {
	err = tx.Duties(func(d *journal.Duty) error {
		if d.Expiry != nil && d.Job == job {
			found = d
		}
		return nil
	})
	return found, err
}

// finishExpiry does what the job owes, if its table's readers let it.
func (s *Server) finishExpiry(j *job) (*upkeep.Result, error) {
	var d *journal.Duty
	err := s.journal.View(func(tx *journal.Tx) (err error) {
		d, err = expiryOf(tx, j.id)
		return err
	})
	if err != nil || d == nil {
		return &upkeep.Result{}, err
	}
	if waiting := s.stillRunning(d.Expiry.Readers); len(waiting) > 0 {
		j.warn(fmt.Sprintf("the files are removed when the jobs that may read them have ended: %s", strings.Join(waiting, ", ")))
		return &upkeep.Result{}, nil
	}
	res, err := s.removeExpired(j.ctx, *d)
	if err != nil {
		return nil, fmt.Errorf("the snapshots have expired; removing their files is tried again in the background: %w", err)
	}
	if res.Outside > 0 {
		j.warn(fmt.Sprintf("%d files of the expired snapshots lie outside the table's locations, and stay", res.Outside))
	}
	return res, nil
}

// removeExpired removes the files of a duty and ends it. It may come again after an interruption.
func (s *Server) removeExpired(ctx context.Context, d journal.Duty) (*upkeep.Result, error) {
	s.expiring.Lock()
	defer s.expiring.Unlock()
	entry := s.catalogs[d.Catalog]
	if entry == nil || entry.catalog == nil {
		return nil, fail(codeNotFound, "", "the catalog %s is not configured any more", d.Catalog)
	}
	done := func() error { return s.journal.Update(func(tx *journal.Tx) error { return tx.DropDuty(d.Prefix) }) }
	t, err := entry.catalog.Load(ctx, d.Expiry.Ident)
	switch {
	case errors.Is(err, catalog.ErrNotFound): // it was dropped, and dropped tables leave their files
		return &upkeep.Result{}, done()
	case err != nil:
		return nil, err
	case t.UUID != d.Expiry.TableUUID:
		return &upkeep.Result{}, done()
	}
	w := upkeep.Work{Stores: entry.opener(d.Expiry.Ident), Now: t.Metadata, Location: t.Location, Statistics: d.Expiry.Statistics, Allowed: s.ownPlace(entry, t.Location)}
	for _, e := range d.Expiry.Snapshots {
		w.Snapshots = append(w.Snapshots, upkeep.Expired(e))
	}
	res, err := upkeep.ExpiredFiles(ctx, w)
	if err != nil {
		return res, err
	}
	if err := fault.Hit("scheduler.expire.before-done"); err != nil {
		return res, err
	}
	s.log.Info("removed the files of expired snapshots", "job", d.Job, "snapshots", len(w.Snapshots), "data_files", res.Removed[upkeep.Data], "outside", res.Outside)
	var files int64
	for _, n := range res.Removed {
		files += n
	}
	return res, s.journal.Update(func(tx *journal.Tx) error {
		return errors.Join(s.auditSwept(tx, &d, files), tx.DropDuty(d.Prefix))
	})
}

// ownPlace decides which places besides its location a table's files may be removed from: those that they may be written to.
func (s *Server) ownPlace(e *catalogEntry, location string) func(place string) bool {
	return func(place string) bool { return s.checkData(e, location, place) == nil }
}

// expiryWaits: the job itself is about to do it, or somebody may still read the files.
func (s *Server) expiryWaits(d *journal.Duty) bool {
	return len(s.stillRunning(append(slices.Clone(d.Expiry.Readers), d.Job))) > 0
}

// stillRunning are those of the jobs that have not ended.
func (s *Server) stillRunning(jobs []string) []string {
	return slices.DeleteFunc(slices.Clone(jobs), func(id string) bool {
		j := s.job(id)
		if j == nil {
			return true
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		return isTerminal(j.state)
	})
}

// readersOf are the running jobs that may read a table: those whose statement has its name, and those that have no statement.
func (s *Server) readersOf(t *target, but string) []string {
	name := strings.ToLower(t.ident[len(t.ident)-1])
	var out []string
	for _, j := range s.jobsNewestFirst() {
		j.mu.Lock()
		text, over := strings.ToLower(j.rec.SQL), isTerminal(j.state)
		j.mu.Unlock()
		if over || j.id == but {
			continue
		}
		if text == "" || strings.Contains(text, name) || strings.ContainsAny(name, `"'`) {
			out = append(out, j.id)
		}
	}
	return out
}
