package plan

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
	"google.golang.org/protobuf/proto"
)

// RowLevelTasks is what the tasks of a row-level write are made of.
type RowLevelTasks struct {
	Statement *RowLevel
	Spec      *planv1.WriteSpec
	Target    *planv1.Source // the table's files, with positions
	// Whole are files of the table, none of Target's, of which every row goes: the commit removes them, and nothing reads them.
	Whole   []*planv1.ReplacedFile
	Found   *Found  // nil: nothing but whole files goes
	Why     string  // why there is one task; empty: the sizes decide
	Request Request // Limits, Root
	Mode    Mode
}

// Found is an analysed query of changes.
type Found struct {
	SQL     string // rewritten over the views of its sources
	Columns int
	Sources []*planv1.Source
	Clauses []*planv1.ChangeClause
}

// Tasks is how many tasks the table's files make: each file is whole in one of them.
func (r *RowLevelTasks) Tasks() int {
	if r.Found == nil {
		return max(1, len(r.wholeLists()))
	}
	if r.Why != "" {
		return 1
	}
	return len(r.shares().Shares)
}

func (r *RowLevelTasks) shares() Split {
	return SplitInput(Input{Sources: []*planv1.Source{r.Target}, RowWise: r.Why == "", NotRowWise: r.Why}, r.Request.Limits)
}

// Planner makes the planner of the write.
func (r *RowLevelTasks) Planner() (Planner, error) {
	if r.Found == nil {
		return r.wholePlanner()
	}
	split := r.shares()
	whole, inserts := len(split.Shares) == 1, r.Statement.Inserts()
	// One task finds everything. Of several each finds the rows of its files; which rows are new, only one can tell that sees the whole table.
	text := r.Found.SQL
	if !whole && inserts {
		text = r.found("IS NOT NULL")
	}
	var tasks []*planv1.Task
	for _, share := range split.Shares {
		tasks = append(tasks, r.task(text, share[0], true))
	}
	if !whole && inserts {
		tasks = append(tasks, r.task(r.found("IS NULL"), r.Target, false))
	}
	for i, list := range r.wholeLists() {
		if i == len(tasks) {
			tasks = append(tasks, r.wholeTask())
			tasks[i].Sources = append([]*planv1.Source{withoutFiles(r.Target)}, r.Found.Sources...)
		}
		tasks[i].GetWrite().GetRewrite().Whole = list
	}
	for i, t := range tasks {
		t.Task = int32(i) //nolint:gosec // bounded by Validate
	}
	p := Physical{Tasks: tasks, Columns: [][]*planv1.Column{r.columns()}, Spec: r.Spec, Repeat: []bool{true}, Request: r.Request, Mode: r.Mode}
	p.Above = []*Node{{Op: OpCommit, Label: r.label(), Details: r.Request.Commit}, {Op: OpWrite, Label: r.Statement.Table, Details: r.details(split)}}
	return FromPhysical(r.Mode, p)
}

// found is the query of changes without those that are for other tasks.
func (r *RowLevelTasks) found(file string) string {
	names := make([]string, r.Found.Columns)
	for i := range names {
		names[i] = fmt.Sprintf("i%d", i)
	}
	return "SELECT * FROM (" + r.Found.SQL + ") AS found(" + strings.Join(names, ", ") + ") WHERE i0 " + file
}

// task is one task without its place. replaces: it is about files of the table, and does not only add rows.
func (r *RowLevelTasks) task(text string, target *planv1.Source, replaces bool) *planv1.Task {
	spec := proto.CloneOf(r.Spec)
	spec.SinkState = nil
	changes := spec.GetRowChanges()
	w := &planv1.WriteTask{
		Spec: spec, SortForPartitions: SortForPartitions(r.Spec), RowLineage: r.Statement.Lineage,
		Rewrite: &planv1.RewriteFiles{Changes: changes, Changed: &planv1.ChangedRows{Table: changedTable, Sql: text, Clauses: r.Found.Clauses}},
	}
	for n, c := range r.columns()[:len(r.Statement.Schema.GetFields())] {
		w.Columns = append(w.Columns, &planv1.OutputColumn{Field: r.Statement.Schema.GetFields()[n], Input: int32(n), CastType: c.GetEngineType()}) //nolint:gosec // few
	}
	query := r.changedRows()
	if replaces {
		w.Rewrite.View = TargetView
		w.Rewrite.ChangesSql = "SELECT _file, count(*) FILTER (WHERE _op = " + op(planv1.RowOp_ROW_OP_DELETE) + "), count(*) FILTER (WHERE _op = " + op(planv1.RowOp_ROW_OP_UPDATE) +
			") FROM " + changedTable + " WHERE _file IS NOT NULL GROUP BY _file"
		w.Rewrite.CheckSql = r.Statement.check()
		switch changes {
		case planv1.RowChanges_ROW_CHANGES_POSITION_DELETES, planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS:
			w.Rewrite.PositionsSql = "SELECT _file, _pos FROM " + changedTable + " WHERE _file IS NOT NULL"
		default:
			query = r.keptRows() + query
		}
	}
	sources := append([]*planv1.Source{target}, r.Found.Sources...)
	return &planv1.Task{Sql: strings.TrimPrefix(query, unionAll), Sources: sources, Work: &planv1.Task_Write{Write: w}}
}

func op(o planv1.RowOp) string { return fmt.Sprint(int(o)) }

const unionAll = " UNION ALL "

// keptRows are those of the files that do not change.
func (r *RowLevelTasks) keptRows() string {
	var cols []string
	for _, f := range r.Statement.Schema.GetFields() {
		cols = append(cols, "t."+sql.QuoteIdent(f.GetName()))
	}
	if r.Statement.Lineage {
		cols = append(cols, "t._row_id", "t._last_updated_sequence_number")
	}
	return "SELECT " + strings.Join(cols, ", ") + " FROM " + TargetView + " AS t ANTI JOIN " + changedTable + " AS c ON (t._file = c._file AND t._pos = c._pos)"
}

// changedRows are those that are updated or new; empty where the statement only deletes.
func (r *RowLevelTasks) changedRows() string {
	writes := false
	for _, c := range r.Found.Clauses {
		writes = writes || c.GetOp() != planv1.RowOp_ROW_OP_DELETE
	}
	var cols []string
	for n, fd := range r.Statement.Schema.GetFields() {
		if c := fmt.Sprintf("c%d", n); writes {
			cols = append(cols, c)
		} else { // the table of changes has no such columns, and these rows are none
			text, _ := CastType(fd.GetType())
			cols = append(cols, "CAST(NULL AS "+text+")")
		}
	}
	if r.Statement.Lineage {
		cols = append(cols, "_row_id", "CAST(NULL AS BIGINT)")
	}
	return unionAll + "SELECT " + strings.Join(cols, ", ") + " FROM " + changedTable + " WHERE _op <> " + op(planv1.RowOp_ROW_OP_DELETE)
}

// columns are those of a task's rows.
func (r *RowLevelTasks) columns() []*planv1.Column {
	var out []*planv1.Column
	for _, f := range r.Statement.Schema.GetFields() {
		text, _ := CastType(f.GetType()) // clauses were checked before
		out = append(out, &planv1.Column{Name: f.GetName(), Type: f.GetType(), EngineType: text})
	}
	if r.Statement.Lineage {
		for _, name := range []string{"_row_id", "_last_updated_sequence_number"} {
			out = append(out, &planv1.Column{Name: name, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, EngineType: "BIGINT"})
		}
	}
	return out
}

// check finds a row of the table that several rows of the source are for, and says which.
func (r *RowLevel) check() string {
	if r.Merge == nil && (r.Update == nil || r.Update.From == nil) {
		return ""
	}
	var parts []string
	for _, name := range r.keyColumns() {
		col := "t." + sql.QuoteIdent(name)
		parts = append(parts, sql.QuoteString(sql.DisplayIdent(name)+" = ")+" || coalesce(CAST("+col+" AS VARCHAR), 'NULL')")
	}
	return "SELECT concat_ws(', ', " + strings.Join(parts, ", ") + ") FROM (SELECT _file, _pos FROM " + changedTable +
		" WHERE _file IS NOT NULL GROUP BY _file, _pos HAVING count(*) > 1 LIMIT 1) AS d JOIN " + TargetView + " AS t ON (t._file = d._file AND t._pos = d._pos)"
}

// keyColumns are those of the table that the condition of the match names, for messages.
func (r *RowLevel) keyColumns() []string {
	text := ""
	switch {
	case r.Merge != nil:
		text = r.Merge.On.Text
	case r.Update.Where != nil:
		text = r.Update.Where.Text
	}
	const most = 4
	names := fieldNames(r.Schema.GetFields())
	toks, _ := sql.Tokenize(text) // it was parsed before
	var out []string
	seen := map[int]bool{}
	for _, t := range toks {
		if t.Kind != sql.KindIdent && t.Kind != sql.KindQuoted {
			continue
		}
		if at, _ := sql.Find(t.Value, names); at >= 0 && !seen[at] && len(out) < most {
			seen[at] = true
			out = append(out, names[at])
		}
	}
	if len(out) == 0 {
		out = names[:min(len(names), most)]
	}
	return out
}

func (r *RowLevelTasks) label() string {
	version := ", the table has no data yet"
	if v := r.Spec.GetBaseVersion(); v != "" {
		version = ", planned on version " + v
	}
	return r.Statement.Table + " (" + r.Statement.Operation() + version + ")"
}

func (r *RowLevelTasks) details(split Split) []string {
	how := "copy-on-write: files with changed rows are written anew"
	switch r.Spec.GetRowChanges() {
	case planv1.RowChanges_ROW_CHANGES_POSITION_DELETES:
		how = "merge-on-read: changed rows go into position delete files"
	case planv1.RowChanges_ROW_CHANGES_DELETION_VECTORS:
		how = "merge-on-read: changed rows go into deletion vectors"
	}
	out := []string{how}
	if text := r.wholeText(); text != "" {
		out = append(out, text)
	}
	if split.Reason != "" {
		out = append(out, "not split: "+split.Reason)
	}
	return append(out, sqlLines(r.Found.SQL)...)
}
