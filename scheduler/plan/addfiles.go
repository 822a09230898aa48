package plan

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// AddTasks is what the tasks of ADD FILES are made of, where the files stay where they are: each checks its files and reports them.
type AddTasks struct {
	Table           string // for messages
	Spec            *planv1.WriteSpec
	Files           []*planv1.PinnedFile
	CheckDuplicates bool
	Request         Request // Limits, Root
	Mode            Mode
}

// filesPerTask is how many footers are worth a task of their own.
const filesPerTask = 500

// AddView is the name of the files of a task; no query reads it.
const AddView = "added_files"

// Planner makes the planner of the write.
func (a *AddTasks) Planner() (Planner, error) {
	spec := proto.CloneOf(a.Spec)
	spec.SinkState = nil
	per := filesPerTask
	if most := a.Request.Limits.MaxTasks; most > 0 {
		per = max(per, (len(a.Files)+most-1)/most)
	}
	columns, out, err := a.columns()
	if err != nil {
		return nil, err
	}
	var tasks []*planv1.Task
	for start := 0; start < len(a.Files); start += per {
		files := a.Files[start:min(start+per, len(a.Files))]
		tasks = append(tasks, &planv1.Task{
			Task: int32(len(tasks)), Sql: "SELECT * FROM " + AddView, //nolint:gosec // bounded by the plan's limits
			Sources: []*planv1.Source{{View: AddView, Alias: AddView, Kind: &planv1.Source_File{File: &planv1.FileSource{
				Function: "read_parquet", Files: files,
			}}}},
			Work: &planv1.Task_Write{Write: &planv1.WriteTask{Spec: spec, Columns: out, Add: &planv1.AddFiles{CheckDuplicates: a.CheckDuplicates}}},
		})
	}
	details := []string{fmt.Sprintf("%s, %s become data files where they are: footers are read, no rows are copied", count(len(a.Files), "file"), ByteText(bytesOf(a.Files)))}
	if a.CheckDuplicates {
		details = append(details, "a file that the table has already refuses the statement")
	}
	if len(spec.GetPartition()) > 0 {
		details = append(details, "each file must be in one partition")
	}
	p := Physical{Tasks: tasks, Spec: a.Spec, Repeat: []bool{true}, Request: a.Request, Mode: a.Mode, Columns: [][]*planv1.Column{columns}}
	p.Above = []*Node{{Op: OpCommit, Label: a.Table}, {Op: OpWrite, Label: a.Table, Details: details}}
	return FromPhysical(a.Mode, p)
}

// columns are the table's: a file has those or none.
func (a *AddTasks) columns() (columns []*planv1.Column, out []*planv1.OutputColumn, err error) {
	for i, f := range a.Spec.GetSchema().GetFields() {
		text, err := CastType(f.GetType())
		if err != nil {
			return nil, nil, &Error{Message: fmt.Sprintf("column %s of %s cannot be written: %v", sql.DisplayIdent(f.GetName()), a.Table, err)}
		}
		columns = append(columns, &planv1.Column{Name: f.GetName(), Type: f.GetType(), EngineType: text})
		out = append(out, &planv1.OutputColumn{Field: f, Input: int32(i), CastType: text}) //nolint:gosec // few
	}
	return columns, out, nil
}
