package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/journal"
)

// dropDirectory removes a table that is a directory: its files are all that there is of it. Whoever looks meanwhile finds the table, none, or one whose log has no beginning, which every
// reader refuses; never the rows of an older version. What it has begun is a duty: a statement that was cut off is run again after a restart, and goes on, and where removing fails, the sweeper
// goes on when the statement has ended. What is removed was there before: another table of that name may be in the making, whose files have no log yet.
func (s *Server) dropDirectory(j *job, t *target) (existed bool, err error) {
	store, err := t.entry.below(j.ctx)
	if err != nil {
		return false, err
	}
	location := t.entry.location(t.ident)
	table := &journal.Dropped{Table: location, Log: location + "/" + t.entry.log, Before: j.rec.Submitted}
	empty, err := storage.IsEmpty(j.ctx, store, table.Log)
	switch {
	case err != nil || empty && !j.again:
		return false, err // a directory without a log is no table
	case !empty && j.again:
		if newer, err := s.madeSince(j, t); newer || err != nil {
			return true, err // somebody has made another table of that name
		}
	}
	if err := fault.Hit("scheduler.drop.before"); err != nil {
		return false, err
	}
	duty := &journal.Duty{
		Prefix: parentOf(location) + "/.dropped-" + j.id, Catalog: t.entry.name, Location: t.entry.root, Job: j.id, NotBefore: time.Now().UTC(), Confirmed: true, Dropped: table,
	}
	if err := s.journal.Update(func(tx *journal.Tx) error { return tx.PutDuty(duty) }); err != nil {
		return false, err
	}
	if _, remote := store.(storage.Located); remote {
		return s.dropObjects(j, store, duty, !empty)
	}
	if !empty {
		if err := storage.SetAside(j.ctx, store, location, duty.Prefix); err != nil {
			return false, errors.Join(err, s.dropDuty(duty))
		}
	}
	var n int
	if err = fault.Hit("scheduler.drop.aside"); err == nil {
		n, err = store.RemoveAll(j.ctx, duty.Prefix)
	}
	return !empty || n > 0, s.left(duty, err)
}

func (s *Server) dropDuty(d *journal.Duty) error {
	return s.journal.Update(func(tx *journal.Tx) error { return tx.DropDuty(d.Prefix) })
}

// left ends the duty of a table that is gone, or leaves to the sweeper what could not be removed.
func (s *Server) left(d *journal.Duty, err error) error {
	if err == nil {
		return s.dropDuty(d)
	}
	s.log.Warn("a table is dropped, some of its files are still there and are removed later", "table", d.Dropped.Table, "job", d.Job, "error", err)
	return nil
}

// dropObjects is dropDirectory where nothing can be renamed. A table of which nothing was removed stays as it is.
func (s *Server) dropObjects(j *job, store storage.Store, d *journal.Duty, existed bool) (bool, error) {
	before := time.Time{}
	if j.again {
		before = d.Dropped.Before
	}
	o, err := listDropped(j.ctx, store, d.Dropped, before)
	if err != nil {
		return false, errors.Join(err, s.dropDuty(d))
	}
	existed = existed || len(o.log)+len(o.files) > 0
	for n, u := range o.log {
		if n == o.commits+1 {
			err = fault.Hit("scheduler.drop.aside")
		}
		if err = errors.Join(err, gone(store.Remove(j.ctx, u))); err == nil {
			continue
		}
		if _, look := store.Stat(j.ctx, u); n == 0 && look == nil {
			return false, errors.Join(err, s.dropDuty(d))
		}
		return existed, fmt.Errorf("%w; a part of its log is gone, so that nobody can read the table any more: the scheduler goes on removing it", err)
	}
	_, err = removeEach(j.ctx, store, o.files)
	return existed, s.left(d, err)
}

// gone is nil where a removal has found nothing.
func gone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// droppedObjects are those of a table to be removed, in order: checkpoints and hints go first, so that readers start with the first commit, which goes next, and then the rest.
type droppedObjects struct {
	log     []string
	commits int // where those of the log begin
	files   []string
}

// listDropped lists the objects of a table that are older than a time; zero: all.
func listDropped(ctx context.Context, store storage.Store, t *journal.Dropped, before time.Time) (o droppedObjects, err error) {
	var commits []string
	err = store.List(ctx, t.Table, func(i storage.Info) error {
		if !before.IsZero() && !i.ModTime.Before(before) {
			return nil
		}
		name := i.URI[strings.LastIndexByte(i.URI, '/')+1:]
		switch _, err := storage.Below(t.Log, i.URI); {
		case err != nil:
			o.files = append(o.files, i.URI)
		case strings.TrimLeft(name, "0123456789") == ".json":
			commits = append(commits, i.URI)
		default:
			o.log = append(o.log, i.URI)
		}
		return nil
	})
	slices.Sort(commits)
	o.commits = len(o.log)
	o.log = append(o.log, commits...)
	return o, err
}

// sweepDropped removes what a DROP TABLE has left of a table.
func (s *Server) sweepDropped(ctx context.Context, e *catalogEntry, d journal.Duty) error {
	store, err := e.below(ctx)
	if err != nil {
		return err
	}
	var n int
	if _, remote := store.(storage.Located); remote {
		o, err := listDropped(ctx, store, d.Dropped, d.Dropped.Before)
		if err != nil {
			return err
		}
		for _, u := range o.log {
			if err := gone(store.Remove(ctx, u)); err != nil {
				return err
			}
		}
		if _, err := removeEach(ctx, store, o.files); err != nil {
			return err
		}
		n = len(o.log) + len(o.files)
	} else if n, err = store.RemoveAll(ctx, d.Prefix); err != nil {
		return err
	}
	s.log.Info("removed what was left of a dropped table", "table", d.Dropped.Table, "job", d.Job, "files", n)
	return s.journal.Update(func(tx *journal.Tx) error { return errors.Join(s.auditSwept(tx, &d, int64(n)), tx.DropDuty(d.Prefix)) })
}
