package plan

import (
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Validate checks a physical plan as it came and returns its tasks by stage: every stage reads only stages that stand before it, agrees with
// them about columns and partitions, and all of its tasks do the same work. Errors wrap ErrPhysical or are an *Error about a limit.
func Validate(tasks []*planv1.Task, columns [][]*planv1.Column, limits Limits) ([][]*planv1.Task, error) {
	limits = limits.withDefaults()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrPhysical, fmt.Sprintf(format, args...))
	}
	if len(tasks) == 0 {
		return nil, bad("it has no tasks")
	}
	if len(tasks) > limits.MaxJobTasks {
		return nil, &Error{Message: fmt.Sprintf("the plan has %d tasks; at most %d are allowed in one job", len(tasks), limits.MaxJobTasks), Hint: "divide the work more coarsely"}
	}
	if err := complete(tasks, columns); err != nil {
		return nil, bad("%v", err)
	}
	var stages [][]*planv1.Task
	for _, t := range tasks {
		switch s := int(t.GetStage()); {
		case s < 0 || s >= limits.MaxStages:
			return nil, &Error{Message: fmt.Sprintf("the plan has a stage %d; at most %d stages are allowed", t.GetStage(), limits.MaxStages), Hint: "write parts of the work to tables"}
		case s == len(stages):
			stages = append(stages, nil)
		case s > len(stages):
			return nil, bad("stage %d follows stage %d: stages have consecutive numbers", s, len(stages)-1)
		case s < len(stages)-1:
			return nil, bad("task %d of stage %d stands behind stage %d", t.GetTask(), s, len(stages)-1)
		}
		at := len(stages) - 1
		if int(t.GetTask()) != len(stages[at]) {
			return nil, bad("stage %d: task %d stands where task %d belongs", at, t.GetTask(), len(stages[at]))
		}
		stages[at] = append(stages[at], t)
		if len(stages[at]) > limits.MaxTasks {
			return nil, &Error{Message: fmt.Sprintf("stage %d has more than %d tasks", at, limits.MaxTasks), Hint: "divide the work more coarsely"}
		}
	}
	if len(columns) != len(stages) {
		return nil, bad("columns of %d stages are given, and there are %d", len(columns), len(stages))
	}
	read := make([]bool, len(stages))
	for i, ts := range stages {
		if err := checkWork(ts, columns[i], i == len(stages)-1); err != nil {
			return nil, bad("stage %d: %v", i, err)
		}
		for _, t := range ts {
			if err := checkSources(t, i, stages, columns, read); err != nil {
				return nil, bad("stage %d, task %d: %v", i, t.GetTask(), err)
			}
		}
		if err := sameInputs(ts); err != nil {
			return nil, bad("stage %d: %v", i, err)
		}
	}
	if i := slices.Index(read[:len(read)-1], false); i >= 0 {
		return nil, bad("stage %d: nothing reads it", i)
	}
	return stages, nil
}

// complete: nothing is missing where a list has a place for it.
func complete(tasks []*planv1.Task, columns [][]*planv1.Column) error {
	for i, cols := range columns {
		if slices.Contains(cols, nil) {
			return fmt.Errorf("stage %d: a column is missing", i)
		}
	}
	for i, t := range tasks {
		if t == nil {
			return fmt.Errorf("task %d of all is missing", i)
		}
		for _, s := range t.GetSources() {
			if ex := s.GetExchange(); slices.Contains(ex.GetColumns(), nil) || slices.Contains(ex.GetParts(), nil) {
				return fmt.Errorf("task %d of all: a column or a part of source %s is missing", i, s.GetView())
			}
		}
		if slices.Contains(t.GetWrite().GetColumns(), nil) {
			return fmt.Errorf("task %d of all: a column that it writes is missing", i)
		}
	}
	return nil
}

func checkWork(tasks []*planv1.Task, columns []*planv1.Column, last bool) error {
	for i, t := range tasks {
		if t.GetSql() == "" {
			return fmt.Errorf("task %d has no query", i)
		}
		switch w := t.GetWork().(type) {
		case nil:
			if !last {
				return fmt.Errorf("task %d: an operator that is not known", i)
			}
		case *planv1.Task_Exchange:
			if last {
				return fmt.Errorf("task %d keeps its rows, and nothing reads the last stage", i)
			}
			if err := checkExchange(w.Exchange, columns); err != nil {
				return fmt.Errorf("task %d: %w", i, err)
			}
			if first := tasks[0].GetExchange(); first == nil || first.GetKind() != w.Exchange.GetKind() || first.GetPartitions() != w.Exchange.GetPartitions() || !slices.Equal(first.GetKeys(), w.Exchange.GetKeys()) {
				return fmt.Errorf("task %d keeps its rows in another way than task 0", i)
			}
		case *planv1.Task_Write:
			if !last {
				return fmt.Errorf("task %d writes, and stages behind it read", i)
			}
			if tasks[0].GetWrite() == nil {
				return fmt.Errorf("task %d writes and task 0 does not", i)
			}
			if len(w.Write.GetColumns()) == 0 || w.Write.GetSpec() == nil {
				return fmt.Errorf("task %d writes without columns or without a write spec", i)
			}
			for _, c := range w.Write.GetColumns() {
				if int(c.GetInput()) >= len(columns) {
					return fmt.Errorf("task %d writes column %d of %d", i, c.GetInput(), len(columns))
				}
			}
		default:
			return fmt.Errorf("task %d: an operator that is not known here: %T", i, w)
		}
	}
	return nil
}

func checkExchange(ex *planv1.ExchangeTask, columns []*planv1.Column) error {
	if len(columns) == 0 {
		return fmt.Errorf("rows in an exchange without known columns")
	}
	switch ex.GetKind() {
	case planv1.ExchangeKind_EXCHANGE_KIND_HASH:
		if len(ex.GetKeys()) == 0 {
			return fmt.Errorf("a hash exchange without keys")
		}
		if ex.GetPartitions() < 1 || ex.GetPartitions() > MaxPartitions {
			return fmt.Errorf("%d partitions; an exchange has 1 to %d", ex.GetPartitions(), MaxPartitions)
		}
	case planv1.ExchangeKind_EXCHANGE_KIND_GATHER, planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST:
		if ex.GetPartitions() != 1 || len(ex.GetKeys()) > 0 {
			return fmt.Errorf("%s has one partition and no keys", ex.GetKind())
		}
	default:
		return fmt.Errorf("an exchange of kind %s", ex.GetKind())
	}
	for _, k := range ex.GetKeys() {
		if k < 0 || int(k) >= len(columns) {
			return fmt.Errorf("key %d of %d columns", k, len(columns))
		}
	}
	return nil
}

func checkSources(t *planv1.Task, stage int, stages [][]*planv1.Task, columns [][]*planv1.Column, read []bool) error {
	views := map[string]bool{}
	for _, s := range t.GetSources() {
		if s.GetView() == "" || views[s.GetView()] {
			return fmt.Errorf("a source without a name, or two that are called %q", s.GetView())
		}
		views[s.GetView()] = true
		if s.GetKind() == nil {
			return fmt.Errorf("source %s is of a kind that is not known", s.GetView())
		}
		ex := s.GetExchange()
		if ex == nil {
			continue
		}
		from := ex.GetStage()
		if from < 0 || int(from) >= stage {
			return fmt.Errorf("source %s reads stage %d, which does not stand before it: plans have no cycles", s.GetView(), from)
		}
		read[from] = true
		if err := sameColumns(ex.GetColumns(), columns[from]); err != nil {
			return fmt.Errorf("source %s and stage %d do not agree: %w", s.GetView(), from, err)
		}
		n := stages[from][0].GetExchange().GetPartitions()
		for _, p := range ex.GetParts() {
			if p.GetPartition() < 0 || p.GetPartition() >= n {
				return fmt.Errorf("source %s reads partition %d of stage %d, which has %d", s.GetView(), p.GetPartition(), from, n)
			}
		}
	}
	return nil
}

// sameColumns: a reader sees the rows as they were written.
func sameColumns(got, want []*planv1.Column) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d columns are read and %d are written", len(got), len(want))
	}
	for i := range got {
		if got[i].GetName() != want[i].GetName() || got[i].GetEngineType() != want[i].GetEngineType() {
			return fmt.Errorf("column %d is read as %s %s and written as %s %s", i, got[i].GetName(), got[i].GetEngineType(), want[i].GetName(), want[i].GetEngineType())
		}
	}
	return nil
}

// sameInputs: the tasks of a stage read the same stages under the same names.
func sameInputs(tasks []*planv1.Task) error {
	for i, t := range tasks {
		if len(t.GetSources()) != len(tasks[0].GetSources()) {
			return fmt.Errorf("task %d reads %d sources and task 0 reads %d", i, len(t.GetSources()), len(tasks[0].GetSources()))
		}
		for k, s := range t.GetSources() {
			first := tasks[0].GetSources()[k]
			if s.GetView() != first.GetView() || (s.GetExchange() == nil) != (first.GetExchange() == nil) || s.GetExchange().GetStage() != first.GetExchange().GetStage() {
				return fmt.Errorf("task %d and task 0 read different sources as %s", i, s.GetView())
			}
		}
	}
	return nil
}
