package plan

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// CompactTasks is what the tasks of a rewrite of data files are made of: each reads its groups whole and writes the rows that are left of them, with their
// lineage where the format has one.
type CompactTasks struct {
	Table   string            // for messages
	Spec    *planv1.WriteSpec // Sort is how rows are ordered; none: as they come
	Target  *planv1.TableScan // the table, with positions
	Groups  [][]*planv1.PinnedFile
	Limit   int64 // bytes of small groups that one task takes together
	Lineage bool
	Request Request // Limits, Root
	Mode    Mode
}

// groupsPerTask bounds how many groups one task takes: their partitions are open together.
const groupsPerTask = 200

// Planner makes the planner of the rewrite.
func (c *CompactTasks) Planner() (Planner, error) {
	columns, err := c.columns()
	if err != nil {
		return nil, err
	}
	var tasks []*planv1.Task
	files, bytes := 0, int64(0)
	for _, share := range c.shares() {
		files, bytes = files+len(share), bytes+bytesOf(share)
		tasks = append(tasks, c.task(len(tasks), share, columns))
	}
	p := Physical{Tasks: tasks, Columns: [][]*planv1.Column{columns}, Spec: c.Spec, Repeat: []bool{true}, Request: c.Request, Mode: c.Mode}
	order := "rows stay as they come"
	if len(c.Spec.GetSort()) > 0 {
		order = "rows are sorted within each group"
	}
	how := "row groups are copied as they are where they can be: not those of files with deleted rows, nor small ones"
	if why := c.unspliced(); why != "" {
		how = "no row groups are copied as they are, because " + why
	}
	p.Above = []*Node{
		{Op: OpCommit, Label: c.Table + " (rewrite of data files, planned on version " + c.Spec.GetBaseVersion() + ")"},
		{Op: OpWrite, Label: c.Table, Details: []string{fmt.Sprintf("%s, %s are written anew; %s", count(files, "file"), ByteText(bytes), order), how}},
	}
	return FromPhysical(c.Mode, p)
}

// unspliced is why nothing is copied as it is, whatever the files are like; empty: it depends on them. The executor decides.
func (c *CompactTasks) unspliced() string {
	switch {
	case c.Request.Tuning.NoSplice || c.Spec.GetFiles().GetNoSplice():
		return "it is switched off"
	case c.Lineage:
		return "the rows keep their ids, which become columns of their files"
	case len(c.Spec.GetSort()) > 0:
		return "rows are sorted"
	}
	return ""
}

// shares puts small groups together, in their order.
func (c *CompactTasks) shares() [][]*planv1.PinnedFile {
	var out [][]*planv1.PinnedFile
	var share []*planv1.PinnedFile
	groups, size := 0, int64(0)
	for _, g := range c.Groups {
		n := bytesOf(g)
		if groups > 0 && (size+n > c.Limit || groups == groupsPerTask) {
			out, share, groups, size = append(out, share), nil, 0, 0
		}
		share, groups, size = append(share, g...), groups+1, size+n
	}
	if groups > 0 {
		out = append(out, share)
	}
	return fewer(out, c.Request.Limits.MaxTasks)
}

// fewer joins neighbours until there are at most so many shares; 0: as many as there are.
func fewer(shares [][]*planv1.PinnedFile, most int) [][]*planv1.PinnedFile {
	if most <= 0 || len(shares) <= most {
		return shares
	}
	out := make([][]*planv1.PinnedFile, most)
	for i, share := range shares {
		at := i * most / len(shares)
		out[at] = append(out[at], share...)
	}
	return out
}

func (c *CompactTasks) task(n int, files []*planv1.PinnedFile, columns []*planv1.Column) *planv1.Task {
	spec := proto.CloneOf(c.Spec)
	spec.SinkState = nil
	w := &planv1.WriteTask{Spec: spec, SortForPartitions: len(spec.GetPartition()) > 0, RowLineage: c.Lineage, Splice: c.unspliced() == "", Rewrite: &planv1.RewriteFiles{View: TargetView}}
	var names []string
	for i, f := range c.Spec.GetSchema().GetFields() {
		names = append(names, sql.QuoteIdent(f.GetName()))
		w.Columns = append(w.Columns, &planv1.OutputColumn{Field: f, Input: int32(i), CastType: columns[i].GetEngineType()}) //nolint:gosec // few
	}
	if c.Lineage {
		names = append(names, "_row_id", "_last_updated_sequence_number")
	}
	scan := scanOf(c.Target, files)
	return &planv1.Task{
		Task: int32(n), Sql: "SELECT " + strings.Join(names, ", ") + " FROM " + TargetView, //nolint:gosec // bounded by the plan's limits
		Sources: []*planv1.Source{{View: TargetView, Alias: c.Table, Kind: &planv1.Source_Table{Table: scan}}},
		Work:    &planv1.Task_Write{Write: w},
	}
}

// columns are those of a task's rows.
func (c *CompactTasks) columns() ([]*planv1.Column, error) {
	var out []*planv1.Column
	for _, f := range c.Spec.GetSchema().GetFields() {
		text, err := CastType(f.GetType())
		if err != nil {
			return nil, &Error{Message: fmt.Sprintf("column %s of %s cannot be written: %v", sql.DisplayIdent(f.GetName()), c.Table, err)}
		}
		out = append(out, &planv1.Column{Name: f.GetName(), Type: f.GetType(), EngineType: text})
	}
	if c.Lineage {
		for _, name := range []string{"_row_id", "_last_updated_sequence_number"} {
			out = append(out, &planv1.Column{Name: name, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, EngineType: "BIGINT"})
		}
	}
	return out, nil
}

// ParseOrder reads a sort order as ORDERED BY takes it, over the columns of a table: 'a DESC NULLS LAST, bucket(4, b)'.
func ParseOrder(text string, schema *planv1.Schema) ([]*planv1.SortField, error) {
	bad := func(format string, args ...any) error {
		return &Error{Message: fmt.Sprintf("sort order %q: %s", text, fmt.Sprintf(format, args...)), Hint: "write it as ORDERED BY takes it: 'a DESC NULLS LAST, bucket(4, b)'"}
	}
	if strings.Contains(strings.ToLower(text), "zorder") {
		return nil, bad("z-order is not supported")
	}
	st, err := sql.Parse("CREATE TABLE t (x BIGINT) ORDERED BY (" + text + ")")
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, bad("%s", first)
	}
	def, ok := st.(*sql.CreateTable)
	if !ok || len(def.Sort) == 0 || def.Query != nil || len(def.Properties) > 0 || len(def.Partition) > 0 {
		return nil, bad("it is no list of columns")
	}
	var problems problems
	clauses := &sinkv1.TableDefinition{Schema: schema}
	if sortClauses(&problems, clauses, def.Sort); problems.err() != nil {
		return nil, problems.err()
	}
	names := fieldNames(schema.GetFields())
	var out []*planv1.SortField
	for _, c := range clauses.GetSort() {
		f := schema.GetFields()[slices.Index(names, c.GetColumn())]
		out = append(out, &planv1.SortField{SourceId: f.GetId(), Transform: c.GetTransform(), Param: c.GetParam(), Descending: c.GetDescending(), NullsFirst: c.GetNullsFirst()})
	}
	return out, nil
}

// Reads is the scan of all files that are rewritten.
func (c *CompactTasks) Reads() *planv1.TableScan { return scanOf(c.Target, slices.Concat(c.Groups...)) }

// ParseFilter reads a condition over the columns of a table: comparisons with constants, IN, BETWEEN, IS NULL, joined by AND, OR and NOT.
func ParseFilter(text string, schema *planv1.Schema, table string) (*planv1.Predicate, error) {
	c, err := sql.ParseCondition(text)
	if err != nil {
		why, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &Error{Message: fmt.Sprintf("where %q: files cannot be chosen by it: %s", text, why), Hint: "compare columns with constants, for example day >= DATE '2026-01-31' AND region IN ('eu', 'us')"}
	}
	return BindCondition(c, schema, table, "where")
}
