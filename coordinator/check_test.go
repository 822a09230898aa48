package coordinator

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

const prefix = "file:///wh/a b/t%20/data/job/1/2/attempt"

func expectation() Expectation {
	return Expectation{
		JobID: "job", Stage: 1, Task: 2, AttemptID: "attempt", Epoch: 3, TableUUID: "uuid", SchemaID: 4, SpecID: 5, Prefix: prefix, Partition: 1, Columns: 2,
		SortOrders: []int32{0, 1},
	}
}

func goodHeader() *planv1.ManifestHeader {
	return &planv1.ManifestHeader{JobId: "job", Stage: 1, Task: 2, AttemptId: "attempt", Epoch: 3, TableUuid: "uuid", SchemaId: 4, SpecId: 5, Prefix: prefix}
}

func goodFile(n int) *planv1.DataFile {
	return &planv1.DataFile{
		Path: fmt.Sprintf("%s/1-2-attempt-%d.parquet", prefix, n), Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 100,
		Partition: []*planv1.Value{{}}, SplitOffsets: []int64{4, 50}, SortOrderId: 1,
		Columns: []*planv1.ColumnMetrics{{FieldId: 1, ValueCount: proto.Int64(10), NullCount: proto.Int64(3), NanCount: proto.Int64(7)}, {FieldId: 2, SizeBytes: proto.Int64(0)}},
	}
}

func trailerOf(files []*planv1.DataFile) *planv1.ManifestTrailer {
	t := &planv1.ManifestTrailer{}
	for _, f := range files {
		t.Files++
		t.Rows += f.GetRecordCount()
		t.Bytes += f.GetSizeBytes()
	}
	return t
}

func requireManifestError(t *testing.T, err error, field string) {
	t.Helper()
	var m *ManifestError
	require.ErrorAs(t, err, &m)
	require.Equal(t, field, m.Field, err)
	require.NotEmpty(t, m.Cause)
	require.Less(t, len(err.Error()), 8<<10, "a refusal stays readable")
}

func TestCheckManifest_Good(t *testing.T) {
	files := []*planv1.DataFile{goodFile(0), goodFile(1)}
	require.NoError(t, CheckManifest(expectation(), goodHeader(), files, trailerOf(files)))
	require.NoError(t, CheckManifest(expectation(), goodHeader(), nil, &planv1.ManifestTrailer{}))
	plain := goodFile(0) // another writer's spelling of the same store
	plain.Path = strings.TrimPrefix(plain.GetPath(), "file://")
	require.NoError(t, CheckManifest(expectation(), goodHeader(), []*planv1.DataFile{plain}, trailerOf([]*planv1.DataFile{plain})))
}

// S66, C26: every id is compared, before any file is looked at.
func TestCheckManifest_Header(t *testing.T) {
	for field, edit := range map[string]func(*planv1.ManifestHeader){
		"job":     func(h *planv1.ManifestHeader) { h.JobId = "other" },
		"stage":   func(h *planv1.ManifestHeader) { h.Stage = 0 },
		"task":    func(h *planv1.ManifestHeader) { h.Task = 3 },
		"attempt": func(h *planv1.ManifestHeader) { h.AttemptId = strings.Repeat("x", 1<<20) },
		"epoch":   func(h *planv1.ManifestHeader) { h.Epoch = 2 },
		"table":   func(h *planv1.ManifestHeader) { h.TableUuid = "" },
		"schema":  func(h *planv1.ManifestHeader) { h.SchemaId = 5 },
		"spec":    func(h *planv1.ManifestHeader) { h.SpecId = 4 },
		"prefix":  func(h *planv1.ManifestHeader) { h.Prefix += "/" },
	} {
		h := goodHeader()
		edit(h)
		bad := &planv1.DataFile{Path: "nonsense"}
		requireManifestError(t, CheckManifest(expectation(), h, []*planv1.DataFile{bad}, &planv1.ManifestTrailer{}), field)
		requireManifestError(t, CheckHeader(expectation(), h), field)
	}
	requireManifestError(t, CheckHeader(expectation(), nil), "job")
}

// Numbers in docs/semantics.md: S66.
func TestCheckManifest_Files(t *testing.T) {
	for name, tc := range map[string]struct {
		field string
		edit  func(*planv1.DataFile)
	}{
		"other job's path":          {"path", func(f *planv1.DataFile) { f.Path = "file:///wh/a b/t%20/data/job2/1/2/attempt/x.parquet" }},
		"string prefix only":        {"path", func(f *planv1.DataFile) { f.Path = prefix + "2/x.parquet" }},
		"the prefix itself":         {"path", func(f *planv1.DataFile) { f.Path = prefix }},
		"a directory":               {"path", func(f *planv1.DataFile) { f.Path = prefix + "/x/" }},
		"climbs":                    {"path", func(f *planv1.DataFile) { f.Path = prefix + "/../attempt2/x.parquet" }},
		"climbs and returns":        {"path", func(f *planv1.DataFile) { f.Path = prefix + "/../attempt/x.parquet" }},
		"dot":                       {"path", func(f *planv1.DataFile) { f.Path = prefix + "/./x.parquet" }},
		"double slash":              {"path", func(f *planv1.DataFile) { f.Path = prefix + "//x.parquet" }},
		"escaped dots":              {"path", func(f *planv1.DataFile) { f.Path = prefix + "/%2e%2e/x.parquet" }},
		"decoded prefix":            {"path", func(f *planv1.DataFile) { f.Path = strings.Replace(prefix, "%20", " ", 1) + "/x.parquet" }},
		"query":                     {"path", func(f *planv1.DataFile) { f.Path = prefix + "/x.parquet?versionId=1" }},
		"pattern":                   {"path", func(f *planv1.DataFile) { f.Path = prefix + "/*.parquet" }},
		"backslash":                 {"path", func(f *planv1.DataFile) { f.Path = prefix + `/..\x.parquet` }},
		"NUL":                       {"path", func(f *planv1.DataFile) { f.Path = prefix + "/x\x00.parquet" }},
		"newline":                   {"path", func(f *planv1.DataFile) { f.Path = prefix + "/x\n.parquet" }},
		"other store":               {"path", func(f *planv1.DataFile) { f.Path = "s3://wh/a b/t%20/data/job/1/2/attempt/x.parquet" }},
		"other host":                {"path", func(f *planv1.DataFile) { f.Path = "file://evil/wh/a b/t%20/data/job/1/2/attempt/x.parquet" }},
		"relative":                  {"path", func(f *planv1.DataFile) { f.Path = "wh/x.parquet" }},
		"empty":                     {"path", func(f *planv1.DataFile) { f.Path = "" }},
		"no format":                 {"format", func(f *planv1.DataFile) { f.Format = 0 }},
		"negative rows":             {"counts", func(f *planv1.DataFile) { f.RecordCount = -1 }},
		"negative size":             {"counts", func(f *planv1.DataFile) { f.SizeBytes = -1 }},
		"no bytes":                  {"counts", func(f *planv1.DataFile) { f.SizeBytes = 0 }},
		"no partition value":        {"partition", func(f *planv1.DataFile) { f.Partition = nil }},
		"too many partition values": {"partition", func(f *planv1.DataFile) { f.Partition = append(f.Partition, &planv1.Value{}) }},
		"field twice":               {"columns", func(f *planv1.DataFile) { f.Columns[1].FieldId = 1 }},
		"too many columns":          {"columns", func(f *planv1.DataFile) { f.Columns = append(f.Columns, &planv1.ColumnMetrics{FieldId: 9}) }},
		"negative count":            {"columns", func(f *planv1.DataFile) { f.Columns[0].NullCount = proto.Int64(-1) }},
		"more nulls than values":    {"columns", func(f *planv1.DataFile) { f.Columns[0].NullCount = proto.Int64(4) }},
		"nulls overflow": {"columns", func(f *planv1.DataFile) {
			f.Columns[0].NullCount, f.Columns[0].NanCount = proto.Int64(math.MaxInt64), proto.Int64(math.MaxInt64)
		}},
		"offsets fall":          {"offsets", func(f *planv1.DataFile) { f.SplitOffsets = []int64{50, 4} }},
		"offset beyond the end": {"offsets", func(f *planv1.DataFile) { f.SplitOffsets = []int64{100} }},
		"negative offset":       {"offsets", func(f *planv1.DataFile) { f.SplitOffsets = []int64{-4} }},
		"unknown sort order":    {"sort order", func(f *planv1.DataFile) { f.SortOrderId = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			f := goodFile(0)
			tc.edit(f)
			files := []*planv1.DataFile{f, goodFile(1)}
			requireManifestError(t, CheckManifest(expectation(), goodHeader(), files, trailerOf(files)), tc.field)
		})
	}
	requireManifestError(t, CheckManifest(expectation(), goodHeader(), []*planv1.DataFile{nil}, &planv1.ManifestTrailer{Files: 1}), "path")
}

// C6, C21, C24: one path once, within the manifest and across the job.
// Numbers in docs/semantics.md: S66.
func TestCheckManifest_DuplicatePaths(t *testing.T) {
	twice := []*planv1.DataFile{goodFile(0), goodFile(0)}
	requireManifestError(t, CheckManifest(expectation(), goodHeader(), twice, trailerOf(twice)), "path")
	m := at(t, Writing)
	m.Index("other attempt", []string{goodFile(1).GetPath()})
	e := expectation()
	e.Seen = m.HasPath
	files := []*planv1.DataFile{goodFile(0), goodFile(1)}
	requireManifestError(t, CheckManifest(e, goodHeader(), files, trailerOf(files)), "path")
	m.Index("attempt", []string{goodFile(1).GetPath()}) // its own repeat
	require.NoError(t, CheckManifest(e, goodHeader(), files, trailerOf(files)))
}

// Numbers in docs/semantics.md: S66.
func TestCheckManifest_Totals(t *testing.T) {
	files := []*planv1.DataFile{goodFile(0), goodFile(1)}
	for _, edit := range []func(*planv1.ManifestTrailer){
		func(x *planv1.ManifestTrailer) { x.Files++ },
		func(x *planv1.ManifestTrailer) { x.Rows-- },
		func(x *planv1.ManifestTrailer) { x.Bytes = 0 },
	} {
		x := trailerOf(files)
		edit(x)
		requireManifestError(t, CheckManifest(expectation(), goodHeader(), files, x), "totals")
	}
	files[0].RecordCount, files[1].RecordCount = math.MaxInt64, 1
	requireManifestError(t, CheckManifest(expectation(), goodHeader(), files, trailerOf(files)), "totals")
	requireManifestError(t, CheckManifest(expectation(), goodHeader(), files[:1], nil), "totals")
}

// Whatever path is accepted, a reader that resolves dots and slashes as a file system does stays below the prefix.
func TestLocation_NeverLeavesThePrefix(t *testing.T) {
	base, err := parseLocation("file:///wh/t/data")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"..", ".", "", "a", "wh", "t", "data", "%2e", "file:", "//"})).Draw(t, "parts")
		uri := rapid.SampledFrom([]string{"file:///wh/t/data/", "/wh/t/data/", "file:/wh/t/data/", "file://localhost/wh/t/data/", "file:///", "s3://wh/t/data/"}).Draw(t, "head") + strings.Join(parts, "/")
		l, err := parseLocation(uri)
		if err != nil {
			return
		}
		below, ok := l.below(base)
		if !ok {
			return
		}
		require.NotContains(t, below, "..")
		require.NotContains(t, below, ".")
		require.NotContains(t, below, "")
		require.NotEmpty(t, below)
	})
}

func TestLocation_Spellings(t *testing.T) {
	base, err := parseLocation("file:///wh/t")
	require.NoError(t, err)
	for uri, want := range map[string]bool{
		"file:///wh/t/x": true, "/wh/t/x": true, "file:/wh/t/x": true, "file://localhost/wh/t/x": true, "FILE:///wh/t/x": true,
		"file:///wh/t": false, "file:///wh/t2/x": false, "file:///wh": false, "s3://wh/t/x": false, "s3:///wh/t/x": false, "file://h/wh/t/x": false,
		"http://u@h/wh/t/x": false, "abfss://a@b@c/wh/t/x": false, "abfss://@c/wh/t/x": false, "wh/t/x": false, "": false, "file:": false, "file://": false, "://": false,
	} {
		l, err := parseLocation(uri)
		_, ok := l.below(base)
		require.Equal(t, want, err == nil && ok, uri)
	}
	s3, err := parseLocation("s3://bucket/wh")
	require.NoError(t, err)
	l, err := parseLocation("s3://bucket/wh/x y/%41")
	require.NoError(t, err)
	below, ok := l.below(s3)
	require.True(t, ok)
	require.Equal(t, []string{"x y", "%41"}, below)
	azure, err := parseLocation("abfss://c@account.dfs.core.windows.net/wh")
	require.NoError(t, err)
	l, err = parseLocation("abfss://c@account.dfs.core.windows.net/wh/x")
	require.NoError(t, err)
	_, ok = l.below(azure)
	require.True(t, ok)
	other, err := parseLocation("s3://bucket2/wh/x")
	require.NoError(t, err)
	_, ok = other.below(s3)
	require.False(t, ok)
	require.False(t, errors.Is(err, ErrInvalid))
}

func TestCheckManifest_ReplacedFilesAndDeleteFiles(t *testing.T) {
	e := expectation()
	h := goodHeader()
	f := &planv1.ReplacedFile{Path: "file:///t/old.parquet", RecordCount: 10, DeletedRows: 3, UpdatedRows: 2}
	trailer := &planv1.ManifestTrailer{ReplacedFiles: 1, DeletedRows: 3, UpdatedRows: 2}
	field := func(err error) string {
		m := new(ManifestError)
		require.ErrorAs(t, err, &m)
		return m.Field
	}
	require.Equal(t, "replaced", field(CheckManifest(e, h, nil, trailer, f)), "the write replaces nothing")
	e.Replaces = true
	require.NoError(t, CheckManifest(e, h, nil, trailer, f))
	require.Equal(t, "replaced", field(CheckManifest(e, h, nil, trailer, f, f)))
	require.Equal(t, "replaced", field(CheckManifest(e, h, nil, trailer, &planv1.ReplacedFile{Path: "p", RecordCount: 1, DeletedRows: 1, UpdatedRows: 1})))
	require.Equal(t, "totals", field(CheckManifest(e, h, nil, &planv1.ManifestTrailer{}, f)))
	e.About = map[string]struct{}{"another": {}}
	require.Equal(t, "replaced", field(CheckManifest(e, h, nil, trailer, f)), "S69: the task was not given this file")
	e.About[f.GetPath()] = struct{}{}
	require.NoError(t, CheckManifest(e, h, nil, trailer, f))
	e.About = nil

	dv := func(offset int64) *planv1.DataFile {
		return &planv1.DataFile{
			Path: e.Prefix + "/a.puffin", Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, RecordCount: 4, SizeBytes: 100, ContentOffset: offset, ContentSize: 20,
			ReferencedDataFile: "file:///t/old.parquet", CarriedRows: 1, UpdatedRows: 2,
		}
	}
	two := []*planv1.DataFile{dv(4), dv(24)}
	trailer = &planv1.ManifestTrailer{Files: 2, Bytes: 40, DeletedRows: 2, UpdatedRows: 4}
	require.Equal(t, "content", field(CheckManifest(e, h, two, trailer)), "the write has no delete files")
	e.Deletes = true
	require.NoError(t, CheckManifest(e, h, two, trailer))
	e.About = map[string]struct{}{"another": {}}
	require.Equal(t, "content", field(CheckManifest(e, h, two, trailer)), "S69: of a file that the task was not given")
	e.About = map[string]struct{}{"file:///t/old.parquet": {}}
	require.NoError(t, CheckManifest(e, h, two, trailer))
	require.Equal(t, "path", field(CheckManifest(e, h, []*planv1.DataFile{dv(4), dv(4)}, trailer)))
	require.Equal(t, "content", field(CheckManifest(e, h, []*planv1.DataFile{dv(90)}, trailer)))
	many := dv(4)
	many.CarriedRows = 3
	require.Equal(t, "counts", field(CheckManifest(e, h, []*planv1.DataFile{many}, trailer)))
	many.Content, many.Format = planv1.FileContent_FILE_CONTENT_UNSPECIFIED, planv1.FileFormat_FILE_FORMAT_PARQUET
	require.Equal(t, "counts", field(CheckManifest(e, h, []*planv1.DataFile{many}, trailer)), "of a data file none are deleted before")
	merged := dv(4)
	merged.Merged = []string{"file:///t/d.parquet"}
	require.Equal(t, "content", field(CheckManifest(e, h, []*planv1.DataFile{merged}, trailer)))
	some := dv(4)
	some.Partition = make([]*planv1.Value, e.Partition+1)
	require.Equal(t, "partition", field(CheckManifest(e, h, []*planv1.DataFile{some}, trailer)))
}

// A task that registers files names exactly those that it was given, wherever they are.
func TestCheckManifest_GivenFiles(t *testing.T) {
	e := expectation()
	e.Given = map[string]int64{"file:///raw/a b.parquet": 100, "file:///raw/a%b.parquet": 100}
	one := func(path string, size int64) []*planv1.DataFile {
		f := goodFile(0)
		f.Path, f.SizeBytes = path, size
		return []*planv1.DataFile{f}
	}
	files := one("file:///raw/a b.parquet", 100)
	require.NoError(t, CheckManifest(e, goodHeader(), files, trailerOf(files)))
	require.NoError(t, CheckManifest(e, goodHeader(), nil, &planv1.ManifestTrailer{}), "files without rows are left out")
	for path, field := range map[string]string{"file:///raw/other.parquet": "path", prefix + "/1-2-attempt-0.parquet": "path", "file:///raw/../raw/a b.parquet": "path", "file:///raw/a%b.parquet": "path"} {
		files = one(path, 100)
		requireManifestError(t, CheckManifest(e, goodHeader(), files, trailerOf(files)), field)
	}
	files = one("file:///raw/a b.parquet", 99)
	requireManifestError(t, CheckManifest(e, goodHeader(), files, trailerOf(files)), "counts")
}
