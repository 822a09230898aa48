package scheduler

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/upkeep"
)

func init() {
	register("remove_orphan_files", toMaintain, removeOrphans, param{"older_than", argTime, false}, param{"location", argText, false},
		param{"dry_run", argBool, false}, param{"force", argBool, false})
}

// orphanColumn is that of the answer, as Iceberg's procedure has it.
const orphanColumn = "orphan_file_location"

const (
	// orphanAge is how old a file must be, where the statement does not say.
	orphanAge = 3 * 24 * time.Hour
	// orphanAgeLeast is what it may say without force: younger files may be those of another engine's write that runs.
	orphanAgeLeast = 24 * time.Hour
)

// mayLoseFiles refuses tables of which it is not certain which files are needed.
func mayLoseFiles(t *catalog.Table) error {
	if strings.EqualFold(strings.TrimSpace(t.Metadata.Properties()["gc.enabled"]), "false") {
		return errors.New("its property gc.enabled is false: its files may belong to other tables, or to other branches of its catalog, too")
	}
	if at, err := uri.Parse(t.Location); err == nil && at.Remote() {
		if scheme, _, _, err := uri.ParseKey(t.MetadataLocation); err != nil || scheme != at.Scheme {
			return errors.New("its catalog does not say which file has its metadata")
		}
	}
	return nil
}

// removeOrphans removes files below the table's location that its metadata does not name: what crashes of other engines, or of a scheduler whose
// journal was lost, have left. Files that a running job may have written stay, whatever the statement says.
func removeOrphans(s *Server, j *job, c *procedureCall) error {
	now := time.Now()
	if c.table.entry.catalog == nil {
		v := vacuum{name: c.name, column: orphanColumn, table: c.table, before: now.Add(-vacuumAge), within: c.text("location"), dryRun: c.flag("dry_run"), force: c.flag("force")}
		if t, ok := c.time("older_than"); ok {
			v.retain, v.before = true, t
		}
		return s.vacuum(j, &v)
	}
	before := now.Add(-orphanAge)
	if t, ok := c.time("older_than"); ok {
		if before = t; now.Sub(t) < orphanAgeLeast && !c.flag("force") {
			return fail(codeUser, "force => true takes it", "remove_orphan_files: older_than must be at least 24 hours ago: younger files may be those of a write that runs")
		}
	}
	jobs := s.runningBesides(j.id)
	var ids []string
	for _, other := range jobs {
		ids = append(ids, other.id)
		other.mu.Lock()
		if other.rec.Submitted.Before(before) {
			before = other.rec.Submitted
		}
		other.mu.Unlock()
	}
	entry := c.table.entry
	t, err := entry.catalog.Load(j.ctx, c.table.ident)
	if err != nil {
		return catalogError(err, "table "+c.table.String())
	}
	if err := mayLoseFiles(t); err != nil {
		return fail(codeUser, "", "remove_orphan_files: table %s: %w", c.table, err)
	}
	foreign, err := s.otherPlaces(j.ctx, t.UUID)
	if err != nil {
		return err
	}
	found, err := upkeep.Orphans(j.ctx, upkeep.Search{
		Stores:   entry.opener(c.table.ident),
		Location: t.Location, Within: c.text("location"), Allowed: s.ownPlace(entry, t.Location), Before: before, Properties: t.Metadata.Properties(),
		Foreign: foreign, Jobs: ids, DryRun: c.flag("dry_run"),
		Load: func(ctx context.Context) (table.Metadata, string, error) {
			now, err := entry.catalog.Load(ctx, c.table.ident)
			if err != nil {
				return nil, "", catalogError(err, "table "+c.table.String())
			}
			if now.UUID != t.UUID {
				return nil, "", fail(codeConflict, "run the statement again", "table %s was dropped and created again meanwhile", c.table)
			}
			return now.Metadata, now.MetadataLocation, nil
		},
	})
	if err != nil {
		if len(found) > 0 {
			j.warn("some files were removed before it failed")
		}
		return fail(codeUser, "", "remove_orphan_files: table %s: %w", c.table, err)
	}
	if len(found) > 0 && !c.flag("dry_run") {
		j.did(auditSweep, c.table, func(d *journal.Did) { d.Files = int64(len(found)) })
	}
	return s.answer(j, []string{orphanColumn}, oneColumn(found))
}

// runningBesides are the jobs that have not ended, but one.
func (s *Server) runningBesides(but string) []*job {
	var out []*job
	for _, j := range s.jobsNewestFirst() {
		j.mu.Lock()
		over := isTerminal(j.state)
		j.mu.Unlock()
		if !over && j.id != but {
			out = append(out, j)
		}
	}
	return out
}

// otherPlaces are the places at which the other tables of all catalogs have their files.
func (s *Server) otherPlaces(ctx context.Context, but string) ([]string, error) {
	var out []string
	for _, name := range s.catalogNames() {
		e := s.catalogs[name]
		if e.catalog == nil {
			out = append(out, e.root)
			continue
		}
		schemas, err := e.catalog.Namespaces(ctx)
		if err != nil {
			return nil, catalogError(err, "catalog "+name)
		}
		for _, ns := range schemas {
			tables, err := e.catalog.Tables(ctx, ns)
			if err != nil {
				return nil, catalogError(err, "schema "+schemaText(ns))
			}
			for _, id := range tables {
				t, err := e.catalog.Load(ctx, id)
				if err != nil {
					return nil, fail(codeInternal, "", "table %s cannot be read, so that its files cannot be told from orphans: %w", id, err)
				}
				if t.UUID == but {
					continue
				}
				out = append(out, t.Location)
				for _, key := range []string{"write.data.path", "write.folder-storage.path", "write.object-storage.path", "write.metadata.path"} {
					if p := t.Metadata.Properties()[key]; p != "" {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out, nil
}
