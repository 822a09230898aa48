package coordinator

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/manifest"
)

// Expectation is what a task manifest must say to be the manifest of one attempt. It comes from the journal, never from the sender.
type Expectation struct {
	JobID      string
	Stage      int32
	Task       int32
	AttemptID  string
	Epoch      uint64 // under which the attempt was journalled
	TableUUID  string
	SchemaID   int32
	SpecID     int32
	Prefix     string  // URI, no trailing slash
	Partition  int     // number of partition fields of the spec
	Columns    int     // upper bound for the columns with metrics of one file; 0: unchecked
	SortOrders []int32 // allowed sort order ids; nil: unchecked
	Replaces   bool    // the task may replace files of the table
	Deletes    bool    // it may write delete files
	// Given has the files that the task may register where they are, with their sizes, by URI; nil: it writes its files itself, below the prefix.
	Given map[string]int64
	// About are the files of the table that the task was given, by the table's names: it replaces, or deletes rows of, those alone. nil: unchecked.
	About map[string]struct{}
	// Seen reports whether another attempt of the job brought the path; nil: not asked. Machine.HasPath fits.
	Seen func(attempt, path string) bool
}

// ManifestError says what is wrong with a task manifest.
type ManifestError struct {
	Field string // job, stage, task, attempt, epoch, table, schema, spec, prefix, path, format, counts, partition, columns, offsets, content, replaced, totals
	Path  string // the data file; empty: the manifest as a whole
	Cause string
}

func (e *ManifestError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("task manifest refused: %s: %s", e.Field, e.Cause)
	}
	return fmt.Sprintf("task manifest refused: %s of file %q: %s", e.Field, e.Path, e.Cause)
}

// CheckManifest decides whether a task manifest is what its attempt was asked for. The header is checked before any file, because
// values decoded under another spec look right and are not.
func CheckManifest(e Expectation, h *planv1.ManifestHeader, files []*planv1.DataFile, t *planv1.ManifestTrailer, replaced ...*planv1.ReplacedFile) error {
	if err := CheckHeader(e, h); err != nil {
		return err
	}
	prefix, err := parseLocation(e.Prefix)
	if err != nil {
		return &ManifestError{Field: "prefix", Cause: err.Error()}
	}
	seen := make(map[string]bool, len(files))
	var sum Totals
	for _, f := range files {
		if err := e.checkFile(prefix, f); err != nil {
			return err
		}
		p := FileKey(f)
		if seen[p] && !mutated("path-twice") || (e.Seen != nil && e.Seen(e.AttemptID, p)) {
			return &ManifestError{Field: "path", Path: p, Cause: "listed before"}
		}
		seen[p] = true
		c := manifest.CountsOf(f)
		one := Totals{Files: 1, Rows: c.Rows, Bytes: c.Bytes, DeletedRows: c.Deleted, UpdatedRows: c.Updated}
		if sum = sum.add(one); sum.negative() {
			return &ManifestError{Field: "totals", Cause: "overflow"}
		}
	}
	gone, err := checkReplaced(e, replaced, seen)
	if err != nil {
		return err
	}
	sum = sum.add(gone)
	if want := TotalsOf(t); sum != want && !mutated("totals-unchecked") {
		return &ManifestError{Field: "totals", Cause: fmt.Sprintf("files add up to %+v, the trailer says %+v", sum, want)}
	}
	return nil
}

// checkReplaced checks the files that the task says it has replaced. Whether the table has them, the commit finds out.
func checkReplaced(e Expectation, replaced []*planv1.ReplacedFile, written map[string]bool) (Totals, error) {
	var sum Totals
	if len(replaced) > 0 && !e.Replaces {
		return sum, &ManifestError{Field: "replaced", Path: clip(replaced[0].GetPath()), Cause: "the write replaces no files"}
	}
	seen := make(map[string]bool, len(replaced))
	for _, f := range replaced {
		bad := func(format string, a ...any) error {
			return &ManifestError{Field: "replaced", Path: clip(f.GetPath()), Cause: fmt.Sprintf(format, a...)}
		}
		switch {
		case f.GetPath() == "":
			return sum, bad("it has no path")
		case seen[f.GetPath()] || written[f.GetPath()]:
			return sum, bad("listed before")
		case !e.isAbout(f.GetPath()):
			return sum, bad("the task was not given this file")
		case f.GetRecordCount() < 0 || f.GetDeletedRows() < 0 || f.GetUpdatedRows() < 0 || f.GetDeletedRows() > f.GetRecordCount()-f.GetUpdatedRows():
			return sum, bad("%d rows, %d of them deleted and %d updated", f.GetRecordCount(), f.GetDeletedRows(), f.GetUpdatedRows())
		}
		seen[f.GetPath()] = true
		if sum = sum.add(Totals{ReplacedFiles: 1, DeletedRows: f.GetDeletedRows(), UpdatedRows: f.GetUpdatedRows()}); sum.negative() {
			return sum, &ManifestError{Field: "totals", Cause: "overflow"}
		}
	}
	return sum, nil
}

func (e *Expectation) isAbout(path string) bool {
	_, ok := e.About[path]
	return ok || e.About == nil || mutated("about-anything")
}

// FileKey names a file once: its path, and of a deletion vector also its place, since one object holds several.
func FileKey(f *planv1.DataFile) string {
	if f.GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR {
		return fmt.Sprintf("%s#%d", f.GetPath(), f.GetContentOffset())
	}
	return f.GetPath()
}

// CheckHeader compares the ids alone; it needs no decoded file.
func CheckHeader(e Expectation, h *planv1.ManifestHeader) error {
	for _, c := range []struct {
		field     string
		got, want any
	}{
		{"job", h.GetJobId(), e.JobID},
		{"stage", h.GetStage(), e.Stage},
		{"task", h.GetTask(), e.Task},
		{"attempt", h.GetAttemptId(), e.AttemptID},
		{"epoch", h.GetEpoch(), e.Epoch},
		{"table", h.GetTableUuid(), e.TableUUID},
		{"schema", h.GetSchemaId(), e.SchemaID},
		{"spec", h.GetSpecId(), e.SpecID},
		{"prefix", h.GetPrefix(), e.Prefix},
	} {
		if c.got != c.want && !mutated("header-unchecked") {
			return &ManifestError{Field: c.field, Cause: fmt.Sprintf("%v, expected %v", quote(c.got), quote(c.want))}
		}
	}
	return nil
}

func quote(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", clip(s))
	}
	return v
}

func (e *Expectation) checkFile(prefix location, f *planv1.DataFile) error {
	bad := func(field, format string, a ...any) error {
		return &ManifestError{Field: field, Path: clip(f.GetPath()), Cause: fmt.Sprintf(format, a...)}
	}
	loc, err := parseLocation(f.GetPath())
	if err != nil {
		return bad("path", "%v", err)
	}
	below, ok := loc.below(prefix)
	if e.Given != nil {
		size, given := e.Given[f.GetPath()]
		switch {
		case !given && !mutated("path-anywhere"):
			return bad("path", "not one of the files that the task was given")
		case given && size != f.GetSizeBytes():
			return bad("counts", "%d bytes, it was planned with %d", f.GetSizeBytes(), size)
		}
		below = loc.segments
	} else if !ok && !mutated("path-anywhere") {
		return bad("path", "not below %q", e.Prefix)
	}
	// What the executor chose itself must read the same to every reader, also to one that decodes or expands.
	if strings.HasSuffix(f.GetPath(), "/") || strings.ContainsAny(strings.Join(below, "/"), `%?#\*`) {
		return bad("path", "its name can be read in two ways")
	}
	vector := f.GetContent() == planv1.FileContent_FILE_CONTENT_DELETION_VECTOR
	puffin := vector && f.GetFormat() == planv1.FileFormat_FILE_FORMAT_UNSPECIFIED
	if f.GetFormat() != planv1.FileFormat_FILE_FORMAT_PARQUET && !puffin {
		return bad("format", "%v", f.GetFormat())
	}
	if f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED && !e.Deletes {
		return bad("content", "%v: the write has no delete files", f.GetContent())
	}
	if vector && (f.GetReferencedDataFile() == "" || f.GetContentOffset() < 0 || f.GetContentSize() <= 0 || f.GetContentSize() > f.GetSizeBytes()-f.GetContentOffset()) {
		return bad("content", "a deletion vector of %q at %d+%d in %d bytes", clip(f.GetReferencedDataFile()), f.GetContentOffset(), f.GetContentSize(), f.GetSizeBytes())
	}
	if about := f.GetReferencedDataFile(); about != "" && !e.isAbout(about) {
		return bad("content", "it deletes rows of %q, which the task was not given", clip(about))
	}
	if f.GetRecordCount() < 0 || f.GetSizeBytes() <= 0 {
		return bad("counts", "%d records in %d bytes", f.GetRecordCount(), f.GetSizeBytes())
	}
	deletes := f.GetContent() != planv1.FileContent_FILE_CONTENT_UNSPECIFIED
	if u, c := f.GetUpdatedRows(), f.GetCarriedRows(); u < 0 || c < 0 || u > f.GetRecordCount() || c > f.GetRecordCount()-u || !deletes && u+c > 0 {
		return bad("counts", "%d records, %d of them deleted before and %d changed", f.GetRecordCount(), c, u)
	}
	if len(f.GetMerged()) > 0 && f.GetContent() != planv1.FileContent_FILE_CONTENT_POSITION_DELETES {
		return bad("content", "%v that takes the place of position delete files", f.GetContent())
	}
	if n := len(f.GetPartition()); n != e.Partition && (n > 0 || !deletes) {
		return bad("partition", "%d values, the spec has %d fields", len(f.GetPartition()), e.Partition)
	}
	if cause := checkColumns(f, e.Columns); cause != "" {
		return bad("columns", "%s", cause)
	}
	last := int64(-1)
	for _, o := range f.GetSplitOffsets() {
		if o <= last || o >= f.GetSizeBytes() {
			return bad("offsets", "%d after %d in %d bytes", o, last, f.GetSizeBytes())
		}
		last = o
	}
	if e.SortOrders != nil && !slices.Contains(e.SortOrders, f.GetSortOrderId()) {
		return bad("sort order", "%d", f.GetSortOrderId())
	}
	return nil
}

// checkColumns returns what is wrong with the column metrics. Value counts of nested columns may pass the record count, so that
// only their relation to each other is checked.
func checkColumns(f *planv1.DataFile, limit int) string {
	if limit > 0 && len(f.GetColumns()) > limit {
		return fmt.Sprintf("%d columns, the schema has %d", len(f.GetColumns()), limit)
	}
	seen := make(map[int32]bool, len(f.GetColumns()))
	for _, c := range f.GetColumns() {
		switch {
		case seen[c.GetFieldId()]:
			return fmt.Sprintf("field %d twice", c.GetFieldId())
		case c.GetSizeBytes() < 0 || c.GetValueCount() < 0 || c.GetNullCount() < 0 || c.GetNanCount() < 0:
			return fmt.Sprintf("field %d has a negative count", c.GetFieldId())
		case c.ValueCount != nil && c.GetNanCount() > c.GetValueCount()-c.GetNullCount():
			return fmt.Sprintf("field %d has more NULLs and NaNs than values", c.GetFieldId())
		}
		seen[c.GetFieldId()] = true
	}
	return ""
}
