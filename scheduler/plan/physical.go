package plan

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
	"google.golang.org/protobuf/proto"
)

// Request is everything that a plan is made of.
type Request struct {
	SQL     string           // over the sources' views, as analysed
	Columns []*planv1.Column // the query's
	Input   Input
	Limits  Limits
	// A write has Table, Spec and Output; a SELECT has none of them.
	Table  string // for messages
	Create bool   // the commit creates the table
	Spec   *planv1.WriteSpec
	Output []*planv1.OutputColumn
	// MaxResultBytes caps a SELECT's result.
	MaxResultBytes int64
	Root           Predicate // nil: DefaultRoot
	EngineText     string    // DuckDB's own plan, for EXPLAIN
}

// Plan is what runs: stages of tasks, and an operator that the scheduler runs once after them.
type Plan struct {
	Root       *Node // nil: none
	Stages     []Stage
	Warnings   []string
	engineText string
}

// Stage is a part of the plan that runs as tasks side by side.
type Stage struct {
	ID    int32
	Plan  *Node
	Split Split
	work  *planv1.Task // what all tasks of the stage have in common
}

// Tasks is the number of tasks of a stage; at least 1.
func (s Stage) Tasks() int { return len(s.Split.Shares) }

// Build makes the plan of a query or a write.
func Build(r Request) (*Plan, error) {
	split := oneResult(r)
	if r.Spec != nil {
		split = SplitInput(r.Input, r.Limits)
	}
	root, rest, err := SplitRoot(tree(r), r.Root)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Op != OpCommit {
		return nil, &Error{Message: fmt.Sprintf("%s as a scheduler root is not supported yet", root.Op), Hint: "leave signet.scheduler.root unset"}
	}
	out := &Plan{Root: root, engineText: r.EngineText, Warnings: r.Spec.GetWarnings()}
	for i, node := range CutStages(rest) {
		out.Stages = append(out.Stages, Stage{ID: int32(i), Plan: node, Split: split, work: work(r)})
	}
	return out, nil
}

// oneResult: the rows of a SELECT go to the client in one stream.
func oneResult(r Request) Split {
	return single(r.Input, "the result goes to the client as one stream")
}

func work(r Request) *planv1.Task {
	if r.Spec == nil {
		return &planv1.Task{Sql: r.SQL, Work: &planv1.Task_Result{Result: &planv1.ResultTask{MaxBytes: r.MaxResultBytes}}}
	}
	spec := proto.CloneOf(r.Spec)
	spec.SinkState = nil // executors have no use for it, and it may be large
	return &planv1.Task{Sql: r.SQL, Work: &planv1.Task_Write{Write: &planv1.WriteTask{
		Columns: r.Output, Spec: spec, SortForPartitions: SortForPartitions(r.Spec),
	}}}
}

// Task gives task number i of a stage: its query, sources and work. The caller fills in job, attempt, epoch and the attempt's prefix. Each
// call returns a message of its own, but parts that all tasks share (columns, spec, sources) are shared: do not change them.
func (s Stage) Task(i int) *planv1.Task {
	out := &planv1.Task{Stage: s.ID, Task: int32(i), Sql: s.work.GetSql(), Sources: s.Split.Shares[i]}
	switch w := s.work.GetWork().(type) {
	case *planv1.Task_Write:
		out.Work = &planv1.Task_Write{Write: &planv1.WriteTask{
			Columns: w.Write.GetColumns(), Spec: w.Write.GetSpec(), SortForPartitions: w.Write.GetSortForPartitions(),
		}}
	case *planv1.Task_Result:
		out.Work = &planv1.Task_Result{Result: &planv1.ResultTask{MaxBytes: w.Result.GetMaxBytes()}}
	}
	return out
}

// openFiles is how many partitions one task writes side by side without sorting first; DuckDB itself begins to flush at 100.
const openFiles = 64

// manyPartitions stands for a number that nobody knows.
const manyPartitions = 1 << 20

// SortForPartitions guesses from the transforms whether a task meets more partitions than it can keep open.
func SortForPartitions(spec *planv1.WriteSpec) bool {
	expected := int64(1)
	for _, f := range spec.GetPartition() {
		expected *= partitionsOf(f, spec.GetSchema())
		if expected > openFiles {
			return true
		}
	}
	return false
}

func partitionsOf(f *planv1.PartitionField, schema *planv1.Schema) int64 {
	switch f.GetTransform() {
	case planv1.TransformKind_TRANSFORM_KIND_VOID:
		return 1
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		return max(int64(f.GetParam()), 1)
	case planv1.TransformKind_TRANSFORM_KIND_YEAR:
		return 8
	case planv1.TransformKind_TRANSFORM_KIND_MONTH:
		return openFiles
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		if src := FieldByID(schema.GetFields(), f.GetSourceId()); src.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_BOOLEAN {
			return 3
		}
	}
	return manyPartitions
}

// FieldByID finds a field at any depth; nil: there is none.
func FieldByID(fields []*planv1.Field, id int32) *planv1.Field {
	for _, f := range fields {
		if f.GetId() == id {
			return f
		}
		if inner := FieldByID(f.GetType().GetFields(), id); inner != nil {
			return inner
		}
	}
	return nil
}

// tree builds Scan → Fragment → Write → Commit, or Scan → Fragment → Result.
func tree(r Request) *Node {
	var scans []*Node
	for _, s := range r.Input.Sources {
		scans = append(scans, scanNode(s))
	}
	fragment := &Node{Op: OpFragment, Details: sqlLines(r.SQL), Inputs: scans}
	if r.Input.RowWise {
		fragment.Label = "(row-wise)"
	}
	if r.Spec == nil {
		return &Node{Op: OpResult, Label: "to the client", Details: columnLines(r.Columns), Inputs: []*Node{fragment}}
	}
	write := &Node{Op: OpWrite, Label: r.Table, Details: writeLines(r), Inputs: []*Node{fragment}}
	return &Node{Op: OpCommit, Label: commitLabel(r), Inputs: []*Node{write}}
}

func commitLabel(r Request) string {
	switch {
	case r.Create:
		return r.Table + " (creates the table)"
	case r.Spec.GetBaseVersion() == "":
		return r.Table + " (append, the table has no data yet)"
	}
	return r.Table + " (append, planned on version " + r.Spec.GetBaseVersion() + ")"
}

func scanNode(s *planv1.Source) *Node {
	files := filesOf(s)
	bytes := int64(0)
	for _, f := range files {
		bytes += f.GetSizeBytes()
	}
	size := count(len(files), "file") + ", " + ByteText(bytes)
	if t := s.GetTable(); t != nil {
		version := ""
		if t.GetVersion() != "" {
			version = " version " + t.GetVersion()
		}
		return &Node{Op: OpScan, Label: t.GetTable() + version + ": " + size}
	}
	n := &Node{Op: OpScan, Label: s.GetFile().GetFunction() + ": " + size}
	const names = 3
	for i, f := range files {
		if i == names {
			n.Details = append(n.Details, fmt.Sprintf("… %d more", len(files)-names))
			break
		}
		name := f.GetName()
		if name == "" {
			name = f.GetPath()
		}
		n.Details = append(n.Details, sql.QuoteString(name))
	}
	return n
}

func sqlLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}
