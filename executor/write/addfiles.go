package write

import (
	"context"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
	"github.com/signet-io/signet/internal/fault"
)

// copyHint is what to do about files that cannot stay as they are.
const copyHint = "ADD FILES … WITH (copy = true) makes files of the table's own out of their rows"

// chooseHint is what to do about files whose columns are not the table's.
const chooseHint = "INSERT INTO t BY NAME SELECT … FROM read_parquet(…) chooses and names columns"

// AddedURI is the name under which a file that stays where it is becomes a data file of a table.
func AddedURI(f *planv1.PinnedFile) string {
	if f.GetUri() != "" {
		return f.GetUri()
	}
	return "file://" + f.GetPath()
}

// Add runs a write task that registers the files of its only source: it checks that each of them is what a data file of the table is, and answers them as data
// files. Files without rows are left out. Nothing is written; values are read only where a footer does not tell in which partition they are, or that there
// is no NULL among them.
func Add(ctx context.Context, inst *duckdb.Instance, task *planv1.Task, opts Options) ([]*planv1.DataFile, error) {
	if len(task.GetSources()) != 1 || task.GetSources()[0].GetFile() == nil {
		return nil, fmt.Errorf("a task that adds files has %d sources", len(task.GetSources()))
	}
	a, err := newAdding(inst, task)
	if err != nil {
		return nil, err
	}
	if err := fault.Hit("executor.add.before"); err != nil {
		return nil, err
	}
	files := task.GetSources()[0].GetFile().GetFiles()
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.file(ctx, f); err != nil {
			return nil, err
		}
	}
	for k := range a.p.keys {
		if err := a.partition(ctx, k); err != nil {
			return nil, err
		}
	}
	for _, f := range files { // S73: what was looked at is what was planned, until the end
		if err := duckdb.CheckPin(f); err != nil {
			return nil, err
		}
	}
	var out []*planv1.DataFile
	var rows, bytes int64
	for _, f := range a.files {
		d := f.dataFile(a.p)
		out, rows, bytes = append(out, d), rows+d.GetRecordCount(), bytes+d.GetSizeBytes()
	}
	if opts.Written != nil {
		opts.Written(rows, bytes)
	}
	return out, fault.Hit("executor.add.after")
}

// adding is the state of one task.
type adding struct {
	p      *plan
	inst   *duckdb.Instance
	names  splice.Names
	byPath map[int32]bool // columns whose value the names of directories may give: sources of identity partition fields
	files  []*addedFile
}

// addedFile is one file with rows.
type addedFile struct {
	file      *planv1.PinnedFile
	in        *splice.Input // closed; what its footer says is still there
	ref       *splice.Reference
	metrics   []splice.Metrics
	partition []*planv1.Value
	values    map[int32]string // of columns that it lacks, from directories, as text
}

func newAdding(inst *duckdb.Instance, task *planv1.Task) (*adding, error) {
	p := &plan{task: task, spec: task.GetWrite().GetSpec()}
	used := map[string]bool{}
	for _, f := range p.spec.GetSchema().GetFields() {
		p.columns = append(p.columns, column{field: f, alias: fileName(f, used)})
	}
	p.leaves = leavesOf(p.columns, p.spec.GetFiles().GetMetrics())
	if err := p.addKeys(); err != nil {
		return nil, err
	}
	return &adding{p: p, inst: inst, names: splice.NamesOf(p.spec.GetNames()), byPath: identities(p.spec)}, nil
}

// identities are the columns by whose values the table is partitioned as they are.
func identities(spec *planv1.WriteSpec) map[int32]bool {
	out := map[int32]bool{}
	for _, pf := range spec.GetPartition() {
		if pf.GetTransform() == planv1.TransformKind_TRANSFORM_KIND_IDENTITY {
			out[pf.GetSourceId()] = true
		}
	}
	return out
}

func refusedFile(f *planv1.PinnedFile, hint, format string, args ...any) error {
	return &duckdb.UserError{Message: shownName(f) + ": " + fmt.Sprintf(format, args...), Hint: hint}
}

func shownName(f *planv1.PinnedFile) string {
	if f.GetName() != "" {
		return f.GetName()
	}
	return f.GetPath()
}

// openAdded reads the footer of a file.
func openAdded(f *planv1.PinnedFile) (*splice.Input, error) {
	if err := duckdb.CheckPin(f); err != nil {
		return nil, err
	}
	in, err := splice.Open(f.GetPath())
	if err != nil {
		return nil, refusedFile(f, "leave it out: whoever writes it may have failed or not finished", "it is no Parquet file that can be read: %v", err)
	}
	return in, in.Close()
}

// file checks one file by its footer.
func (a *adding) file(ctx context.Context, f *planv1.PinnedFile) error {
	in, err := openAdded(f)
	if err != nil || in.Meta().Rows == 0 {
		return err
	}
	if _, reason := splice.Find(in.Meta(), a.p.spec.GetSchema().GetFields(), a.names, a.p.ids()); reason != "" {
		return refusedFile(f, chooseHint, "%s", reason)
	}
	ref, reason := splice.Refer(in.Meta(), a.p.spec.GetSchema().GetFields(), a.names, a.p.ids())
	if reason == "" {
		reason = in.CheckPlaces(ref.Layout, splice.RulesOf(a.p.spec.GetFiles()))
	}
	if reason != "" {
		return refusedFile(f, copyHint, "%s", reason)
	}
	out := &addedFile{file: f, in: in, ref: ref, metrics: in.Metrics(ref.Layout), partition: make([]*planv1.Value, len(a.p.keys)), values: map[int32]string{}}
	dirs := duckdb.DirectoryValues(f)
	for _, field := range ref.Found.Absent {
		text, given := dirs[field.GetName()]
		switch {
		case given && a.byPath[field.GetId()]:
			out.values[field.GetId()] = text
		case given:
			return refusedFile(f, copyHint, "column %q is in the names of directories only, and the table is not partitioned by its values: its rows would lose them", field.GetName())
		case field.GetRequired() && field.GetInitialDefault().GetKind() == nil:
			return refusedFile(f, "", "column %q of the table is required, and the file does not have it", field.GetName())
		}
	}
	if err := a.required(ctx, out); err != nil {
		return err
	}
	a.files = append(a.files, out)
	return nil
}

// required reads required columns of which the footer does not say that they have no NULL.
func (a *adding) required(ctx context.Context, f *addedFile) error {
	for _, path := range f.in.Unproved(f.ref.Layout) {
		n := slices.IndexFunc(f.ref.Found.Have, func(h *planv1.Field) bool { return h.GetName() == path })
		if n < 0 {
			return refusedFile(f.file, copyHint, "column %q is required, and the file's statistics do not say that it has no NULL", path)
		}
		from, err := f.source()
		if err != nil {
			return err
		}
		nulls := int64(0)
		q := "SELECT count(*) FROM " + from + " WHERE " + duckdb.Ident(f.ref.Found.Name(n)) + " IS NULL"
		if err := a.inst.Conn().QueryRowContext(ctx, q).Scan(&nulls); err != nil {
			return fmt.Errorf("%s: column %q: %w", shownName(f.file), path, err)
		}
		if nulls > 0 {
			return refusedFile(f.file, "", "column %q of the table is required, and %d rows of the file have none", path, nulls)
		}
	}
	return nil
}

// source reads the file in SQL.
func (f *addedFile) source() (string, error) {
	path, err := duckdb.PathLiteral(f.file.GetPath())
	return "read_parquet(" + path + ", hive_partitioning=false)", err
}

func (f *addedFile) dataFile(p *plan) *planv1.DataFile {
	w := &written{rows: f.in.Meta().Rows, stats: map[string]*colStats{}}
	byID := map[int32]int{}
	for n := range f.ref.Layout.Leaves {
		byID[f.ref.Layout.Leaves[n].Field.GetId()] = n
	}
	for _, l := range p.leaves {
		if n, ok := byID[l.field.GetId()]; ok {
			w.stats[l.key] = splicedStats(&f.metrics[n])
		}
	}
	return &planv1.DataFile{
		Path: AddedURI(f.file), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: w.rows, SizeBytes: f.file.GetSizeBytes(),
		Partition: f.partition, Columns: p.columnMetrics(w), SplitOffsets: f.in.Offsets(), ByName: f.ref.Found.ByName,
	}
}
