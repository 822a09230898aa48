package write

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// splicer copies what of a task's input can be copied.
type splicer struct {
	p       *plan
	inst    *duckdb.Instance
	dir     string
	maker   splice.Maker
	left    Left // nil: all files are at hand
	dry     bool // says what it would do, and does nothing
	columns []splice.Column
	rules   splice.Rules

	constants map[int32]int // partition columns whose values the source's files have as constants: their places

	open    map[string]*spliceOutput // by partition and layout
	pending int                      // column chunks of open outputs
	made    []*written
	rest    []*planv1.PinnedFile // what is to be written the other way
	ranges  int                  // of parts of files, in rest
	report  SpliceReport
}

// SpliceReport says what becomes of a task's input.
type SpliceReport struct {
	Reason string // why nothing of it is copied, whatever the files are like; empty: it depends on them
	Files  []SplicedFile
}

// SplicedFile says what becomes of one file, or of the share of one.
type SplicedFile struct {
	Name                 string
	Rows, Copied         int64 // -1: nobody knows
	Groups, CopiedGroups int
	CopiedBytes          int64
	StoreBytes           int64  // of CopiedBytes: by the store itself
	Reason               string // why not all of it is copied
}

// Bounds of what is at work at a time, so that memory is.
const (
	maxPending    = 200_000 // column chunks described but not written
	maxFileRanges = 16      // parts of one file, and of all, that are read by rows: each is a scan of its own in the query
	maxRanges     = 256
)

// floor is how small row groups may be on average to be copied: files whose row groups have less of both are written anew.
type floor struct{ bytes, rows int64 }

var (
	// So that tables do not fill with tiny row groups.
	writeFloor = floor{bytes: 64 << 10, rows: 8192}
	// Who asks for larger files wants faster scans. Of 4 million rows of six columns (93 MB, zstd) a scan by DuckDB 1.5.6 with two threads takes as long with
	// row groups of 16,384 rows (400 KB) as with larger ones, 1.2 times as long with 8,192 (200 KB), and 1.8 times with 4,096 or 2,048.
	rewriteFloor = floor{bytes: 256 << 10, rows: 16384}
)

func (p *plan) floor() floor {
	if p.task.GetWrite().GetRewrite() != nil {
		return rewriteFloor
	}
	return writeFloor
}

// splice copies what it can, and answers the files made, which are in scratch, and whether anything is left to write: then the source's view reads that alone.
func (p *plan) splice(ctx context.Context, inst *duckdb.Instance, dir string, there Left) (files []*written, left bool, err error) {
	columns, constants, reason, err := p.passThrough(ctx, inst)
	if err != nil {
		return nil, true, err
	}
	if reason != "" {
		return nil, true, p.fetchAll(ctx, inst, there)
	}
	s := &splicer{
		p: p, inst: inst, dir: dir, left: there, maker: splice.Local{}, columns: columns, constants: constants, rules: splice.RulesOf(p.spec.GetFiles()),
		open: map[string]*spliceOutput{},
	}
	if err := s.run(ctx); err != nil {
		return nil, false, err
	}
	if len(s.made) == 0 {
		return nil, true, p.fetchAll(ctx, inst, there)
	}
	if err := inst.CheckPins(); err != nil { // S73: what was copied is what was planned
		return nil, false, err
	}
	if err := p.measure(ctx, inst, s.made); err != nil {
		return nil, false, err
	}
	if len(s.rest) == 0 {
		return s.made, false, nil
	}
	if there != nil {
		return s.made, true, p.fetch(ctx, inst, there, s.rest)
	}
	return s.made, true, inst.Rebind(ctx, narrowed(p.task.GetSources()[0], s.rest))
}

// Splice says what of a task's input would be copied. Its sources are bound.
func Splice(ctx context.Context, inst *duckdb.Instance, task *planv1.Task, left Left) (*SpliceReport, error) {
	inputs, err := describe(ctx, inst, task.GetSql())
	if err != nil {
		return nil, err
	}
	p, err := newPlan(task, inputs)
	if err != nil {
		return nil, err
	}
	columns, constants, reason, err := p.passThrough(ctx, inst)
	if err != nil || reason != "" {
		return &SpliceReport{Reason: reason}, err
	}
	s := &splicer{p: p, inst: inst, left: left, dry: true, columns: columns, constants: constants, rules: splice.RulesOf(p.spec.GetFiles()), open: map[string]*spliceOutput{}}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return &s.report, nil
}

func (s *splicer) run(ctx context.Context) error {
	for _, f := range filesOf(s.p.task.GetSources()[0]) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.file(ctx, f); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.open)) {
		if err := s.flush(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// file decides about a file's row groups, and copies those that can be.
func (s *splicer) file(ctx context.Context, f *planv1.PinnedFile) error {
	line, again, err := s.try(ctx, f)
	if err == nil && again {
		var whole []*planv1.PinnedFile
		if whole, err = s.left.Whole(ctx, []*planv1.PinnedFile{f}); err == nil {
			line, _, err = s.try(ctx, whole[0])
		}
	}
	if s.dry && err == nil {
		s.report.Files = append(s.report.Files, line)
	}
	return err
}

// try is for a file as far as it is at hand. again: it would be another one if all of it were, and nothing was done.
func (s *splicer) try(ctx context.Context, f *planv1.PinnedFile) (line SplicedFile, again bool, err error) {
	line = SplicedFile{Name: f.GetName(), Rows: -1}
	if line.Name == "" {
		line.Name = f.GetPath()
	}
	whole := func(reason string) (SplicedFile, bool, error) {
		line.Reason, line.Copied, line.CopiedGroups, line.CopiedBytes, line.StoreBytes = reason, 0, 0, 0, 0
		s.rest = append(s.rest, f)
		return line, false, nil
	}
	if len(f.GetDeletes()) > 0 {
		return whole("rows of it are deleted")
	}
	in, err := s.openFile(f)
	if err != nil { // DuckDB says it better, with what the user calls the file
		return whole("its footer cannot be read: " + err.Error())
	}
	defer in.Close()
	layout, reason := splice.Match(in.Meta(), s.columns, s.p.ids())
	if reason != "" {
		line.Rows = in.Meta().Rows
		return whole(reason)
	}
	verdicts, err := s.verdicts(ctx, in, layout, f)
	if err != nil {
		return line, false, err
	}
	reason = settle(verdicts, s.p.floor())
	copied := groupsOf(verdicts)
	line.StoreBytes = in.StoreBytes(layout, copied)
	if in.Unread() || in.Remote() && reason == "" && 2*line.StoreBytes < bytesOf(in, layout, copied) { // mostly runs that are no parts of uploads
		return line, true, nil
	}
	if reason != "" {
		line.count(verdicts)
		return whole(reason)
	}
	line.count(verdicts)
	rest := restOf(f, verdicts)
	if s.ranges += len(rest); len(rest) > 0 && s.ranges > maxRanges {
		return whole("too many parts of files would be read by rows")
	}
	s.rest = append(s.rest, rest...)
	if s.dry {
		return line, false, nil
	}
	for n := range verdicts {
		if verdicts[n].copied() {
			if err := s.add(ctx, in, layout, &verdicts[n]); err != nil {
				return line, false, err
			}
		}
	}
	return line, false, nil
}

// groupsOf are the row groups that are copied.
func groupsOf(verdicts []verdict) []int {
	var out []int
	for n := range verdicts {
		if verdicts[n].copied() {
			out = append(out, verdicts[n].group)
		}
	}
	return out
}

func bytesOf(in *splice.Input, l *splice.Layout, groups []int) int64 {
	sum := int64(0)
	for _, g := range groups {
		sum += in.CompressedBytes(l, g)
	}
	return sum
}

// verdict is what becomes of a row group.
type verdict struct {
	group     int
	first     int64 // row
	rows      int64
	bytes     int64
	reason    string // why it is not copied
	partition []*planv1.Value
}

func (v *verdict) copied() bool { return v.reason == "" && v.rows > 0 }

// verdicts are those of the row groups of a file's share.
func (s *splicer) verdicts(ctx context.Context, in *splice.Input, l *splice.Layout, f *planv1.PinnedFile) ([]verdict, error) {
	var out []verdict
	var ask, groups []int
	at := int64(0)
	for n := range in.Meta().Groups {
		rows := in.Meta().Groups[n].Rows
		v := verdict{group: n, first: at, rows: rows}
		at += rows
		if end := f.GetEndRow(); end > 0 || f.GetFirstRow() > 0 {
			if at <= f.GetFirstRow() || end > 0 && v.first >= end {
				continue
			}
			if v.first < f.GetFirstRow() || end > 0 && at > end {
				v.reason = "the task reads a part of a row group"
			}
		}
		if v.reason == "" && rows > 0 {
			ask, groups = append(ask, len(out)), append(groups, n)
			v.bytes = in.CompressedBytes(l, n)
		}
		out = append(out, v)
	}
	for n, reason := range in.CheckAll(l, groups, s.rules) {
		out[ask[n]].reason = reason
	}
	return out, s.route(ctx, in, l, f, out)
}

// settle takes back what is not worth it. reason says why nothing is copied.
func settle(verdicts []verdict, least floor) (reason string) {
	groups, bytes, rows, ranges := int64(0), int64(0), int64(0), 0
	for n := range verdicts {
		v := &verdicts[n]
		switch {
		case v.copied():
			groups++
			bytes += v.bytes
			rows += v.rows
		case v.rows > 0:
			if reason == "" {
				reason = v.reason
			}
			if n == 0 || verdicts[n-1].copied() {
				ranges++
			}
		}
	}
	switch {
	case groups == 0 && reason == "":
		return "it has no rows"
	case groups == 0:
		return reason
	case bytes/groups < least.bytes && rows/groups < least.rows:
		return fmt.Sprintf("its row groups are small: %d rows and %d bytes on average", rows/groups, bytes/groups)
	case ranges > maxFileRanges:
		return "too many parts of it would be read by rows: " + reason
	}
	return ""
}

func (l *SplicedFile) count(verdicts []verdict) {
	l.Rows = 0
	for n := range verdicts {
		v := &verdicts[n]
		l.Rows += v.rows
		l.Groups++
		switch {
		case v.copied():
			l.Copied += v.rows
			l.CopiedGroups++
			l.CopiedBytes += v.bytes
		case v.reason != "" && l.Reason == "":
			l.Reason = v.reason
		}
	}
}

// restOf are the runs of rows of a file that are not copied, within its share.
func restOf(f *planv1.PinnedFile, verdicts []verdict) []*planv1.PinnedFile {
	var out []*planv1.PinnedFile
	for n := range verdicts {
		v := &verdicts[n]
		if v.copied() || v.rows == 0 {
			continue
		}
		first, end := max(v.first, f.GetFirstRow()), v.first+v.rows
		if f.GetEndRow() > 0 {
			end = min(end, f.GetEndRow())
		}
		if k := len(out); k > 0 && out[k-1].GetEndRow() == first {
			out[k-1].EndRow = end
			continue
		}
		part := proto.CloneOf(f)
		part.FirstRow, part.EndRow = first, end
		out = append(out, part)
	}
	return out
}

// narrowed is a source of fewer rows.
func narrowed(src *planv1.Source, files []*planv1.PinnedFile) *planv1.Source {
	out := &planv1.Source{View: src.GetView(), Alias: src.GetAlias()}
	if t := src.GetTable(); t != nil {
		scan := &planv1.TableScan{
			Schema: t.GetSchema(), Table: t.GetTable(), Version: t.GetVersion(), ConstantIds: t.GetConstantIds(), WithPositions: t.GetWithPositions(),
			Branch: t.GetBranch(), Files: files, Names: t.GetNames(), RowLineage: t.GetRowLineage(), TotalFiles: t.GetTotalFiles(),
			ByName: t.GetByName(),
		}
		out.Kind = &planv1.Source_Table{Table: scan}
		return out
	}
	fs := src.GetFile()
	out.Kind = &planv1.Source_File{File: &planv1.FileSource{Function: fs.GetFunction(), Options: fs.GetOptions(), Columns: fs.GetColumns(), Files: files}}
	return out
}

// spliceOutput is a file in the making, of one partition.
type spliceOutput struct {
	*splice.Output
	layout    *splice.Layout
	partition []*planv1.Value
}

func (s *splicer) add(ctx context.Context, in *splice.Input, l *splice.Layout, v *verdict) error {
	key := partitionKey(v.partition) + l.Signature()
	o := s.open[key]
	if o != nil && (o.Size()+v.bytes > s.p.targetSize() || o.Groups() >= splice.MaxGroups) {
		if err := s.flush(ctx, key); err != nil {
			return err
		}
		o = nil
	}
	if o == nil {
		o = &spliceOutput{Output: splice.NewOutput(l), layout: l, partition: v.partition}
		s.open[key] = o
	}
	o.Add(in, l, v.group)
	if s.pending += len(l.Leaves); s.pending <= maxPending {
		return nil
	}
	largest := key
	for k, other := range s.open {
		if other.Groups() > s.open[largest].Groups() {
			largest = k
		}
	}
	return s.flush(ctx, largest)
}

func partitionKey(values []*planv1.Value) string {
	key := ""
	for _, v := range values {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(v)
		if err != nil { // a value is plain data
			continue
		}
		key += fmt.Sprintf("%d:%x,", len(b), b)
	}
	return key
}

// flush makes the file.
func (s *splicer) flush(ctx context.Context, key string) error {
	o := s.open[key]
	delete(s.open, key)
	s.pending -= o.Groups() * len(o.layout.Leaves)
	made := o.Finish()
	f := &written{
		path: fmt.Sprintf("%s/p%d.parquet", s.dir, len(s.made)), rows: made.Rows, size: made.Size, partition: o.partition, offsets: made.Offsets,
		stats: map[string]*colStats{},
	}
	if len(o.layout.Leaves) != len(s.p.leaves) {
		return fmt.Errorf("%d columns of a copied file, and %d of the table", len(o.layout.Leaves), len(s.p.leaves))
	}
	for n, l := range s.p.leaves {
		f.stats[l.key] = splicedStats(&made.Metrics[n])
	}
	if err := s.p.checkPartition(f); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	if slices.ContainsFunc(made.Pieces, func(p splice.Piece) bool { return p.From != nil }) { // made where it will be, when it is placed
		f.stored = made
		s.made = append(s.made, f)
		return nil
	}
	if err := s.maker.Make(ctx, made.Pieces, f.path); err != nil {
		return fmt.Errorf("copy row groups: %w", err)
	}
	s.made = append(s.made, f)
	return nil
}

func splicedStats(m *splice.Metrics) *colStats {
	c := &colStats{size: m.Bytes, values: m.Values, nulls: m.Nulls, nans: -1, spliced: true, bounded: m.Bounded}
	if m.Bounded && m.Low != nil {
		c.low, c.high = &planv1.Bound{Value: m.Low, Exact: m.LowExact}, &planv1.Bound{Value: m.High, Exact: m.HighExact}
	}
	return c
}
