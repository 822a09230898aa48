package scheduler

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/coordinator"
	"github.com/signet-io/signet/scheduler/commitreport"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// compaction is a call of rewrite_data_files.
type compaction struct {
	table    *target
	strategy string // binpack, sort
	order    string // of sort; empty: the table's
	where    string // which files, by their rows; empty: all
	options  map[string]string
}

// compactColumns are those of the answer, as Iceberg's procedure has them.
var compactColumns = []string{"rewritten_data_files_count:int", "added_data_files_count:int", "rewritten_bytes_count:int", "failed_data_files_count:int", "removed_delete_files_count:int"}

// kindRewrite is the kind of jobs that write data files or manifests anew.
const kindRewrite = "rewrite"

// defaultTarget is the size of files where the table does not say, in bytes.
const defaultTarget = 512 << 20

// rewriteDataFiles writes data files anew that are too small, too large, or have too many deleted rows. It is a write as every other: journalled, sealed, and
// taken up again after a restart. The rows stay the same.
func (s *Server) rewriteDataFiles(j *job, c compaction) error {
	j.update(func() { j.rec.Kind = kindRewrite })
	p, err := s.planCompaction(j, c)
	if err != nil {
		return err
	}
	if p == nil { // every file is as it should be
		return s.answer(j, compactColumns, []row{{int64(0), int64(0), int64(0), int64(0), int64(0)}})
	}
	return s.runPlanned(j, p)
}

// planCompaction is nil if there is nothing to rewrite.
func (s *Server) planCompaction(j *job, c compaction) (*planned, error) {
	plugin, err := s.steadyPlugin(j.ctx, c.table)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(plugin.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_REWRITE) {
		return nil, fail(codeUser, "", "rewrite_data_files is not supported in catalog %s: its sink %s does not replace files", c.table.entry.name, c.table.entry.sink)
	}
	p := &planned{target: c.table, mode: sinkv1.WriteMode_WRITE_MODE_REWRITE}
	scan, places, err := s.prepareCompaction(j, p)
	if err != nil {
		return nil, err
	}
	if err := s.positionNames(p.target, p.spec.GetSchema()); err != nil {
		return nil, err
	}
	sorted, err := c.sortSpec(p)
	if err != nil {
		return nil, err
	}
	options, err := plan.ParseCompactOptions(c.options, cmp.Or(p.spec.GetFiles().GetTargetFileSizeBytes(), defaultTarget))
	if err != nil {
		return nil, planFailure(err)
	}
	p.spec.Files.TargetFileSizeBytes = options.Target
	files := make([]plan.CompactFile, len(scan.Files))
	for i, f := range scan.Files {
		files[i] = plan.CompactFile{File: f, Partition: places[f.Name]}
	}
	if c.where != "" {
		if files, err = s.wanted(j, c, scan, files); err != nil {
			return nil, err
		}
	}
	groups := plan.CompactGroups(files, options, sorted)
	if len(groups) == 0 {
		return nil, nil
	}
	tasks := &plan.CompactTasks{
		Table: p.target.String(), Spec: p.spec, Target: scan, Groups: groups, Limit: options.TaskBytes(), Lineage: scan.GetRowLineage(), Mode: s.planner(j),
	}
	j.noteSources([]*planv1.Source{{View: plan.TargetView, Kind: &planv1.Source_Table{Table: tasks.Reads()}}})
	if tasks.Request, err = s.request(j, &analysis{result: &executorv1.AnalyzeResult{}}); err != nil {
		return nil, err
	}
	tasks.Request.Table = p.target.String()
	if p.planner, err = tasks.Planner(); err != nil {
		return nil, planFailure(err)
	}
	if p.first, err = p.planner.Next(nil); err != nil {
		return nil, planFailure(err)
	}
	p.plan = p.planner.Plan()
	p.text = p.plan.Explain()
	j.warn(p.plan.Warnings...)
	j.update(func() { j.plan = p.text })
	return p, nil
}

// sortSpec puts the order of rows into the write spec: the call's, the table's, or none.
func (c *compaction) sortSpec(p *planned) (sorted bool, err error) {
	switch c.strategy {
	case "", "binpack":
		if c.order != "" && c.strategy != "" {
			return false, fail(codeUser, "strategy => 'sort'", "rewrite_data_files: sort_order is for the strategy sort, not for binpack")
		}
		if c.order == "" {
			p.spec.Sort, p.spec.SortOrderId = nil, 0
			return false, nil
		}
	case "sort":
	default:
		return false, fail(codeUser, "strategies are binpack and sort", "rewrite_data_files: strategy %q is not known", c.strategy)
	}
	if c.order == "" {
		if len(p.spec.GetSort()) == 0 {
			return false, fail(codeUser, "give sort_order => 'a, b DESC'", "rewrite_data_files: table %s has no sort order", p.target)
		}
		return true, nil
	}
	order, err := plan.ParseOrder(c.order, p.spec.GetSchema())
	if err != nil {
		return false, planFailure(err)
	}
	same := slices.EqualFunc(order, p.spec.GetSort(), func(a, b *planv1.SortField) bool { return proto.Equal(a, b) })
	if p.spec.Sort = order; !same {
		p.spec.SortOrderId = 0 // it is none of the table's
	}
	return true, nil
}

// prepareCompaction asks the sink how the table is written, and which files it has in which partitions, of one version.
func (s *Server) prepareCompaction(j *job, p *planned) (scan *planv1.TableScan, places map[string]string, err error) {
	for range sameTries {
		if err := s.prepareInsert(j.ctx, j, p); err != nil {
			return nil, nil, err
		}
		if err := distinctColumns(p.target, p.spec.GetSchema().GetFields()); err != nil {
			return nil, nil, err
		}
		err = s.overCrashes(j.ctx, "PlanScan", func() (err error) {
			scan, places, err = s.scanPlaces(j, p, nil)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		if scan.GetVersion() == p.spec.GetBaseVersion() && sameNames(scan.GetSchema(), p.spec.GetSchema()) {
			scan.WithPositions = true
			if err := distinctFiles(p.target, scan.GetFiles()); err != nil {
				return nil, nil, err
			}
			return scan, places, nil
		}
	}
	return nil, nil, fail(codeConflict, "run the statement again", "table %s changed each of the %d times that it was looked at", p.target, sameTries)
}

// scanPlaces lists the files of a table, and the partition of each by its name. Files of an earlier partitioning are all in one: rewritten, they are
// partitioned as the table is now.
func (s *Server) scanPlaces(j *job, p *planned, filter *planv1.Predicate) (*planv1.TableScan, map[string]string, error) {
	t := p.target
	lease, sink, err := s.readLease(j.ctx, j.id, t)
	if err != nil {
		return nil, nil, err
	}
	defer lease.Close()
	st, err := sink.PlanScan(j.ctx, &sinkv1.PlanScanRequest{Lease: lease.Token(), Table: t.ref(), Partitions: true, Filter: filter})
	if err != nil {
		return nil, nil, s.sinkFailure(j.ctx, t, err)
	}
	scan, places := &planv1.TableScan{Table: t.String(), Catalog: t.entry.name, Ident: t.ident}, map[string]string{}
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			s.noteTable(j, t, lease)
			return scan, places, nil
		}
		if err != nil {
			return nil, nil, s.sinkFailure(j.ctx, t, err)
		}
		if m.Schema != nil {
			scan.Schema, scan.Version, scan.ConstantIds = m.Schema, m.Version, m.ConstantIds
			scan.Names, scan.ByName, scan.Branch, scan.RowLineage = m.Names, m.ByName, m.Branch, m.RowLineage
		}
		for _, f := range m.Files {
			if err := s.ownFile(t, f); err != nil {
				return nil, nil, err
			}
			pinned, err := pinScanFile(f)
			if err != nil {
				return nil, nil, fail(codeInternal, "", "table %s: %w", t, err)
			}
			scan.Files = append(scan.Files, pinned)
			if places[f.Uri] = ""; f.SpecId == p.spec.GetSpecId() {
				places[f.Uri] = "p" + string(f.Partition)
			}
		}
	}
}

// wanted leaves the files that may have rows for which the condition is true.
func (s *Server) wanted(j *job, c compaction, scan *planv1.TableScan, files []plan.CompactFile) ([]plan.CompactFile, error) {
	const view = plan.TargetView
	source := &planv1.Source{View: view, Alias: c.table.String(), Kind: &planv1.Source_Table{Table: scan}}
	if s.pool.Connected() == 0 {
		j.waitsForExecutor()
	}
	res, err := s.analyzeOnce(j.ctx, &executorv1.Analyze{
		RequestId: uuid.NewString(), NowMicros: j.rec.Submitted.UnixMicro(), Sources: []*planv1.Source{source},
		Sql:    "SELECT _pos FROM " + sql.QuoteIdent(view) + " AS " + sql.QuoteIdent(c.table.ident[len(c.table.ident)-1]) + " WHERE (" + c.where + "\n)",
		Target: &executorv1.RowTarget{View: view, Alias: c.table.ident[len(c.table.ident)-1]},
	})
	if err != nil {
		return nil, hinted(err, codeUser, "where => 'a condition over the columns of the table'")
	}
	if len(res.GetUnresolved()) > 0 {
		return nil, fail(codeUser, "name columns of the table", "rewrite_data_files: the condition reads %s, and may only be about the table's rows", strings.Join(res.GetUnresolved()[0].GetTable(), "."))
	}
	filter := res.GetFilters()[view].GetPredicate()
	if filter == nil {
		if filter, err = plan.ParseFilter(c.where, scan.GetSchema(), c.table.String()); err != nil {
			return nil, planFailure(err)
		}
	}
	pruned, _, err := s.scanPlaces(j, &planned{target: c.table, spec: &planv1.WriteSpec{}}, filter)
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, f := range pruned.GetFiles() {
		keep[f.GetName()] = true
	}
	return slices.DeleteFunc(files, func(f plan.CompactFile) bool { return !keep[f.File.GetName()] }), nil
}

// rewriteResult is what a call answers that rewrites something, as Iceberg's procedures do. m is the machine as it will be.
func (w *writeState) rewriteResult(m *coordinator.Machine) ([]byte, error) {
	l := landing(m, w.machine.Open())
	if w.rewritesManifests() {
		return manifestsResult(m, l)
	}
	t, bytes := m.Totals(), int64(0)
	for _, task := range w.tasks {
		for _, src := range task.GetSources() {
			for _, f := range src.GetTable().GetFiles() {
				bytes += f.GetSizeBytes()
			}
		}
	}
	removed := any(nil)
	if l != nil {
		n, _ := commitreport.Count(l.Summary, "removed-delete-files")
		removed = n
	}
	return inlineResult(compactColumns, []row{{t.ReplacedFiles, t.Files, bytes, int64(0), removed}})
}
