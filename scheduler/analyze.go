package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/internal/uri"
	"github.com/signet-io/signet/scheduler/dispatch"
	"github.com/signet-io/signet/scheduler/journal"
)

// analysis is a bound query: its rewritten text, its columns, and its sources with what is known of their files.
type analysis struct {
	result  *executorv1.AnalyzeResult
	sources []*planv1.Source
}

// analyze has an executor parse and bind a query. Names of files and tables come back, are resolved and pinned here (the executor
// has neither a catalog nor a say in what may be read), and a second pass binds the query over them.
func (s *Server) analyze(ctx context.Context, j *job, text string) (*analysis, error) {
	return s.analyzeFor(ctx, j, text, false)
}

// analyzeFor asks for the types of the query's parameters instead, if it is told to.
func (s *Server) analyzeFor(ctx context.Context, j *job, text string, parameters bool) (*analysis, error) {
	defer j.timed("analyze", time.Now())
	if a := constantAnalysis(text); a != nil && !parameters && s.pool.Connected() > 0 {
		return a, nil
	}
	now := j.rec.Submitted.UnixMicro() // now() is bound once per job
	req := &executorv1.Analyze{RequestId: uuid.NewString(), Sql: text, NowMicros: now, Parameters: parameters}
	if s.pool.Connected() == 0 {
		j.waitsForExecutor()
	}
	res, err := s.analyzeOnce(ctx, req)
	if err != nil {
		return nil, err
	}
	j.setPhase(schedulerv1.JobState_JOB_STATE_PLANNING, "", "")
	a := &analysis{result: res}
	if len(res.Unresolved) == 0 {
		return a, nil
	}
	for _, u := range res.Unresolved {
		src, err := s.resolveSource(ctx, j, u)
		if err != nil {
			return nil, err
		}
		a.sources = append(a.sources, src)
	}
	if err := s.prune(ctx, j, text, res.Unresolved, a.sources); err != nil {
		return nil, err
	}
	req = &executorv1.Analyze{RequestId: uuid.NewString(), Sql: text, Sources: a.sources, NowMicros: now, WholeBytes: j.settings().BroadcastBytes, Parameters: parameters}
	if a.result, err = s.analyzeOnce(ctx, req); err != nil {
		return nil, err
	}
	if len(a.result.Unresolved) > 0 {
		return nil, fail(codeInternal, "", "the executor still asks for %d sources after all were resolved", len(a.result.Unresolved))
	}
	a.keepColumns()
	return a, nil
}

func (j *job) waitsForExecutor() {
	if !mutant.On("scheduler/waits-silently") {
		j.setPhase(schedulerv1.JobState_JOB_STATE_PLANNING, "", "waiting for an executor")
	}
}

// keepColumns puts what was bound over all files into the sources, so that every task sees the same columns whatever its share.
func (a *analysis) keepColumns() {
	for _, st := range a.result.Stats {
		for _, src := range a.sources {
			if f := src.GetFile(); f != nil && src.View == st.View {
				f.Columns = st.Columns
			}
		}
	}
}

func (s *Server) analyzeOnce(ctx context.Context, req *executorv1.Analyze) (*executorv1.AnalyzeResult, error) {
	if n := proto.Size(req); n > rpc.MaxPayload {
		return nil, fail(codeResource, "read fewer or larger files, or a shorter text", "the statement and the list of its files take %d bytes; at most %d can be sent to an executor", n, rpc.MaxPayload)
	}
	res, err := s.pool.Analyze(ctx, req)
	if err != nil {
		if errors.Is(err, dispatch.ErrNoExecutor) {
			return nil, fail(codeNoExec, "", "%w", err)
		}
		return nil, err
	}
	if res.Error != nil {
		return nil, taskFailure(res.Error)
	}
	return res, nil
}

// taskFailure gives an executor's error the form that clients see.
func taskFailure(e *planv1.Error) *jobFailure {
	e = bounded.Error(e)
	code := codeInternal
	switch e.Class {
	case planv1.ErrorClass_ERROR_CLASS_USER, planv1.ErrorClass_ERROR_CLASS_IO:
		code = codeUser
	case planv1.ErrorClass_ERROR_CLASS_RESOURCE, planv1.ErrorClass_ERROR_CLASS_LIMIT:
		code = codeResource
	}
	return &jobFailure{JobError: journal.JobError{Code: code, Message: e.Message, Hint: e.Hint}}
}

func (s *Server) resolveSource(ctx context.Context, j *job, u *executorv1.UnresolvedSource) (*planv1.Source, error) {
	src := &planv1.Source{View: u.View, Alias: u.Alias}
	if len(u.Table) == 1 {
		if rec := s.caches.find(j.owner, u.Table[0]); rec != nil {
			if err := s.stillPermitted(j.owner, rec.Does); err != nil {
				return nil, err
			}
			return src, rec.bind(src)
		}
	}
	if len(u.Table) > 0 {
		scan, err := s.planRead(ctx, j, scanOf(u))
		if err != nil {
			return nil, err
		}
		src.Kind = &planv1.Source_Table{Table: scan}
		return src, nil
	}
	paths, function := u.Paths, u.Function
	if u.Path != "" {
		paths = []string{u.Path}
		if function = readerFor(u.Path); function == "" {
			return nil, fail(codeUser, "write read_parquet('…'), read_csv('…') or read_json('…'); of a table with such a name also its schema's, as in s.\"a/b\"",
				"%q: its name does not say what kind of file it is", u.Path)
		}
	}
	files, err := s.resolveFiles(ctx, j, paths)
	if err != nil {
		return nil, sourceFailure(err)
	}
	src.Kind = &planv1.Source_File{File: &planv1.FileSource{Function: function, Options: u.Options, Files: files}}
	return src, nil
}

// readerFor is the table function that reads a file of this name, by DuckDB's own rules; "" if the name does not tell.
func readerFor(name string) string {
	name = strings.ToLower(name)
	for _, compressed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, compressed)
	}
	switch {
	case strings.HasSuffix(name, ".parquet"), strings.HasSuffix(name, ".parq"):
		return "read_parquet"
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"):
		return "read_csv"
	case strings.HasSuffix(name, ".json"), strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".ndjson"):
		return "read_json"
	}
	return ""
}

// tableRead is what of a table is to be read.
type tableRead struct {
	name   []string          // catalog, schema, table: as written
	ref    string            // branch or tag; empty: the main branch
	id     string            // snapshot, in place of ref
	asOf   *int64            // milliseconds since 1970, in place of both
	filter *planv1.Predicate // files without a row for which it is true may be left out
}

// planScan pins a table's current version and lists its files.
func (s *Server) planScan(ctx context.Context, j *job, name []string) (*planv1.TableScan, error) {
	return s.planRead(ctx, j, tableRead{name: name})
}

// planRead pins a version of a table and lists its files.
func (s *Server) planRead(ctx context.Context, j *job, r tableRead) (scan *planv1.TableScan, err error) {
	err = s.overCrashes(ctx, "PlanScan", func() (err error) {
		scan, err = s.planReadOfName(ctx, j, r)
		if other, ok := r.reference(); ok && err != nil && isMissing(err) { // the last part names a branch or a tag
			if found, otherErr := s.planReadOfName(ctx, j, other); otherErr == nil || !isMissing(otherErr) {
				scan, err = found, otherErr
			}
		}
		return err
	})
	return scan, err
}

func (s *Server) planReadOfName(ctx context.Context, j *job, r tableRead) (*planv1.TableScan, error) {
	t, err := s.resolveTable(r.name, j, toRead)
	if err != nil {
		return nil, err
	}
	scan, err := s.planReadOnce(ctx, j, t, r)
	if other := s.respelt(ctx, t, err); other != nil {
		return s.planReadOnce(ctx, j, other, r)
	}
	return scan, err
}

// planReadOnce lists the files that r asks for of a table that has been resolved.
func (s *Server) planReadOnce(ctx context.Context, j *job, t *target, r tableRead) (*planv1.TableScan, error) {
	lease, sink, err := s.readLease(ctx, j.id, t)
	if err != nil {
		return nil, err
	}
	defer lease.Close()
	st, err := sink.PlanScan(ctx, &sinkv1.PlanScanRequest{Lease: lease.Token(), Table: t.ref(), Version: r.id, Ref: r.ref, AsOfMillis: r.asOf, Filter: r.filter})
	if err != nil {
		return nil, s.sinkFailure(ctx, t, err)
	}
	scan := &planv1.TableScan{Table: t.String(), Catalog: t.entry.name, Ident: t.ident}
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, s.sinkFailure(ctx, t, err)
		}
		if m.Schema != nil {
			scan.Schema, scan.Version, scan.ConstantIds = m.Schema, m.Version, m.ConstantIds
			scan.Names, scan.ByName, scan.Branch, scan.RowLineage, scan.TotalFiles = m.Names, m.ByName, m.Branch, m.RowLineage, m.TotalFiles
		}
		for _, f := range m.Files {
			if err := s.ownFile(t, f); err != nil {
				return nil, err
			}
			pinned, err := pinScanFile(f)
			if err != nil {
				return nil, fail(codeInternal, "", "table %s: %w", t, err)
			}
			scan.Files = append(scan.Files, pinned)
		}
	}
	s.noteTable(j, t, lease)
	if scan.Schema == nil {
		return nil, fail(codeInternal, "", "table %s: the sink planned a scan without a schema", t)
	}
	return scan, nil
}

// ownFile refuses files outside of a storage sink's table: whoever can write into its directory says where they are, and executors read them with their own rights.
func (s *Server) ownFile(t *target, f *sinkv1.ScanFile) error {
	if t.entry.catalog != nil {
		return nil
	}
	location := t.entry.location(t.ident)
	own := func(file string) bool {
		if rest, below := strings.CutPrefix(file, location+"/"); below { // names are as they are, whatever is in them
			return !slices.Contains(strings.Split(rest, "/"), "..")
		}
		return slices.ContainsFunc(append([]string{location}, s.cfg.Catalogs[t.entry.name].DataPaths...), func(place string) bool {
			_, err := uri.Below(place, file)
			return err == nil
		})
	}
	files := []string{f.GetUri()}
	for _, d := range f.GetDeletes() {
		if len(d.GetInline()) == 0 {
			files = append(files, d.GetPath())
		}
	}
	for _, file := range files {
		if !own(file) {
			return fail(codeUser, "have the operator list its place in catalogs."+t.entry.name+".data_paths, if it is to be read", "table %s: the file %s lies outside of the table, which is at %s", t, file, location)
		}
	}
	return nil
}

// pinScanFile binds a data file and its delete files to the paths that executors open, or to the URIs that they fetch. Files of tables never change, so their
// time of change, or their version, says nothing and is not pinned.
func pinScanFile(f *sinkv1.ScanFile) (*planv1.PinnedFile, error) {
	path, remote, err := placeOf(f.Uri)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", f.Uri, err)
	}
	out := &planv1.PinnedFile{
		Path: path, Uri: remote, SizeBytes: f.SizeBytes, Constants: f.Constants, Name: f.Uri, RecordCount: f.RecordCount, FirstRowId: f.FirstRowId,
		DataSequenceNumber: f.DataSequenceNumber, Deletes: f.Deletes, Matched: f.Matched,
	}
	for _, d := range out.Deletes {
		if len(d.Inline) > 0 {
			continue
		}
		path, remote, err := placeOf(d.Path)
		if err != nil {
			return nil, fmt.Errorf("delete file %s: %w", d.Path, err)
		}
		d.Path, d.Uri = path, remote
	}
	return out, nil
}

// placeOf is the local file that a URI names, or the URI itself where that is of an object.
func placeOf(file string) (path, remote string, err error) {
	switch {
	case strings.HasPrefix(file, "file:///"):
		return strings.TrimPrefix(file, "file://"), "", nil
	case strings.HasPrefix(file, "file:/"):
		return strings.TrimPrefix(file, "file:"), "", nil
	case strings.HasPrefix(file, "/"):
		return file, "", nil
	}
	if scheme, _, _, err := uri.ParseKey(file); err != nil || scheme == uri.HTTP || scheme == uri.HTTPS {
		return "", "", fmt.Errorf("only local files and objects of s3://, gs:// and abfss:// can be read, not %q", file)
	}
	return "", file, nil
}
