package plan

import (
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"google.golang.org/protobuf/proto"
)

// maxWhole bounds the whole files that one task names, so that its message stays small.
const maxWhole = 10_000

func (r *RowLevelTasks) wholeLists() [][]*planv1.ReplacedFile {
	return slices.Collect(slices.Chunk(r.Whole, maxWhole))
}

// wholePlanner plans a write that only removes whole files: its tasks name them, and read nothing.
func (r *RowLevelTasks) wholePlanner() (Planner, error) {
	var tasks []*planv1.Task
	for i, list := range r.wholeLists() {
		t := r.wholeTask()
		t.Task, t.GetWrite().GetRewrite().Whole = int32(i), list //nolint:gosec // bounded by Validate
		tasks = append(tasks, t)
	}
	p := Physical{Tasks: tasks, Columns: [][]*planv1.Column{r.columns()}, Spec: r.Spec, Repeat: []bool{true}, Request: r.Request, Mode: r.Mode}
	p.Above = []*Node{
		{Op: OpCommit, Label: r.label(), Details: r.Request.Commit}, {Op: OpWrite, Label: r.Statement.Table, Details: []string{r.wholeText(), "no file is read or written"}},
	}
	return FromPhysical(r.Mode, p)
}

// wholeTask is a task that names whole files. Its query is not run.
func (r *RowLevelTasks) wholeTask() *planv1.Task {
	spec := proto.CloneOf(r.Spec)
	spec.SinkState = nil
	w := &planv1.WriteTask{Spec: spec, RowLineage: r.Statement.Lineage, Rewrite: &planv1.RewriteFiles{Changes: spec.GetRowChanges()}}
	for n, c := range r.columns()[:len(r.Statement.Schema.GetFields())] {
		w.Columns = append(w.Columns, &planv1.OutputColumn{Field: r.Statement.Schema.GetFields()[n], Input: int32(n), CastType: c.GetEngineType()}) //nolint:gosec // few
	}
	return &planv1.Task{Sql: "SELECT NULL WHERE false", Work: &planv1.Task_Write{Write: w}}
}

// withoutFiles is a table scan of none of its files.
func withoutFiles(s *planv1.Source) *planv1.Source {
	none := proto.CloneOf(s)
	none.GetTable().Files = nil
	return none
}

// wholeText says for people what goes by metadata alone; empty: nothing.
func (r *RowLevelTasks) wholeText() string {
	if len(r.Whole) == 0 {
		return ""
	}
	rows := int64(0)
	for _, f := range r.Whole {
		rows += f.GetDeletedRows()
	}
	return fmt.Sprintf("by metadata alone: %s with %s, every row of which goes", count(len(r.Whole), "file"), count(int(rows), "row"))
}

// TakeWhole takes the files of a scan of which the statement deletes every row: the condition is true for all of them, and how many there are is known
// without reading. exact: the filter of the scan is the statement's whole condition.
func (r *RowLevel) TakeWhole(scan *planv1.TableScan, exact bool) []*planv1.ReplacedFile {
	if r.Delete == nil || !exact {
		return nil
	}
	var whole []*planv1.ReplacedFile
	scan.Files = slices.DeleteFunc(scan.Files, func(f *planv1.PinnedFile) bool {
		rows, known := liveRows(f)
		if !f.GetMatched() || !known {
			return false
		}
		whole = append(whole, &planv1.ReplacedFile{Path: f.GetName(), RecordCount: rows, DeletedRows: rows})
		return true
	})
	return whole
}

// liveRows counts the rows of a file that no delete file has deleted. One that is about this file alone names each of its rows once; of several, or of
// deletes by value, nobody knows without reading.
func liveRows(f *planv1.PinnedFile) (int64, bool) {
	rows := f.GetRecordCount()
	switch d := f.GetDeletes(); {
	case len(d) == 0:
	case len(d) == 1 && (d[0].GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR || d[0].GetSingle()):
		rows -= d[0].GetRecordCount()
	default:
		return 0, false
	}
	return rows, rows > 0
}
