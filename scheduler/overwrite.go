package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// overwrite is what a planned write has besides its query, where it is not a plain append.
type overwrite struct {
	text  string                  // what is removed, for people; empty: nothing is
	fixed map[int32]*planv1.Value // columns whose value a PARTITION clause gives
	guard *plan.Guard             // all rows must satisfy it
	uuid  string                  // of the table that field ids are of; empty: none were needed
}

// planOverwrite says what an INSERT removes, and which columns its PARTITION clause fills. What needs field ids costs a look at the table first.
func (s *Server) planOverwrite(j *job, p *planned, st *sql.Insert) error {
	p.over = &overwrite{}
	if st.Overwrite != nil {
		p.mode = sinkv1.WriteMode_WRITE_MODE_OVERWRITE
		if err := s.needs(j.ctx, p.target, sinkv1.Capability_CAPABILITY_OVERWRITE, "INSERT OVERWRITE", "DROP TABLE and CREATE TABLE AS make the table anew"); err != nil {
			return err
		}
		p.setScope(st.Overwrite.Mode, j.settings().OverwriteMode)
	}
	if len(st.Partition) == 0 && (st.Overwrite == nil || st.Overwrite.Where == nil) {
		return nil
	}
	d, err := s.describeWritten(j, p)
	if err != nil {
		return err
	}
	p.over.uuid = d.TableUuid
	if st.Overwrite != nil && st.Overwrite.Where != nil {
		return planFailure(p.filterBy(st.Overwrite.Where, d))
	}
	return planFailure(p.fixPartitions(st, d))
}

// setScope is what an overwrite removes where that is not a matter of columns.
func (p *planned) setScope(mode sql.OverwriteMode, setting string) {
	if mode == sql.OverwriteDefault && setting == plan.OverwriteDynamic {
		mode = sql.OverwritePartitions
	}
	switch mode {
	case sql.OverwriteDefault:
		p.scope, p.over.text = &planv1.Scope{Kind: &planv1.Scope_All{All: true}}, "all rows"
	case sql.OverwritePartitions:
		p.scope, p.over.text = &planv1.Scope{Kind: &planv1.Scope_Partitions{Partitions: true}}, "the rows of the partitions that rows are written to"
	}
}

func (p *planned) filterBy(where *sql.Condition, d *sinkv1.DescribeTableResponse) error {
	const clause = "REPLACE WHERE"
	filter, err := plan.BindCondition(where, d.Schema, p.target.String(), clause)
	if err != nil {
		return err
	}
	p.scope = &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: filter}}
	p.over.text = "rows with " + plan.PredicateText(filter, d.Schema)
	p.over.guard = &plan.Guard{Predicate: filter, Text: clause + " " + plan.PredicateText(filter, d.Schema)}
	return nil
}

// fixPartitions binds PARTITION (p = 'x', q) to the columns that the table is partitioned by.
func (p *planned) fixPartitions(st *sql.Insert, d *sinkv1.DescribeTableResponse) error {
	fixed, err := plan.FixPartitions(st.Partition, d.Schema, d.Partition, p.target.String())
	if err != nil {
		return err
	}
	p.over.fixed = fixed
	if st.Overwrite == nil || st.Overwrite.Mode != sql.OverwriteFixed {
		return nil
	}
	var terms []*planv1.Predicate
	for _, f := range d.Schema.GetFields() { // in the table's order
		if v, ok := fixed[f.Id]; ok {
			terms = append(terms, plan.EqualPredicate(f.Id, v))
		}
	}
	filter := plan.And(terms...)
	p.scope, p.over.text = &planv1.Scope{Kind: &planv1.Scope_Filter{Filter: filter}}, "rows with "+plan.PredicateText(filter, d.Schema)
	return nil
}

// describeWritten describes the table that is written. Where no table has the name as it is written, one that differs by case alone is meant.
func (s *Server) describeWritten(j *job, p *planned) (*sinkv1.DescribeTableResponse, error) {
	d, err := s.describe(j.ctx, j, p.target)
	if other := s.respelt(j.ctx, p.target, err); other != nil {
		p.target = other
		d, err = s.describe(j.ctx, j, p.target)
	}
	return d, err
}

// sameTable refuses to go on with the field ids of a table that was dropped and made anew meanwhile.
func (p *planned) sameTable() error {
	if p.over == nil || p.over.uuid == "" || p.over.uuid == p.spec.GetTableUuid() {
		return nil
	}
	return fail(codeConflict, "run the statement again", "table %s was dropped and created again while the statement was planned", p.target)
}

// fixedValues are the columns that the statement itself gives a value.
func (p *planned) fixedValues() map[int32]*planv1.Value {
	if p.over == nil {
		return nil
	}
	return p.over.fixed
}

func (p *planned) guard() *plan.Guard {
	if p.over == nil {
		return nil
	}
	return p.over.guard
}

// commitLines say what the commit does besides adding rows, for EXPLAIN.
func (p *planned) commitLines() []string {
	var out []string
	if p.branch != "" {
		out = append(out, "to branch "+sql.DisplayIdent(p.branch))
	}
	if id := p.spec.GetWapId(); id != "" {
		out = append(out, "staged as wap.id "+id+": no branch has it until publish_changes publishes it")
	}
	for _, c := range p.changes {
		out = append(out, "changes the table before: "+c)
	}
	switch {
	case p.over != nil && p.over.text != "":
		out = append(out, "removes "+p.over.text)
	case p.mode == sinkv1.WriteMode_WRITE_MODE_REPLACE:
		out = append(out, "replaces the table's definition and all of its rows; its history stays")
	}
	return out
}

// runTruncate runs TRUNCATE TABLE: an overwrite of all rows by none, which needs no executor.
func (s *Server) runTruncate(j *job, st *sql.Truncate) error {
	p, err := s.planTruncate(j, st)
	if st.IfExists && isNotFound(err) {
		return s.answer(j, []string{"result"}, []row{{fmt.Sprintf("table %s does not exist", st.Table)}})
	}
	if err != nil {
		return err
	}
	return s.runTaskless(j, p)
}

func (s *Server) planTruncate(j *job, st *sql.Truncate) (*planned, error) {
	t, branch, err := s.resolveWritten(st.Table.Strings(), j, toInsert)
	if err != nil {
		return nil, err
	}
	p := &planned{target: t, branch: branch, mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, over: &overwrite{}}
	if err := s.needs(j.ctx, t, sinkv1.Capability_CAPABILITY_OVERWRITE, "TRUNCATE TABLE", "DROP TABLE and CREATE TABLE make the table anew"); err != nil {
		return nil, err
	}
	if err := s.needsBranch(j.ctx, p); err != nil {
		return nil, err
	}
	p.setScope(sql.OverwriteDefault, "")
	if err := s.prepareInsert(j.ctx, j, p); err != nil {
		return nil, err
	}
	p.explainTaskless("TRUNCATE")
	return p, nil
}

// explainTaskless gives a write without tasks a plan to show: its commit.
func (p *planned) explainTaskless(what string) {
	lines := []string{fmt.Sprintf("[scheduler] Commit %s (%s)", p.target, what)}
	for _, l := range p.commitLines() {
		lines = append(lines, "  "+l)
	}
	if len(p.spec.GetWarnings()) > 0 {
		lines = append(lines, "Warnings:")
		for _, w := range p.spec.GetWarnings() {
			lines = append(lines, "  "+w)
		}
	}
	p.text = strings.Join(lines, "\n") + "\n"
}

// replaceTries bounds how often a table may appear or disappear while CREATE OR REPLACE is planned.
const replaceTries = 3

// replaceMode is how CREATE OR REPLACE TABLE begins: it makes a table, or replaces the one that is there.
func (s *Server) replaceMode(j *job, t *target) (sinkv1.WriteMode, error) {
	there, err := s.tableExists(j.ctx, j, t)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return sinkv1.WriteMode_WRITE_MODE_CREATE, nil
	}
	return sinkv1.WriteMode_WRITE_MODE_REPLACE, s.needs(j.ctx, t, sinkv1.Capability_CAPABILITY_REPLACE_TABLE, "CREATE OR REPLACE TABLE", "DROP TABLE and CREATE TABLE make the table anew, without its history")
}

// replaceTable runs CREATE OR REPLACE TABLE without a query.
func (s *Server) replaceTable(j *job, st *sql.CreateTable) error {
	t, err := s.resolveTable(st.Table.Strings(), j, toCreate|toDrop)
	if err != nil {
		return err
	}
	def, err := plan.Definition(st, nil)
	if err != nil {
		return planFailure(err)
	}
	if err := s.ensureSchema(j.ctx, t); err != nil {
		return err
	}
	s.warnOfTwin(j, t)
	p := &planned{target: t}
	if err := s.prepareCreate(j.ctx, j, p, st, def); err != nil {
		return err
	}
	p.explainTaskless("CREATE OR REPLACE TABLE")
	return s.runTaskless(j, p)
}

func isExists(err error) bool {
	var f *jobFailure
	return errors.As(err, &f) && f.Code == codeExists
}

// prepareCreate is PrepareWrite for CREATE TABLE AS, and for CREATE OR REPLACE TABLE AS, whose mode depends on what is there.
func (s *Server) prepareCreate(ctx context.Context, j *job, p *planned, st *sql.CreateTable, def *sinkv1.TableDefinition) (err error) {
	for try := 0; ; try++ {
		if st.Replace {
			if p.mode, err = s.replaceMode(j, p.target); err != nil {
				return err
			}
		}
		if err := s.placeCreated(ctx, p); err != nil {
			return err
		}
		p.spec, err = s.prepareWrite(ctx, j, p, def)
		if st.Replace && try < replaceTries && (isExists(err) || isNotFound(err)) {
			continue
		}
		return err
	}
}

// placeCreated chooses where a table goes that the commit creates.
func (s *Server) placeCreated(ctx context.Context, p *planned) (err error) {
	p.location = ""
	if p.mode != sinkv1.WriteMode_WRITE_MODE_CREATE || p.target.entry.catalog == nil {
		return nil
	}
	if p.location, err = p.target.entry.catalog.DefaultLocation(ctx, p.target.ident); err != nil {
		return catalogError(err, "table "+p.target.String())
	}
	return nil
}

// operationText is what the commit does, as snapshots call it.
func (p *planned) operationText() string {
	switch p.mode {
	case sinkv1.WriteMode_WRITE_MODE_OVERWRITE:
		return "overwrite"
	case sinkv1.WriteMode_WRITE_MODE_REPLACE:
		return "replaces the table"
	}
	return p.operation
}
