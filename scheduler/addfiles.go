package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sources"
	"github.com/signet-io/signet/scheduler/sql"
)

func init() {
	register("add_files", toInsert, func(s *Server, j *job, c *procedureCall) error {
		st := &sql.AddFiles{Files: []string{c.text("source")}, Copy: c.flag("copy"), CheckDuplicates: true}
		if v, ok := c.args["check_duplicate_files"].(bool); ok {
			st.CheckDuplicates = v
		}
		j.update(func() { j.rec.Kind = kindAddFiles })
		p := &planned{target: c.table, branch: ownBranch(j.settings().WapBranch), mode: sinkv1.WriteMode_WRITE_MODE_APPEND}
		if err := s.needsBranch(j.ctx, p); err != nil {
			return err
		}
		if err := s.planAdded(j, p, st); err != nil {
			return err
		}
		return s.runPlanned(j, p)
	}, param{"source", argText, true}, param{"copy", argBool, false}, param{"check_duplicate_files", argBool, false})
}

func (s *Server) runAddFiles(j *job, st *sql.AddFiles) error {
	p, err := s.planAddFiles(j, st)
	if err != nil {
		return err
	}
	return s.runPlanned(j, p)
}

// planAddFiles plans ADD FILES: an append of files that are there.
func (s *Server) planAddFiles(j *job, st *sql.AddFiles) (*planned, error) {
	p, err := s.planAppend(st.Table.Strings(), j)
	if err != nil {
		return nil, err
	}
	return p, s.planAdded(j, p, st)
}

// planAdded plans the append, by reference or as a copy.
func (s *Server) planAdded(j *job, p *planned, st *sql.AddFiles) error {
	files, err := s.sources.Resolve(j.ctx, j.rec.BaseDir, st.Files)
	if err != nil {
		return sourceFailure(err)
	}
	if st.CheckDuplicates {
		if err := linkedTwice(files); err != nil {
			return err
		}
	}
	if st.Copy {
		return s.planCopied(j, p, st, files)
	}
	if err := s.needs(j.ctx, p.target, sinkv1.Capability_CAPABILITY_ADD_FILES, "ADD FILES", "ADD FILES … WITH (copy = true) copies their rows"); err != nil {
		return err
	}
	p.adds = &sinkv1.AddFiles{CheckDuplicates: st.CheckDuplicates}
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return err
	}
	if err := s.mayStay(j, p, files); err != nil {
		return err
	}
	if err := s.sameObjects(j.ctx, p, files); err != nil {
		return err
	}
	if err := s.absentFrom(j, p, st, files); err != nil {
		return err
	}
	tasks := &plan.AddTasks{Table: p.target.String(), Spec: p.spec, Files: files, CheckDuplicates: st.CheckDuplicates, Mode: s.planner(j)}
	if tasks.Request, err = s.request(j, &analysis{result: &executorv1.AnalyzeResult{}, sources: filesAsSources(files)}); err != nil {
		return err
	}
	tasks.Request.Table = p.target.String()
	if p.planner, err = tasks.Planner(); err != nil {
		return planFailure(err)
	}
	if p.first, err = p.planner.Next(nil); err != nil {
		return planFailure(err)
	}
	p.plan = p.planner.Plan()
	p.text, p.rows = p.plan.Explain(), "the rows of "+filesText(len(files))
	j.warn(p.plan.Warnings...)
	j.update(func() { j.plan = p.text })
	return nil
}

func filesText(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func filesAsSources(files []*planv1.PinnedFile) []*planv1.Source {
	return []*planv1.Source{{View: plan.AddView, Alias: plan.AddView, Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: files}}}}
}

// linkedTwice refuses files that are one file under two names: their rows would be there twice.
func linkedTwice(files []*planv1.PinnedFile) error {
	type identity struct {
		inode uint64
		size  int64
		mtime int64
	}
	seen := map[identity]*planv1.PinnedFile{}
	for _, f := range files {
		id := identity{f.GetInode(), f.GetSizeBytes(), f.GetMtimeNanos()}
		if first := seen[id]; first != nil && id.inode != 0 {
			return fail(codeUser, "leave one out, or say check_duplicates = false to have its rows twice", "%s and %s are one file: a hard link", first.GetName(), f.GetName())
		}
		seen[id] = f
	}
	return nil
}

// mayStay refuses files that cannot become a table's where they are: whose places the operator has not given free for that, which may be those of another
// table, or whose names readers take in two ways.
func (s *Server) mayStay(j *job, p *planned, files []*planv1.PinnedFile) error {
	const hint = "WITH (copy = true) copies them; to leave them where they are, have the operator list their place in catalogs.%s.add_files_paths"
	t := p.target
	cfg := s.cfg.Catalogs[t.entry.name]
	own, warehouse := []string{p.spec.GetDataLocation()}, cmp.Or(cfg.Warehouse, t.entry.root)
	if t.entry.catalog == nil {
		own = append(own, t.entry.location(t.ident))
	} else {
		tbl, err := t.entry.catalog.Load(j.ctx, t.ident)
		if err != nil {
			return catalogError(err, "table "+t.String())
		}
		own = append(own, tbl.Location)
	}
	for _, f := range files {
		switch name := nameIn(f); {
		case strings.HasPrefix(name, "http"):
			return fail(codeUser, "WITH (copy = true) copies it", "%s: a file of a web server is no data file of a table: others could not read the table", f.GetName())
		case isRemote(p.spec.GetDataLocation()) != (f.GetUri() != ""):
			return fail(codeUser, "WITH (copy = true) copies it", "%s: it is not in the kind of store that table %s is in, %s: who reads the table would not find it", f.GetName(), t, p.spec.GetDataLocation())
		case strings.Contains(strings.TrimPrefix(name, "s3://"), "//"):
			return fail(codeUser, "copy the object to another key, or say copy = true", "%s: readers take two slashes in a row in several ways", f.GetName())
		}
		if strings.ContainsAny(nameIn(f), `%?#\*`) {
			return fail(codeUser, "rename it, or say copy = true", "%s: readers take a name with one of %% ? # \\ * in it in several ways", f.GetName())
		}
		switch {
		case s.sources.Below(nameIn(f), own...):
		case s.sources.Below(nameIn(f), warehouse):
			return fail(codeUser, "WITH (copy = true) copies them", "%s: it is in the warehouse of catalog %s and not below table %s: a file of two tables would be gone from both when one has it removed", f.GetName(), t.entry.name, t)
		case !s.sources.Below(nameIn(f), cfg.AddFilesPaths...):
			return fail(codeUser, fmt.Sprintf(hint, t.entry.name), "%s: it is not below table %s, and files of other places may not stay where they are", f.GetName(), t)
		}
	}
	return nil
}

// absentFrom refuses files that the table has already, as far as that can be told before the commit, which looks again where they stay where they are.
func (s *Server) absentFrom(j *job, p *planned, st *sql.AddFiles, files []*planv1.PinnedFile) error {
	if !st.CheckDuplicates || p.spec.GetBaseVersion() == "" {
		return nil
	}
	scan, err := s.planReadOnce(j.ctx, j, p.target, tableRead{ref: p.branch})
	if err != nil {
		return err
	}
	have := make(map[string]bool, len(scan.GetFiles()))
	for _, f := range scan.GetFiles() {
		have[nameIn(f)] = true
	}
	var twice []string
	for _, f := range files {
		if have[nameIn(f)] {
			twice = append(twice, f.GetName())
		}
	}
	if len(twice) == 0 {
		return nil
	}
	slices.Sort(twice)
	more := ""
	if n := len(twice) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fail(codeUser, "leave them out, or say check_duplicates = false to have their rows twice", "table %s has %s already%s", p.target, twice[0], more)
}

// planCopied plans a copy: the footers of all files are checked first, and then it is an INSERT of their columns, which copies row groups as they are
// where it can.
func (s *Server) planCopied(j *job, p *planned, st *sql.AddFiles, files []*planv1.PinnedFile) error {
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return err
	}
	if s.needs(j.ctx, p.target, sinkv1.Capability_CAPABILITY_PLAN_SCAN, "", "") == nil {
		if err := s.absentFrom(j, p, st, files); err != nil {
			return err
		}
	}
	if s.pool.Connected() == 0 {
		j.waitsForExecutor()
	}
	res, err := s.analyzeOnce(j.ctx, &executorv1.Analyze{RequestId: uuid.NewString(), AddFiles: bareSpec(p.spec), Sources: filesAsSources(files)})
	if err != nil {
		return err
	}
	ins := &sql.Insert{Table: st.Table, ByName: true, Query: sql.Query{Text: copyQuery(st.Files, res.GetAddFiles(), p.spec.GetSchema())}}
	return s.planInsertAs(j, p, ins)
}

// bareSpec is what the check of files needs of a write spec.
func bareSpec(spec *planv1.WriteSpec) *planv1.WriteSpec {
	return &planv1.WriteSpec{TableUuid: spec.GetTableUuid(), Schema: spec.GetSchema(), Partition: spec.GetPartition(), Names: spec.GetNames()}
}

// copyQuery reads the table's columns that the files have, and those that the names of directories give.
func copyQuery(names []string, r *executorv1.AddFilesReport, schema *planv1.Schema) string {
	var columns []string
	for _, c := range r.GetColumns() {
		columns = append(columns, sql.QuoteIdent(c))
	}
	for _, f := range schema.GetFields() {
		if !slices.Contains(r.GetPathColumns(), f.GetName()) {
			continue
		}
		text, err := plan.CastType(f.GetType())
		if err != nil { // of no table that can be written
			continue
		}
		id := sql.QuoteIdent(f.GetName())
		columns = append(columns, "CAST("+id+" AS "+text+") AS "+id)
	}
	if len(columns) == 0 {
		columns = []string{"*"} // of files without columns
	}
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = sql.QuoteString(n)
	}
	options := "union_by_name = true, hive_partitioning = false"
	if len(r.GetPathColumns()) > 0 {
		options = "union_by_name = true, hive_partitioning = true, hive_types_autocast = false"
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM read_parquet([" + strings.Join(list, ", ") + "], " + options + ")"
}

// givenTo are the files that a task may register, by the names under which they become data files.
func givenTo(task *planv1.Task) map[string]int64 {
	out := map[string]int64{}
	for _, src := range task.GetSources() {
		for _, f := range src.GetFile().GetFiles() {
			out[cmp.Or(f.GetUri(), "file://"+f.GetPath())] = f.GetSizeBytes()
		}
	}
	return out
}

// stillGiven refuses a manifest whose files are not what was planned (S73): from here on the table relies on them.
func (w *writeState) stillGiven(ctx context.Context, task int32) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statsAtATime)
	for _, src := range w.tasks[task].GetSources() {
		for _, f := range src.GetFile().GetFiles() {
			group.Go(func() error {
				switch err := w.s.sources.Changed(ctx, f); {
				case err == nil:
					return nil
				case f.GetUri() != "" && !errors.Is(err, sources.ErrChanged) && mayPass(err):
					return fmt.Errorf("%w: %w", errUnseen, err)
				default:
					return fmt.Errorf("task manifest refused: file %w", err)
				}
			})
		}
	}
	return group.Wait()
}

// nameIn is a file by the name under which sources and tables are compared: an absolute path, or the URI of an object.
func nameIn(f *planv1.PinnedFile) string {
	if f.GetUri() != "" {
		return uri.Key(f.GetUri())
	}
	return f.GetPath()
}

// sameObjects refuses objects that are not what the table's catalog finds under their names: its properties may lead to another store than those of sources.remote,
// and then who reads the table finds nothing, or something else.
func (s *Server) sameObjects(ctx context.Context, p *planned, files []*planv1.PinnedFile) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statsAtATime)
	for _, f := range files {
		if f.GetUri() == "" {
			continue
		}
		group.Go(func() error {
			store, err := p.target.entry.store(ctx, p.target.ident, f.GetUri()[:strings.LastIndexByte(f.GetUri(), '/')])
			var info storage.Info
			if err == nil {
				info, err = store.Stat(ctx, f.GetUri())
			}
			const hint = "have the operator give catalog %s the properties and keys that the file's place has in sources.remote, or say copy = true"
			hintFor := fmt.Sprintf(hint, p.target.entry.name)
			switch {
			case errors.Is(err, storage.ErrNotFound), err == nil && (info.Size != f.GetSizeBytes() || !objects.SameVersion(info.ETag, f.GetEtag())):
				return fail(codeUser, hintFor, "%s: with the properties of catalog %s there is another object of this name, or none: they lead to another store than sources.remote", f.GetName(), p.target.entry.name)
			case err != nil:
				return fail(codeUser, hintFor, "%s: catalog %s cannot look at it: %w", f.GetName(), p.target.entry.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// distinctFiles refuses to tell rows apart by their place in a file that a table has twice, as statements that add files without a look for duplicates, of this
// or of another engine, may leave it.
func distinctFiles(t *target, files []*planv1.PinnedFile) error {
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		key := f.GetPath()
		if f.GetUri() != "" {
			key = uri.Key(f.GetUri())
		}
		if seen[key] {
			return fail(codeUser, "INSERT OVERWRITE t SELECT … FROM t writes its rows anew; TRUNCATE TABLE removes them",
				"table %s has the data file %s twice: rows that are in one place of the table twice cannot be told apart", t, f.GetName())
		}
		seen[key] = true
	}
	return nil
}
