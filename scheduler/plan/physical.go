package plan

import (
	"cmp"
	"fmt"
	"strings"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/bounded"
	"github.com/signet-io/signet/scheduler/sql"
	"google.golang.org/protobuf/proto"
)

// Request is everything that a plan is made of.
type Request struct {
	SQL     string           // over the sources' views, as analysed
	Columns []*planv1.Column // the query's
	Staged  *executorv1.StagedQuery
	Input   Input
	Limits  Limits
	Tuning  Tuning
	// A write has Table, Spec and Output; a SELECT has none of them.
	Table        string   // for messages
	Create       bool     // the commit creates the table
	Operation    string   // of the commit, for EXPLAIN; empty: append
	Commit       []string // what the commit does besides adding rows, for EXPLAIN
	Spec         *planv1.WriteSpec
	Output       []*planv1.OutputColumn
	Distribution Distribution
	Guard        *Guard // a write's rows must satisfy it; nil: nothing
	// MaxResultBytes caps a SELECT's result.
	MaxResultBytes int64
	Keep           bool      // a SELECT's rows stay on executors, for the scheduler to fetch and keep: a cached table
	Pipelined      bool      // rows leave the job while it runs
	Root           Predicate // nil: DefaultRoot
	EngineText     string    // DuckDB's own plan, for EXPLAIN
}

// Tuning is what a session asks for.
type Tuning struct {
	Partitions int32 // of each hash exchange; 0: by size
	NoSplice   bool  // nothing of Parquet files is copied as it is
}

// Plan is what runs: stages of tasks, and an operator that the scheduler runs once after them.
type Plan struct {
	Root       *Node // nil: none
	Stages     []Stage
	Columns    []*planv1.Column // of the last stage's rows, as the query calls them
	Warnings   []string
	engineText string
	later      []*Node // what is not planned yet, the last first
}

// Stage is a part of the plan that runs as tasks side by side.
type Stage struct {
	ID     int32
	Plan   *Node
	Split  Split
	Inputs []int32 // stages that it reads
	// Stored: the tasks' rows stay on their executors, as Exchange says.
	Stored     bool
	Repeatable bool     // a task that runs again gives the same rows in the same partitions
	Notes      []string // for EXPLAIN

	sql     string
	columns []*planv1.Column
	work    *planv1.Task   // what all tasks of the stage have in common
	fixed   []*planv1.Task // of a physical plan
}

// Tasks is the number of tasks of a stage; at least 1.
func (s Stage) Tasks() int { return len(s.Split.Shares) }

// Columns are those of the stage's rows.
func (s Stage) Columns() []*planv1.Column { return s.columns }

// Exchange says how a stage's rows are kept; nil if they are not.
func (s Stage) Exchange() *planv1.ExchangeTask { return s.work.GetExchange() }

func (b *builder) writeWork(text string) *planv1.Task {
	spec := proto.CloneOf(b.req.Spec)
	spec.SinkState = nil // executors have no use for it, and it may be large
	return &planv1.Task{Sql: text, Work: &planv1.Task_Write{Write: &planv1.WriteTask{
		Columns: b.req.Output, Spec: spec, SortForPartitions: SortForPartitions(b.req.Spec), Splice: !b.req.Tuning.NoSplice && !spec.GetFiles().GetNoSplice(),
	}}}
}

// Task gives task number i of a stage: its query, sources and work. The caller fills in job, attempt, epoch, the attempt's prefix, the
// ticket of an exchange, and the parts of exchange sources (FillParts). Each call returns a message of its own, but parts that all tasks
// share (columns, spec, sources) are shared: do not change them.
func (s Stage) Task(i int) *planv1.Task {
	common := s.work
	if s.fixed != nil {
		common = s.fixed[i]
	}
	out := &planv1.Task{Stage: s.ID, Task: int32(i), Sql: common.GetSql(), Sources: s.Split.Shares[i]}
	work := s.work
	if work == nil || common.GetWrite().GetRewrite() != nil { // tasks that rewrite files differ in what they are about
		work = common
	}
	switch w := work.GetWork().(type) {
	case *planv1.Task_Write:
		out.Work = &planv1.Task_Write{Write: &planv1.WriteTask{
			Columns: w.Write.GetColumns(), Spec: w.Write.GetSpec(), SortForPartitions: w.Write.GetSortForPartitions(),
			Rewrite: w.Write.GetRewrite(), RowLineage: w.Write.GetRowLineage(), Splice: w.Write.GetSplice(), Add: w.Write.GetAdd(),
		}}
	case *planv1.Task_Result:
		out.Work = &planv1.Task_Result{Result: &planv1.ResultTask{MaxBytes: w.Result.GetMaxBytes()}}
	case *planv1.Task_Exchange:
		out.Work = &planv1.Task_Exchange{Exchange: &planv1.ExchangeTask{
			Kind: w.Exchange.GetKind(), Keys: w.Exchange.GetKeys(), Partitions: w.Exchange.GetPartitions(),
		}}
	}
	return out
}

// check holds a finished batch against the limits: nothing that is planned may be larger.
func (b *builder) check() error {
	total := 0
	for _, s := range b.plan.Stages {
		if s.Tasks() > b.limits.MaxTasks {
			return &Error{Message: fmt.Sprintf("stage %d has %d tasks; at most %d are allowed", s.ID, s.Tasks(), b.limits.MaxTasks), Hint: "set signet.partitions lower, or signet.max_tasks higher"}
		}
		total += s.Tasks()
	}
	if len(b.plan.Stages) > b.limits.MaxStages {
		return &Error{Message: fmt.Sprintf("the plan has %d stages; at most %d are allowed", len(b.plan.Stages), b.limits.MaxStages), Hint: "write parts of the statement to tables and query those"}
	}
	if total > b.limits.MaxJobTasks {
		return &Error{Message: fmt.Sprintf("the plan has %d tasks; at most %d are allowed in one job", total, b.limits.MaxJobTasks), Hint: "set signet.max_tasks or signet.partitions lower"}
	}
	return nil
}

// unplaced lists the queries of the logical plan that wait for measures, the last first.
func (b *builder) unplaced() []*Node {
	var out []*Node
	for i := len(b.segments) - 1; i >= 0; i-- {
		if u := b.segments[i]; u.placed < 0 && !u.absorbed {
			out = append(out, &Node{Op: OpFragment, Label: u.query.GetLabel(), Details: sqlLines(u.sql())})
		}
	}
	if w := b.pendingWrite; w != nil {
		out = append(out, &Node{Op: w.node.Op, Label: w.node.Label, Details: w.node.Details})
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

func commitLabel(r Request) string {
	operation := cmp.Or(r.Operation, "append")
	switch {
	case r.Create:
		return r.Table + " (creates the table)"
	case r.Spec.GetBaseVersion() == "":
		return r.Table + " (" + operation + ", the table has no data yet)"
	}
	return r.Table + " (" + operation + ", planned on version " + r.Spec.GetBaseVersion() + ")"
}

func scanNode(s *planv1.Source) *Node {
	files := filesOf(s)
	bytes := int64(0)
	for _, f := range files {
		bytes += f.GetSizeBytes()
	}
	size := count(len(files), "file") + ", " + ByteText(bytes)
	if t := s.GetTable(); t != nil {
		if all := t.GetTotalFiles(); all > int64(len(files)) {
			size = fmt.Sprintf("%d of %s, %s", len(files), count(int(all), "file"), ByteText(bytes))
		}
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

// maxShown bounds the text of one query in EXPLAIN, in bytes.
const maxShown = 64 << 10

func sqlLines(text string) []string {
	text = bounded.Text(text, maxShown)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	return lines
}
