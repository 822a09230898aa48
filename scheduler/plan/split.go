package plan

import (
	"cmp"
	"fmt"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"google.golang.org/protobuf/proto"
)

// Limits say how finely input is split.
type Limits struct {
	Executors   int   // slots that could work at once; at least 1 is assumed
	TargetBytes int64 // a task's input, above which more tasks are made; 0: DefaultTargetBytes
	MinBytes    int64 // below which a task is not worth its start; 0: DefaultMinBytes
	MaxTasks    int   // of one stage; 0: DefaultMaxTasks
	MaxJobTasks int   // of all stages; 0: DefaultMaxJobTasks
	MaxStages   int   // 0: DefaultMaxStages
	// BroadcastBytes is the size up to which one side of a join is sent to every task; 0: DefaultBroadcastBytes, negative: never.
	BroadcastBytes int64
}

// Defaults of Limits. One DuckDB uses all threads of its executor, so tasks are large: they exist for other executors and for retries.
const (
	DefaultTargetBytes    = 4 << 30
	DefaultMinBytes       = 8 << 20
	DefaultMaxTasks       = 10_000
	DefaultMaxJobTasks    = 100_000
	DefaultMaxStages      = 1_000
	DefaultBroadcastBytes = 32 << 20
)

func (l Limits) withDefaults() Limits {
	l.Executors = max(l.Executors, 1)
	if l.TargetBytes <= 0 {
		l.TargetBytes = DefaultTargetBytes
	}
	if l.MinBytes <= 0 {
		l.MinBytes = DefaultMinBytes
	}
	if l.MaxTasks <= 0 {
		l.MaxTasks = DefaultMaxTasks
	}
	if l.MaxJobTasks <= 0 {
		l.MaxJobTasks = DefaultMaxJobTasks
	}
	if l.MaxStages <= 0 {
		l.MaxStages = DefaultMaxStages
	}
	if l.BroadcastBytes == 0 {
		l.BroadcastBytes = DefaultBroadcastBytes
	}
	return l
}

// Input is an analysed query with its sources.
type Input struct {
	Sources    []*planv1.Source
	Stats      []*executorv1.SourceStats
	RowWise    bool
	NotRowWise string // why not
}

// Split is how an input is shared among tasks.
type Split struct {
	Shares [][]*planv1.Source // one for each task; never empty
	Bytes  []int64            // of input, for each task
	Reason string             // why there is only one task, if there is only one
}

// SplitInput shares the rows of a row-wise query's only source among tasks: contiguous ranges of row groups, files in their order,
// about as many bytes each. Whole files where nothing is known of their row groups, and for table scans.
func SplitInput(in Input, limits Limits) Split {
	limits = limits.withDefaults()
	if reason := unsplittable(in); reason != "" {
		return single(in, reason)
	}
	src := in.Sources[0]
	units := unitsOf(src, in.Stats)
	total := int64(0)
	for _, u := range units {
		total += u.bytes
	}
	n := taskCount(total, len(units), limits)
	if n <= 1 {
		return single(in, whySingle(total, len(units), limits))
	}
	out := Split{}
	for _, group := range balance(units, total, n) {
		out.Shares = append(out.Shares, []*planv1.Source{withFiles(src, merge(group))})
		out.Bytes = append(out.Bytes, sumBytes(group))
	}
	return out
}

func unsplittable(in Input) string {
	switch {
	case !in.RowWise && in.NotRowWise != "":
		return in.NotRowWise
	case !in.RowWise:
		return "the query needs all its rows in one place"
	case len(in.Sources) == 0:
		return "the query reads no files"
	case len(in.Sources) > 1:
		return "the query reads several sources"
	}
	return ""
}

func single(in Input, reason string) Split {
	bytes := int64(0)
	for _, s := range in.Sources {
		for _, f := range filesOf(s) {
			bytes += f.GetSizeBytes()
		}
	}
	return Split{Shares: [][]*planv1.Source{in.Sources}, Bytes: []int64{bytes}, Reason: reason}
}

func taskCount(total int64, units int, l Limits) int {
	wanted := max(int64(l.Executors), (total+l.TargetBytes-1)/l.TargetBytes)
	return int(max(1, min(wanted, total/l.MinBytes, int64(units), int64(l.MaxTasks))))
}

func whySingle(total int64, units int, l Limits) string {
	switch {
	case units <= 1:
		return "the input cannot be divided: it has one part"
	case total/l.MinBytes <= 1:
		return "the input is small: " + ByteText(total)
	case l.MaxTasks == 1:
		return "one task was asked for"
	}
	return "there is one executor"
}

// unit is the smallest share: one row group, or a file.
type unit struct {
	file  *planv1.PinnedFile
	from  int64 // rows; both 0: the whole file
	end   int64
	rows  int64 // of the file; 0: unknown
	bytes int64
}

func filesOf(s *planv1.Source) []*planv1.PinnedFile {
	if t := s.GetTable(); t != nil {
		return t.GetFiles()
	}
	return s.GetFile().GetFiles()
}

func unitsOf(src *planv1.Source, stats []*executorv1.SourceStats) []unit {
	byPath := map[string]*executorv1.FileStats{}
	for _, s := range stats {
		if s.GetView() == src.GetView() && src.GetTable() == nil {
			for _, f := range s.GetFiles() {
				byPath[f.GetPath()] = f
			}
		}
	}
	var out []unit
	for _, f := range filesOf(src) {
		out = append(out, fileUnits(f, byPath[cmp.Or(f.GetUri(), f.GetPath())])...)
	}
	return out
}

// fileUnits cuts a file at its row groups. Empty groups join the group before them; a file without rows stays one unit, so that its
// pin is checked by some task.
func fileUnits(f *planv1.PinnedFile, st *executorv1.FileStats) []unit {
	whole := unit{file: f, from: f.GetFirstRow(), end: f.GetEndRow(), bytes: max(f.GetSizeBytes(), 0)}
	rows := int64(0)
	for _, r := range st.GetRowGroupRows() {
		if r < 0 || rows > 1<<62-r { // nothing that an executor reports may make a share wrong
			return []unit{whole}
		}
		rows += r
	}
	if rows == 0 || f.GetEndRow() != 0 || st.GetRows() >= 0 && st.GetRows() != rows {
		return []unit{whole}
	}
	var out []unit
	at := int64(0)
	for _, r := range st.GetRowGroupRows() {
		if r > 0 {
			bytes := int64(float64(whole.bytes) * (float64(r) / float64(rows)))
			out = append(out, unit{file: f, from: at, end: at + r, rows: rows, bytes: bytes})
			at += r
		}
	}
	return out
}

// balance cuts units into n groups (n ≤ len(units)) of about total/n bytes. Each group gets at least one unit.
func balance(units []unit, total int64, n int) [][]unit {
	out := make([][]unit, 0, n)
	at, left := 0, total
	for k := range n {
		tasksLeft := n - k
		target := left / int64(tasksLeft)
		start, got := at, int64(0)
		for at < len(units)-(tasksLeft-1) {
			next := units[at].bytes
			// Taking it must bring the group nearer to the target than leaving it would.
			if at > start && got+next/2 > target && tasksLeft > 1 {
				break
			}
			got += next
			at++
		}
		out = append(out, units[start:at])
		left -= got
	}
	return out
}

// merge joins neighbouring row groups of one file. All of a file is the whole file again.
func merge(units []unit) []*planv1.PinnedFile {
	var out []*planv1.PinnedFile
	var last unit
	for _, u := range units {
		if len(out) > 0 && u.file == last.file && u.from == last.end && u.end > u.from {
			last.end = u.end
			setRange(out[len(out)-1], last)
			continue
		}
		f := proto.CloneOf(u.file)
		setRange(f, u)
		out = append(out, f)
		last = u
	}
	return out
}

func setRange(f *planv1.PinnedFile, u unit) {
	f.FirstRow, f.EndRow = u.from, u.end
	if u.from == 0 && u.end == u.rows {
		f.EndRow = 0
	}
}

func sumBytes(units []unit) int64 {
	sum := int64(0)
	for _, u := range units {
		sum += u.bytes
	}
	return sum
}

func withFiles(src *planv1.Source, files []*planv1.PinnedFile) *planv1.Source {
	out := &planv1.Source{View: src.GetView(), Alias: src.GetAlias()}
	if t := src.GetTable(); t != nil {
		out.Kind = &planv1.Source_Table{Table: scanOf(t, files)}
		return out
	}
	f := src.GetFile()
	out.Kind = &planv1.Source_File{File: &planv1.FileSource{
		Function: f.GetFunction(), Options: f.GetOptions(), Files: files, Columns: f.GetColumns(),
	}}
	return out
}

// ByteText writes a size for people.
func ByteText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit])
}

// scanOf is a scan of some of a table's files.
func scanOf(t *planv1.TableScan, files []*planv1.PinnedFile) *planv1.TableScan {
	return &planv1.TableScan{
		Schema: t.GetSchema(), Files: files, Table: t.GetTable(), Version: t.GetVersion(), ConstantIds: t.GetConstantIds(),
		WithPositions: t.GetWithPositions(), Branch: t.GetBranch(), Names: t.GetNames(), RowLineage: t.GetRowLineage(), TotalFiles: t.GetTotalFiles(), Catalog: t.GetCatalog(), Ident: t.GetIdent(),
		ByName: t.GetByName(),
	}
}
