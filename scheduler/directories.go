package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/scheduler/sql"
)

// Tables of storage sinks are directories, <root>/<schema>/<table>. What lies there is all that is known about them.

// below opens the root of a storage sink's catalog, with the operator's credentials.
func (e *catalogEntry) below(ctx context.Context) (storage.Store, error) {
	return e.store(ctx, nil, e.root)
}

// hidden directories are nobody's tables or schemas: other engines leave work of their own in them.
func hidden(dir string) bool { return strings.HasPrefix(dir, "_") || strings.HasPrefix(dir, ".") }

// directories lists the schemas of a storage sink's catalog, each by its parts.
func (e *catalogEntry) directories(ctx context.Context) ([][]string, error) {
	store, err := e.below(ctx)
	if err != nil {
		return nil, err
	}
	dirs, err := storage.Dirs(ctx, store, e.root)
	if err != nil {
		return nil, err
	}
	out := [][]string{}
	for _, d := range dirs {
		if hidden(d) {
			continue
		}
		out = append(out, schemaOfDirectory(d))
	}
	return out, nil
}

// tables lists the tables of a schema: its directories, and where the format has a log, those that hold one.
func (e *catalogEntry) tables(ctx context.Context, ns []string) ([]string, error) {
	store, err := e.below(ctx)
	if err != nil {
		return nil, err
	}
	table := e.location(append(slices.Clone(catalog.Ident(ns)), "t"))
	schema := table[:strings.LastIndexByte(table, '/')]
	dirs, err := storage.Dirs(ctx, store, schema)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range dirs {
		if hidden(d) {
			continue
		}
		if e.log != "" {
			empty, err := storage.IsEmpty(ctx, store, schema+"/"+d+"/"+e.log)
			if err != nil {
				return nil, err
			}
			if empty {
				continue
			}
		}
		out = append(out, storage.UnescapeSegment(d))
	}
	return out, nil
}

// createDirectory makes the directory of a schema.
func (s *Server) createDirectory(j *job, e *catalogEntry, parts []string, ifNotExists bool) error {
	what := "schema " + sql.JoinName(append([]string{e.name}, parts...))
	all, err := e.directories(j.ctx)
	if err != nil {
		return catalogError(err, "catalog "+e.name)
	}
	there := slices.ContainsFunc(all, func(have []string) bool { return slices.Equal(have, parts) })
	switch {
	case there && !j.again && !ifNotExists:
		return fail(codeExists, "CREATE SCHEMA IF NOT EXISTS does nothing then", "%s exists already", what)
	case there && !j.again:
		return s.answer(j, []string{"result"}, []row{{what + " exists already"}})
	}
	store, err := e.below(j.ctx)
	if err != nil {
		return err
	}
	table := e.location(append(slices.Clone(catalog.Ident(parts)), "t"))
	made, err := storage.MakeDir(j.ctx, store, table[:strings.LastIndexByte(table, '/')])
	if err != nil {
		return catalogError(err, what)
	}
	j.madeSchema(e, parts)
	if !made {
		return s.answer(j, []string{"result"}, []row{{what + " will be listed with its first table: the object store has no empty directories"}})
	}
	return s.answer(j, []string{"result"}, []row{{"created " + what}})
}

// dropDirectory removes a table that is a directory: its files are all that there is of it. Whoever looks meanwhile finds the table, none, or one whose log has no beginning, which every
// reader refuses; never the rows of an older version. A statement that was cut off is run again after a restart, and goes on. What it removes was there before: another table of that
// name may be in the making, whose files have no log yet.
func (s *Server) dropDirectory(j *job, t *target) (existed bool, err error) {
	store, err := t.entry.below(j.ctx)
	if err != nil {
		return false, err
	}
	location := t.entry.location(t.ident)
	empty, err := storage.IsEmpty(j.ctx, store, location+"/"+t.entry.log)
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
	if _, remote := store.(storage.Located); remote {
		n, err := s.dropObjects(j, store, location, location+"/"+t.entry.log)
		return !empty || n > 0, err
	}
	aside := parentOf(location) + "/.dropped-" + j.id
	if !empty {
		if err := storage.SetAside(j.ctx, store, location, aside); err != nil {
			return false, err
		}
	}
	if err := fault.Hit("scheduler.drop.aside"); err != nil {
		return true, err
	}
	n, err := store.RemoveAll(j.ctx, aside)
	if err != nil {
		return true, fmt.Errorf("remove %s: %w", aside, err)
	}
	return !empty || n > 0, nil
}

// dropObjects is dropDirectory where nothing can be renamed: checkpoints and hints go first, so that readers start with the first commit, which goes next, and then the rest.
func (s *Server) dropObjects(j *job, store storage.Store, location, log string) (int, error) {
	var hints, commits, files []string
	err := store.List(j.ctx, location, func(i storage.Info) error {
		if j.again && !i.ModTime.Before(j.rec.Submitted) {
			return nil
		}
		name := i.URI[strings.LastIndexByte(i.URI, '/')+1:]
		switch _, err := storage.Below(log, i.URI); {
		case err != nil:
			files = append(files, i.URI)
		case strings.TrimLeft(name, "0123456789") == ".json":
			commits = append(commits, i.URI)
		default:
			hints = append(hints, i.URI)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(commits)
	removed := 0
	for n, u := range slices.Concat(hints, commits) {
		if n == len(hints)+1 {
			if err := fault.Hit("scheduler.drop.aside"); err != nil {
				return removed, err
			}
		}
		if err := store.Remove(j.ctx, u); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return removed, err
		}
		removed++
	}
	gone, err := removeEach(j.ctx, store, files)
	return removed + len(gone), err
}

// madeSince tells whether the table at a name is younger than the statement: a first run of it may have removed the one that it was about.
func (s *Server) madeSince(j *job, t *target) (bool, error) {
	store, err := t.entry.below(j.ctx)
	if err != nil {
		return false, err
	}
	first := false
	err = store.List(j.ctx, t.entry.location(t.ident)+"/"+t.entry.log, func(i storage.Info) error {
		first = first || i.ModTime.Before(j.rec.Submitted)
		return nil
	})
	return err == nil && !first, err
}
