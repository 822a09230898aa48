package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// CheckPhysical looks at a physical plan as it was sent, before anything of it is resolved: its size, its references, its operators. Errors are
// *Error or wrap ErrPhysical.
func CheckPhysical(p *planv1.PhysicalPlan, limits Limits) error {
	limits = limits.withDefaults()
	if len(p.GetStages()) == 0 {
		return fmt.Errorf("%w: it has no stages", ErrPhysical)
	}
	if len(p.GetStages()) > limits.MaxStages {
		return &Error{Message: fmt.Sprintf("the plan has %d stages; at most %d are allowed", len(p.GetStages()), limits.MaxStages), Hint: "write parts of the work to tables"}
	}
	total := 0
	for i, st := range p.GetStages() {
		if total += len(st.GetTasks()); total > limits.MaxJobTasks {
			return &Error{Message: fmt.Sprintf("the plan has more than %d tasks", limits.MaxJobTasks), Hint: "divide the work more coarsely"}
		}
		if err := checkStage(p, i); err != nil {
			return fmt.Errorf("%w: stage %d: %w", ErrPhysical, i, err)
		}
	}
	if p.GetLimit() < 0 || p.GetLimit() > 0 && p.GetTarget() != nil {
		return fmt.Errorf("%w: a limit of %d rows; it is for plans whose rows are the result", ErrPhysical, p.GetLimit())
	}
	if t := p.GetTarget(); t != nil && (t.GetCreate() || t.GetIfNotExists() || len(t.GetPartitionedBy()) > 0 || len(t.GetProperties()) > 0) {
		return &Error{Message: "a physical plan writes a table that exists", Hint: "CREATE TABLE first, or send a logical plan"}
	}
	return nil
}

func checkStage(p *planv1.PhysicalPlan, i int) error {
	st := p.GetStages()[i]
	if len(st.GetTasks()) == 0 {
		return fmt.Errorf("it has no tasks")
	}
	if last := i == len(p.GetStages())-1; last != (st.GetExchange() == planv1.ExchangeKind_EXCHANGE_KIND_UNSPECIFIED) {
		if last {
			return fmt.Errorf("it keeps its rows, and nothing reads the last stage")
		}
		return fmt.Errorf("it does not say how its rows are kept for those that read them")
	}
	if st.GetPartitions() < 0 || st.GetPartitions() > MaxPartitions {
		return fmt.Errorf("%d partitions; an exchange has 1 to %d", st.GetPartitions(), MaxPartitions)
	}
	if st.GetExchange() == planv1.ExchangeKind_EXCHANGE_KIND_HASH && st.GetPartitions() == 0 {
		return fmt.Errorf("a hash exchange without a number of partitions")
	}
	for n, t := range st.GetTasks() {
		for _, in := range t.GetInputs() {
			if err := checkInput(p, i, in); err != nil {
				return fmt.Errorf("task %d: input %q: %w", n, in.GetView(), err)
			}
		}
	}
	return checkAllRead(p, st)
}

// checkAllRead refuses a stage that leaves out partitions of one that it reads: their rows would be lost without a word.
func checkAllRead(p *planv1.PhysicalPlan, st *planv1.PhysicalStage) error {
	read := map[int32]map[int32]bool{}
	for _, t := range st.GetTasks() {
		for _, in := range t.GetInputs() {
			r := in.GetStage()
			if r == nil || r.GetStage() < 0 || int(r.GetStage()) >= len(p.GetStages()) {
				continue
			}
			if read[r.GetStage()] == nil {
				read[r.GetStage()] = map[int32]bool{}
			}
			for _, part := range Parts(p, r) {
				read[r.GetStage()][part.GetPartition()] = true
			}
		}
	}
	for from, parts := range read {
		for n := range max(p.GetStages()[from].GetPartitions(), 1) {
			if !parts[n] {
				return fmt.Errorf("no task of it reads partition %d of stage %d: its rows would be lost", n, from)
			}
		}
	}
	return nil
}

func checkInput(p *planv1.PhysicalPlan, stage int, in *planv1.PhysicalInput) error {
	switch k := in.GetKind().(type) {
	case *planv1.PhysicalInput_Files:
		return checkFiles(k.Files)
	case *planv1.PhysicalInput_Table:
		if k.Table == "" {
			return fmt.Errorf("a table without a name")
		}
	case *planv1.PhysicalInput_Stage:
		from := k.Stage.GetStage()
		if from < 0 || int(from) >= stage {
			return fmt.Errorf("it reads stage %d, which does not stand before it: plans have no cycles", from)
		}
		n := max(p.GetStages()[from].GetPartitions(), 1)
		seen := map[int32]bool{}
		for _, part := range k.Stage.GetPartitions() {
			if part < 0 || part >= n || seen[part] {
				return fmt.Errorf("it reads partition %d of stage %d, which has %d, each of them once", part, from, n)
			}
			seen[part] = true
		}
	default:
		return fmt.Errorf("it is of a kind that is not known")
	}
	return nil
}

// readers are the functions that read files.
var readers = []string{"read_parquet", "read_csv", "read_json"}

var (
	optionName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	optionValue = regexp.MustCompile(`^('([^']|'')*'|[+-]?[0-9]+(\.[0-9]+)?|(?i:true|false))$`)
)

func checkFiles(f *planv1.FileInput) error {
	if !slices.Contains(readers, f.GetFunction()) {
		return fmt.Errorf("there is no function %q that reads files; want one of %s", f.GetFunction(), strings.Join(readers, ", "))
	}
	if len(f.GetNames()) == 0 {
		return fmt.Errorf("no files")
	}
	for _, name := range slices.Sorted(maps.Keys(f.GetOptions())) {
		if !optionName.MatchString(name) || !optionValue.MatchString(f.GetOptions()[name]) {
			return fmt.Errorf("option %s = %s: want a name, and a string in quotes, a number, true or false", name, f.GetOptions()[name])
		}
	}
	if f.GetFirstRow() == 0 && f.GetEndRow() == 0 {
		return nil
	}
	if f.GetFirstRow() < 0 || f.GetEndRow() <= f.GetFirstRow() || f.GetFunction() != "read_parquet" || len(f.GetNames()) != 1 {
		return fmt.Errorf("rows %d to %d: a share is rows of one Parquet file, the first before the end", f.GetFirstRow(), f.GetEndRow())
	}
	return nil
}

// Parts lists the partitions that a stage's task reads, as an exchange source has them before they are filled in.
func Parts(p *planv1.PhysicalPlan, in *planv1.StageRead) []*planv1.ExchangePart {
	list := in.GetPartitions()
	if len(list) == 0 {
		for i := range max(p.GetStages()[in.GetStage()].GetPartitions(), 1) {
			list = append(list, i)
		}
	}
	out := make([]*planv1.ExchangePart, len(list))
	for i, n := range list {
		out[i] = &planv1.ExchangePart{Task: -1, Partition: n}
	}
	return out
}
