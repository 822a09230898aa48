package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/fault"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/journal"
	"github.com/signet-io/signet/scheduler/sql"
)

// vacuumAge is how old a file of a storage sink's table must be to go, and how long unnamed, where neither statement nor table says; a statement may say less
// only by force. Readers of an old version, and writers elsewhere that have not committed yet, need that long.
const vacuumAge = 7 * 24 * time.Hour

// removalsAtOnce is how many files are looked at, or removed, at a time.
const removalsAtOnce = 16

// vacuum is one clean-up of a storage sink's table: the sink proposes files, and the host checks each and removes it.
type vacuum struct {
	name   string // of the statement
	column string // of the answer
	table  *target
	before time.Time // only files that were last written before it
	retain bool      // before is also since when files have to be unnamed; otherwise the table says
	within string    // below the table; empty: everywhere
	dryRun bool
	force  bool
}

// runVacuum runs VACUUM.
func (s *Server) runVacuum(j *job, st *sql.Vacuum) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toMaintain)
	if err != nil {
		return err
	}
	if t.entry.catalog != nil {
		return fail(codeUser, "CALL system.expire_snapshots(table => …) and CALL system.remove_orphan_files(table => …) remove files of Iceberg tables",
			"table %s: VACUUM is for tables of storage sinks", t)
	}
	if t, err = s.existingTable(j, t); err != nil {
		return err
	}
	v := vacuum{name: "VACUUM", column: "path", table: t, before: time.Now().Add(-vacuumAge), dryRun: st.DryRun}
	if st.RetainHours != nil {
		v.retain, v.before = true, time.Now().Add(-time.Duration(*st.RetainHours)*time.Hour)
	}
	return s.vacuum(j, &v)
}

// vacuum answers the files that went, or would go.
func (s *Server) vacuum(j *job, v *vacuum) error {
	if time.Since(v.before) < vacuumAge-time.Minute && !v.force && !v.dryRun {
		return fail(codeUser, "CALL system.remove_orphan_files(table => …, older_than => …, force => true) takes it",
			"%s: files younger than 168 hours may be those of readers of an older version, or of a write that runs elsewhere", v.name)
	}
	for _, c := range []sinkv1.Capability{sinkv1.Capability_CAPABILITY_MAINTAIN, sinkv1.Capability_CAPABILITY_PLAN_SCAN} {
		if err := s.needs(j.ctx, v.table, c, v.name, ""); err != nil {
			return err
		}
	}
	running := s.runningBesides(j.id)
	for _, other := range running {
		other.mu.Lock()
		if other.rec.Submitted.Before(v.before) {
			v.before = other.rec.Submitted
		}
		other.mu.Unlock()
	}
	found, err := s.proposed(j, v)
	if err != nil {
		return err
	}
	c, err := s.checkVacuum(j, v, running, found)
	if err != nil {
		return err
	}
	files, err := c.passed(j.ctx, found.proposals)
	if err != nil {
		return err
	}
	if n := len(found.proposals) - len(files); n > 0 {
		j.warn(fmt.Sprintf("%d files that the sink proposed stay: %s", n, c.why))
		s.log.Warn("files that a sink proposed for deletion stay", "job", j.id, "table", v.table.String(), "files", n, "reason", c.why)
	}
	if !v.dryRun {
		gone, err := removeEach(j.ctx, c.store, files)
		if len(gone) > 0 {
			j.did(auditSweep, v.table, func(d *journal.Did) { d.Files = int64(len(gone)) })
		}
		if err != nil {
			return fail(codeInternal, "what is left goes with the next run", "%s: table %s: %d of %d files were removed: %w", v.name, v.table, len(gone), len(files), err)
		}
		files = gone
	}
	slices.Sort(files)
	return s.answer(j, []string{v.column}, oneColumn(files))
}

// proposals are what a sink proposes to delete.
type proposals struct {
	uuid      string
	proposals []*sinkv1.Proposal
}

func (s *Server) proposed(j *job, v *vacuum) (found *proposals, err error) {
	err = s.overCrashes(j.ctx, "Maintain", func() error {
		found, err = s.proposedOnce(j.ctx, j, v)
		return err
	})
	return found, err
}

func (s *Server) proposedOnce(ctx context.Context, j *job, v *vacuum) (*proposals, error) {
	t := v.table
	lease, sink, err := s.readLease(ctx, j.id, t)
	if err != nil {
		return nil, err
	}
	defer lease.Close()
	req := &sinkv1.MaintainRequest{Lease: lease.Token(), Table: t.ref(), OlderThanMillis: v.before.UnixMilli()}
	if v.retain {
		req.UnnamedSinceMillis = v.before.UnixMilli()
	}
	st, err := sink.Maintain(ctx, req)
	if err != nil {
		return nil, s.sinkFailure(ctx, t, err)
	}
	out := &proposals{}
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, s.sinkFailure(ctx, t, err)
		}
		out.uuid = cmp.Or(out.uuid, m.GetTableUuid())
		out.proposals = append(out.proposals, m.GetProposals()...)
	}
}

// vacuumCheck decides which proposals may go. A sink is not believed: a file that is wrongly removed is gone.
type vacuumCheck struct {
	v       *vacuum
	store   storage.Store
	live    map[string]bool // files of the table's newest version, by uri.Key
	foreign []string        // places of other tables below this one
	jobs    []string        // that run
	logs    []string        // directories that have the table's commit points, relative to it
	sink    *sinkv1.DescribeResponse
	nested  map[string]bool // whether a directory below the table is a table by itself
	why     string          // of the first that stays
}

func (s *Server) checkVacuum(j *job, v *vacuum, running []*job, found *proposals) (*vacuumCheck, error) {
	t := v.table
	p, err := s.steadyPlugin(j.ctx, t)
	if err != nil {
		return nil, err
	}
	c := &vacuumCheck{v: v, sink: p.Describe(), live: map[string]bool{}, nested: map[string]bool{}}
	location := t.entry.location(t.ident)
	if c.store, err = t.entry.store(j.ctx, t.ident, location); err != nil {
		return nil, err
	}
	if _, err := c.store.Rel(v.within); v.within != "" && err != nil {
		return nil, fail(codeUser, "", "%s: location %s is not below table %s, which lies at %s", v.name, v.within, t, location)
	}
	for _, other := range running {
		c.jobs = append(c.jobs, other.id)
	}
	for _, pattern := range c.sink.GetCommitPoints() {
		c.logs = append(c.logs, path.Dir(pattern))
	}
	foreign, err := s.otherPlaces(j.ctx, "")
	if err != nil {
		return nil, err
	}
	for _, place := range foreign {
		if _, err := storage.Below(location, place); err == nil && uri.Key(place) != uri.Key(location) {
			c.foreign = append(c.foreign, place)
		}
	}
	return c, s.liveFiles(j, v, found, c)
}

// liveFiles lists what the table's newest version has, now that the proposals are there: what was committed meanwhile counts.
func (s *Server) liveFiles(j *job, v *vacuum, found *proposals, c *vacuumCheck) error {
	return s.overCrashes(j.ctx, "PlanScan", func() error {
		lease, sink, err := s.readLease(j.ctx, j.id, v.table)
		if err != nil {
			return err
		}
		defer lease.Close()
		st, err := sink.PlanScan(j.ctx, &sinkv1.PlanScanRequest{Lease: lease.Token(), Table: v.table.ref()})
		if err != nil {
			return s.sinkFailure(j.ctx, v.table, err)
		}
		for {
			m, err := st.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return s.sinkFailure(j.ctx, v.table, err)
			}
			if m.GetSchema() != nil && m.GetTableUuid() != found.uuid {
				return fail(codeConflict, "run the statement again", "table %s was dropped and created again meanwhile", v.table)
			}
			for _, f := range m.GetFiles() {
				c.live[uri.Key(f.GetUri())] = true
				for _, d := range f.GetDeletes() {
					c.live[uri.Key(d.GetPath())] = true
				}
			}
		}
	})
}

// passed are the proposals that may go, each once.
func (c *vacuumCheck) passed(ctx context.Context, list []*sinkv1.Proposal) ([]string, error) {
	reasons := make([]string, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removalsAtOnce)
	seen := map[string]bool{}
	for i, p := range list {
		if reasons[i] = c.named(p); reasons[i] == "" && seen[uri.Key(p.GetUri())] {
			reasons[i] = "it is proposed twice"
		}
		seen[uri.Key(p.GetUri())] = true
		if reasons[i] != "" {
			continue
		}
		nested, err := c.inNested(ctx, p.GetUri())
		if err != nil {
			return nil, err
		}
		if nested {
			reasons[i] = "it lies in another table"
			continue
		}
		g.Go(func() (err error) {
			reasons[i], err = c.asSaid(ctx, p)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []string
	for i, p := range list {
		if reasons[i] == "" {
			out = append(out, p.GetUri())
		} else if c.why == "" {
			c.why = p.GetUri() + ": " + reasons[i]
		}
	}
	return out, nil
}

// named says why a proposal stays, by its name alone; empty: it may go.
func (c *vacuumCheck) named(p *sinkv1.Proposal) string {
	rel, err := c.store.Rel(p.GetUri())
	if err != nil || rel == "" || !strings.HasSuffix(p.GetUri(), "/"+rel) {
		return "it does not lie below the table"
	}
	below := func(place string) bool {
		_, err := storage.Below(place, p.GetUri())
		return err == nil
	}
	first, _, _ := strings.Cut(rel, "/")
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, rel)
		return ok || err != nil
	}
	switch {
	case slices.ContainsFunc(c.logs, func(dir string) bool { return dir == first || strings.HasPrefix(rel, dir+"/") }),
		slices.ContainsFunc(c.sink.GetCommitPoints(), matches), slices.ContainsFunc(c.sink.GetHints(), matches):
		return "it is part of the table's log"
	case c.live[uri.Key(p.GetUri())]:
		return "the table's newest version has it"
	case slices.ContainsFunc(c.jobs, func(id string) bool { return strings.Contains(rel, id) }):
		return "it is of a job that runs"
	case slices.ContainsFunc(c.foreign, below):
		return "it lies in another table"
	case c.v.within != "" && !below(c.v.within):
		return "it lies outside of " + c.v.within
	}
	return ""
}

// inNested tells whether a directory between the table and a file is a table by itself: it has a log of its own.
func (c *vacuumCheck) inNested(ctx context.Context, file string) (bool, error) {
	segments, err := storage.Below(c.store.Location(), file)
	if err != nil {
		return false, err
	}
	for i := 1; i < len(segments); i++ {
		dir := storage.Join(c.store.Location(), segments[:i]...)
		is, known := c.nested[dir]
		for _, log := range c.logs {
			if known || is || log == "." {
				continue
			}
			err := c.store.List(ctx, storage.Join(dir, log), func(storage.Info) error { return errFoundOne })
			if err != nil && !errors.Is(err, errFoundOne) && !errors.Is(err, storage.ErrNotFound) {
				return false, err
			}
			is = errors.Is(err, errFoundOne)
		}
		if c.nested[dir] = is; is {
			return true, nil
		}
	}
	return false, nil
}

var errFoundOne = errors.New("there is a file")

// asSaid looks at the file itself: its age is the store's word, and a file that is not as the sink says is another one.
func (c *vacuumCheck) asSaid(ctx context.Context, p *sinkv1.Proposal) (string, error) {
	info, err := c.store.Stat(ctx, p.GetUri())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "it is gone", nil
	case err != nil:
		return "", err
	case info.Size != p.GetSizeBytes() || info.ModTime.UnixMilli() != p.GetMtimeMillis():
		return "it is not the file that the sink has seen", nil
	case !info.ModTime.Before(c.v.before):
		return "it is younger than " + c.v.before.UTC().Format(timeText), nil
	}
	return "", nil
}

// removeEach removes files, and reports those that went.
func removeEach(ctx context.Context, store storage.Store, files []string) ([]string, error) {
	removed := make([]bool, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removalsAtOnce)
	for i, file := range files {
		g.Go(func() error {
			if err := fault.Hit("scheduler.files.before-remove"); err != nil {
				return err
			}
			if err := store.Remove(ctx, file); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("remove %s: %w", file, err)
			}
			removed[i] = true
			return nil
		})
	}
	err := g.Wait()
	var gone []string
	for i, file := range files {
		if removed[i] {
			gone = append(gone, file)
		}
	}
	return gone, err
}
