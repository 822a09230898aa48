package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// explained is the plan of a statement, for EXPLAIN: of one that writes, with what it would write, remove and meet.
func (s *Server) explained(j *job, st sql.Statement) (string, error) {
	if st, ok := st.(*sql.Select); ok {
		p, err := s.planSelect(j, st.Query)
		if err != nil {
			return "", err
		}
		return p.plan().Explain(), nil
	}
	j.dry = true
	p, err := s.plannedWrite(j, st)
	if err != nil {
		return "", err
	}
	dry, err := s.dryRun(j, p)
	if err != nil {
		return "", err
	}
	return p.text + dry, nil
}

// plannedWrite plans a statement that writes, and runs nothing.
func (s *Server) plannedWrite(j *job, st sql.Statement) (*planned, error) {
	switch st := st.(type) {
	case *sql.Insert:
		return s.planInsert(j, st)
	case *sql.Delete, *sql.Update, *sql.Merge:
		return s.planRowLevel(j, st)
	case *sql.Truncate:
		return s.planTruncate(j, st)
	case *sql.AddFiles:
		return s.planAddFiles(j, st)
	case *sql.CreateTable:
		if st.Query != nil {
			return s.planCreateAs(j, st)
		}
	}
	return nil, fail(codeUser, "", "this statement has no plan: it runs at once")
}

// covered is what of a table lies in the scope of a write.
type covered struct {
	files, rows int64
	deletes     bool   // some of the rows may be deleted already
	partly      string // a file of which the filter may cover some rows only; empty: none
	elsewhere   string // a file of another partition spec than the write's; empty: none
	spec        int32  // its spec
}

// dryRun says what a planned write would do to its table as it is now.
func (s *Server) dryRun(j *job, p *planned) (string, error) {
	lines := []string{"mode: " + modeText(p)}
	branch := p.branch
	if branch == "" {
		branch = mainBranch
	}
	head := p.spec.GetBaseVersion()
	switch {
	case p.spec.GetCreatesTable():
		lines = append(lines, "the table does not exist yet")
	case p.target.entry.catalog == nil: // such tables have no branches
		lines = append(lines, "version: "+cmp.Or(head, "none yet"))
	case head == "":
		lines = append(lines, "branch: "+sql.DisplayIdent(branch)+", which has no data yet")
	default:
		lines = append(lines, "branch: "+sql.DisplayIdent(branch)+", whose head is version "+head)
	}
	lines = append(lines, writesLine(p)...)
	removes, err := s.removesLine(j, p)
	if err != nil {
		return "", err
	}
	lines = append(lines, removes, "conflicts: "+conflictText(p))
	lines = append(lines, s.othersOn(j, p)...)
	return "Dry run:\n  " + strings.Join(lines, "\n  ") + "\n", nil
}

func modeText(p *planned) string {
	switch {
	case p.mode == sinkv1.WriteMode_WRITE_MODE_APPEND:
		return "append"
	case p.mode == sinkv1.WriteMode_WRITE_MODE_CREATE:
		return "create the table"
	case p.mode == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "replace the table"
	case p.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		return p.operation
	case p.scope.GetPartitions():
		return "overwrite by partition (dynamic)"
	case p.scope.GetFilter() != nil:
		return "overwrite by filter"
	case p.scope != nil:
		return "overwrite the whole table"
	}
	return p.operation
}

// planRows finds the rows that the engine expects of a plan's first operator.
var planRows = regexp.MustCompile(`^[^\n]*(?:rows|Estimated Cardinality): ~?(\d+)`)

// writesLine says how much the write would write, as far as the plan knows.
func writesLine(p *planned) []string {
	if p.plan == nil || p.unread {
		return []string{"writes: no rows"}
	}
	rows := p.rows
	if rows == "" {
		rows = "an unknown number of rows"
	}
	tasks := 1
	if st := p.plan.Stages; len(st) > 0 {
		tasks = st[len(st)-1].Tasks()
	}
	files := fmt.Sprintf("at least one file for each of %d tasks with rows", tasks)
	if tasks == 1 {
		files = "at least one file"
	}
	out := []string{"writes: " + rows + ", in " + files}
	if partitions := plan.PartitionsText(p.spec, p.fixedValues()); partitions != "" {
		out[0] += " and partition"
		out = append(out, "partitions: "+partitions)
	}
	return out
}

// rowsText says how many rows a query gives: what its files have where it takes each row by itself, or the engine's estimate; empty: nobody knows.
func rowsText(a *analysis) string {
	plan := a.result.GetPlanText()
	if n, ok := rowsRead(a); ok && !strings.Contains(plan, "UNNEST") {
		if strings.Contains(plan, "FILTER") || strings.Contains(plan, "Filters:") {
			return fmt.Sprintf("at most %d rows", n)
		}
		return fmt.Sprintf("%d rows", n)
	}
	m := planRows.FindStringSubmatch(plan)
	if m == nil || m[1] == "0" { // which is what the engine says of table functions that it knows nothing of
		return ""
	}
	return "about " + m[1] + " rows, by the engine's estimate"
}

// rowsRead counts the rows of a row-wise query's only source.
func rowsRead(a *analysis) (int64, bool) {
	if !a.result.GetRowWise() || len(a.sources) != 1 {
		return 0, false
	}
	for _, f := range a.sources[0].GetTable().GetFiles() {
		if len(f.GetDeletes()) > 0 {
			return 0, false
		}
	}
	sum, known := int64(0), false
	for _, st := range a.result.GetStats() {
		for _, f := range st.GetFiles() {
			if f.GetRows() < 0 {
				return 0, false
			}
			sum, known = sum+f.GetRows(), true
		}
	}
	return sum, known
}

// removesLine says what of the table lies in the scope.
func (s *Server) removesLine(j *job, p *planned) (string, error) {
	switch {
	case p.mode == sinkv1.WriteMode_WRITE_MODE_APPEND, p.spec.GetCreatesTable():
		return "removes: nothing", nil
	case p.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL:
		switch n := len(p.whole); {
		case p.unread:
			return fmt.Sprintf("removes: %d whole files", n), nil
		case n > 0:
			return fmt.Sprintf("removes: %d whole files; of the others what the condition finds when it runs", n), nil
		}
		return "removes: what the condition finds when it runs", nil
	}
	c, err := s.covers(j, p)
	if err != nil {
		return "", err
	}
	if err := c.wholly(p); err != nil {
		return "", err
	}
	what := fmt.Sprintf("%d files with %d rows", c.files, c.rows)
	if c.deletes {
		what += ", deleted ones included"
	}
	switch {
	case p.scope.GetPartitions():
		return "removes: of the table's " + what + " those in the partitions that are written", nil
	case p.scope.GetFilter() != nil:
		return "removes: " + what + ", all of which match; a file added meanwhile that matches in part refuses the statement", nil
	}
	return "removes: " + what, nil
}

// covers counts the files that are in a write's scope now: those that the sink cannot rule out.
func (s *Server) covers(j *job, p *planned) (c covered, err error) {
	req := &sinkv1.PlanScanRequest{Table: p.target.ref(), Ref: p.branch, Filter: p.scope.GetFilter()}
	err = s.overCrashes(j.ctx, "PlanScan", func() error {
		c, err = s.coversOnce(j.ctx, j, p.target, req, p.spec.GetSpecId())
		return err
	})
	return c, err
}

// wholly refuses what the commit would refuse, now that nothing has been read or written: an overwrite removes whole files.
func (c covered) wholly(p *planned) error {
	switch {
	case c.partly != "":
		return fail(codeUser, "use a condition on partition columns, or DELETE and INSERT",
			"%s: data file %s: the condition may hold for some of its rows only, and an overwrite removes whole files", p.target, c.partly)
	case c.elsewhere != "" && p.scope.GetPartitions() && len(p.spec.GetPartition()) > 0:
		return fail(codeUser, "rewrite the table's data files, or overwrite with REPLACE WHERE",
			"%s: data file %s is of partition spec %d, and the rows are written for spec %d: which of its rows the overwrite covers cannot be told", p.target, c.elsewhere, c.spec, p.spec.GetSpecId())
	}
	return nil
}

// removable checks before an overwrite runs that it can be committed. What others do meanwhile, the commit checks.
func (s *Server) removable(j *job, p *planned) error {
	several := p.scope.GetPartitions() && p.spec.GetSpecId() > 0 // with the first spec alone there is nothing to find out
	if p.mode != sinkv1.WriteMode_WRITE_MODE_OVERWRITE || p.spec.GetBaseVersion() == "" || p.scope.GetFilter() == nil && !several {
		return nil
	}
	plugin, err := s.steadyPlugin(j.ctx, p.target)
	if err != nil || !slices.Contains(plugin.Describe().GetCapabilities(), sinkv1.Capability_CAPABILITY_PLAN_SCAN) {
		return err
	}
	c, err := s.covers(j, p)
	if err != nil {
		return err
	}
	return c.wholly(p)
}

func (s *Server) coversOnce(ctx context.Context, j *job, t *target, req *sinkv1.PlanScanRequest, spec int32) (c covered, err error) {
	lease, sink, err := s.readLease(ctx, j.id, t)
	if err != nil {
		return c, err
	}
	defer lease.Close()
	req.Lease = lease.Token()
	st, err := sink.PlanScan(ctx, req)
	if err != nil {
		return c, s.sinkFailure(ctx, t, err)
	}
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, s.sinkFailure(ctx, t, err)
		}
		for _, f := range m.Files {
			c.files, c.rows, c.deletes = c.files+1, c.rows+f.RecordCount, c.deletes || len(f.Deletes) > 0
			if req.Filter != nil && !f.Matched {
				c.partly = f.Uri
			}
			if f.SpecId != spec {
				c.elsewhere, c.spec = f.Uri, f.SpecId
			}
		}
	}
}

// conflictText says what others may not do to the table meanwhile.
func conflictText(p *planned) string {
	switch p.mode {
	case sinkv1.WriteMode_WRITE_MODE_APPEND:
		return "none: what others commit meanwhile stays, and the rows are added to it"
	case sinkv1.WriteMode_WRITE_MODE_CREATE:
		return "fails if the table is created meanwhile"
	case sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "fails if the table is changed meanwhile"
	}
	after := " after version " + orNone(p.spec.GetBaseVersion())
	if p.mode == sinkv1.WriteMode_WRITE_MODE_OVERWRITE {
		if p.planner == nil {
			return "none: rows that others add before the commit are removed as well"
		}
		return "fails if others add rows in its scope" + after + ", unless it writes none itself"
	}
	rows := "rows in its scope"
	if filter := p.scope.GetFilter(); filter != nil && p.mode == sinkv1.WriteMode_WRITE_MODE_ROW_LEVEL {
		rows = "rows with " + plan.PredicateText(filter, p.spec.GetSchema())
	}
	return "fails if others change or add " + rows + after + ", as the table's isolation level has it"
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}

// shownOthers bounds how many jobs EXPLAIN names.
const shownOthers = 10

// othersOn lists the jobs that are writing to the table now.
func (s *Server) othersOn(own *job, p *planned) []string {
	s.mu.Lock()
	var ids []string
	for _, j := range s.jobs {
		j.mu.Lock()
		w := j.write
		j.mu.Unlock()
		if j != own && w != nil && !w.isFinal() && w.target.String() == p.target.String() && w.spec.GetBranch() == p.branch {
			ids = append(ids, fmt.Sprintf("%s (%s)", j.id, modeText(&planned{mode: w.mode, scope: w.spec.GetScope(), operation: "row-level"})))
		}
	}
	s.mu.Unlock()
	slices.Sort(ids)
	if len(ids) == 0 {
		return []string{"running jobs on this table: none"}
	}
	out := "running jobs on this table: " + strings.Join(ids[:min(len(ids), shownOthers)], ", ")
	if n := len(ids) - shownOthers; n > 0 {
		out += fmt.Sprintf(" and %d more", n)
	}
	return []string{out}
}

// checked counts what the tasks of VALIDATE would have written, by attempt.
type checked struct{ files map[string]int64 }

// asCheck makes a task that writes one that only checks.
func asCheck(t *planv1.Task) {
	if w := t.GetWrite(); w != nil {
		t.Work = &planv1.Task_Check{Check: &planv1.CheckTask{Write: w}}
	}
}
