package plan

import (
	"errors"
	"fmt"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// ErrStaged is an analysis whose stages do not fit together: a defect of whoever made it.
var ErrStaged = errors.New("the query's stages do not fit together")

// stagedOf is the logical plan that a request runs as, and why it is one stage where it could be several.
func stagedOf(r Request) (*executorv1.StagedQuery, string, error) {
	if len(r.Staged.GetStages()) == 0 {
		return oneStage(r), "", nil
	}
	if err := checkStaged(r); err != nil {
		return nil, "", err
	}
	if len(r.Staged.GetStages()) == 1 {
		return r.Staged, r.Staged.GetNotStaged(), nil
	}
	if reason := notWorthStages(r); reason != "" {
		return oneStage(r), reason, nil
	}
	return r.Staged, "", nil
}

// oneStage runs the query's own text.
func oneStage(r Request) *executorv1.StagedQuery {
	q := &executorv1.QueryStage{Sql: r.SQL, Columns: r.Columns, Single: !r.Input.RowWise, Repeatable: true}
	for _, s := range r.Input.Sources {
		q.Inputs = append(q.Inputs, &executorv1.StageInput{View: s.GetView(), Stage: -1, Split: r.Input.RowWise && len(r.Input.Sources) == 1})
	}
	return &executorv1.StagedQuery{Stages: []*executorv1.QueryStage{q}}
}

// notWorthStages: one DuckDB is faster than several where there is little to read, or only one of them. Who asks for partitions gets them.
func notWorthStages(r Request) string {
	limits, total := r.Limits.withDefaults(), SourceBytes(r.Input.Sources)
	switch {
	case limits.MaxTasks == 1:
		return "one task was asked for"
	case r.Tuning.Partitions > 0:
		return ""
	case total/limits.MinBytes <= 1:
		return "the input is small: " + ByteText(total)
	case limits.Executors == 1:
		return "there is one executor"
	}
	return ""
}

// SourceBytes is the size of all files of some sources.
func SourceBytes(sources []*planv1.Source) int64 {
	total := int64(0)
	for _, s := range sources {
		for _, f := range filesOf(s) {
			total += max(f.GetSizeBytes(), 0)
		}
	}
	return total
}

func checkStaged(r Request) error {
	bad := func(i int, format string, args ...any) error {
		return fmt.Errorf("%w: stage %d: %s", ErrStaged, i, fmt.Sprintf(format, args...))
	}
	stages := r.Staged.GetStages()
	if most := r.Limits.withDefaults().MaxStages; len(stages) > most {
		return &Error{Message: fmt.Sprintf("the query needs %d stages; at most %d are allowed", len(stages), most), Hint: "write parts of it to tables and query those"}
	}
	read := make([]bool, len(stages))
	for i, q := range stages {
		if q.GetSql() == "" {
			return bad(i, "it has no query")
		}
		splitSources, splitStages := 0, 0
		for _, in := range q.GetInputs() {
			switch {
			case in.GetStage() < 0:
				if sourceByView(r.Input.Sources, in.GetView()) == nil {
					return bad(i, "there is no source %q", in.GetView())
				}
			case int(in.GetStage()) >= i:
				return bad(i, "it reads stage %d, which does not stand before it", in.GetStage())
			default:
				read[in.GetStage()] = true
			}
			switch {
			case in.GetSplit() && in.GetStage() < 0:
				splitSources++
			case in.GetSplit():
				splitStages++
			}
		}
		if splitSources > 1 || splitSources > 0 && splitStages > 0 {
			return bad(i, "%d sources and %d stages are split", splitSources, splitStages)
		}
		if err := checkOutput(q, i == len(stages)-1); err != nil {
			return bad(i, "%v", err)
		}
		if err := sameKeys(stages, q); err != nil {
			return bad(i, "%v", err)
		}
	}
	for i, ok := range read[:len(read)-1] {
		if !ok {
			return bad(i, "nothing reads it")
		}
	}
	return nil
}

func checkOutput(q *executorv1.QueryStage, last bool) error {
	if last {
		if q.GetOutput() != planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED {
			return fmt.Errorf("it is the last one, and its output is %s", q.GetOutput())
		}
		return nil
	}
	switch q.GetOutput() {
	case planv1.ExchangeKind_EXCHANGE_KIND_HASH:
		if len(q.GetKeys()) == 0 {
			return errors.New("a hash exchange without keys")
		}
	case planv1.ExchangeKind_EXCHANGE_KIND_GATHER, planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST:
	default:
		return fmt.Errorf("its output is %s", q.GetOutput())
	}
	if len(q.GetColumns()) == 0 {
		return errors.New("its columns are not known")
	}
	for _, k := range q.GetKeys() {
		if k < 0 || int(k) >= len(q.GetColumns()) {
			return fmt.Errorf("key %d of %d columns", k, len(q.GetColumns()))
		}
	}
	return nil
}

// sameKeys: rows that are to meet are hashed as values of one type.
func sameKeys(stages []*executorv1.QueryStage, q *executorv1.QueryStage) error {
	var first []string
	for _, in := range q.GetInputs() {
		if in.GetStage() < 0 || !in.GetSplit() {
			continue
		}
		from := stages[in.GetStage()]
		if from.GetOutput() != planv1.ExchangeKind_EXCHANGE_KIND_HASH {
			continue
		}
		var types []string
		for _, k := range from.GetKeys() {
			types = append(types, from.GetColumns()[k].GetEngineType())
		}
		if first == nil {
			first = types
			continue
		}
		if len(first) != len(types) {
			return fmt.Errorf("it reads stages with %d and %d keys side by side", len(first), len(types))
		}
		for i := range types {
			if types[i] != first[i] {
				return fmt.Errorf("key %d is %s on one side and %s on the other", i, first[i], types[i])
			}
		}
	}
	return nil
}

// tree builds the logical plan: the staged query's fragments with exchanges between them, below Write and Commit or below Result.
func tree(r Request, staged *executorv1.StagedQuery) *Node {
	stages := staged.GetStages()
	fragments := make([]*Node, len(stages))
	exchanges := make([]*Node, len(stages))
	for i, q := range stages {
		n := &Node{Op: OpFragment, Label: q.GetLabel(), Details: sqlLines(q.GetSql()), Query: q}
		for _, in := range q.GetInputs() {
			if in.GetStage() < 0 {
				src := sourceByView(r.Input.Sources, in.GetView())
				scan := scanNode(src)
				scan.Source = src
				n.Inputs = append(n.Inputs, scan)
				continue
			}
			n.Inputs = append(n.Inputs, exchanges[in.GetStage()])
		}
		fragments[i] = n
		ex := &planv1.ExchangeTask{Kind: q.GetOutput(), Keys: q.GetKeys()}
		exchanges[i] = &Node{Op: OpExchange, Label: exchangeLabel(ex, q.GetColumns()), Exchange: ex, Inputs: []*Node{n}}
	}
	last := fragments[len(fragments)-1]
	if r.Spec != nil {
		write := &Node{Op: OpWrite, Label: r.Table, Details: writeLines(r), Inputs: []*Node{last}}
		return &Node{Op: OpCommit, Label: commitLabel(r), Details: r.Commit, Inputs: []*Node{write}}
	}
	if !stages[len(stages)-1].GetSingle() {
		last = &Node{Op: OpCoalesce, Inputs: []*Node{last}} // of all tasks' rows; dropped where one task gives them
	}
	label := "to the client"
	if r.Keep {
		label = "to be kept"
	}
	return &Node{Op: OpResult, Label: label, Details: columnLines(r.Columns), Inputs: []*Node{last}}
}
