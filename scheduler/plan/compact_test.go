package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func TestParseCompactOptions(t *testing.T) {
	o, err := ParseCompactOptions(nil, 1000)
	require.NoError(t, err)
	require.Equal(t, CompactOptions{Target: 1000, Min: 750, Max: 1800, MinFiles: 5, MaxGroup: 10 << 30, DeleteFiles: 1 << 30, DeletedRatio: 0.3}, o)
	o, err = ParseCompactOptions(map[string]string{
		"target-file-size-bytes": "100", "min-input-files": "2", "rewrite-all": "TRUE", "delete-file-threshold": "1", "delete-ratio-threshold": "0.5",
		"max-file-group-size-bytes": "5000", "partial-progress.enabled": "false", "use-starting-sequence-number": "true",
	}, 1000)
	require.NoError(t, err)
	require.Equal(t, CompactOptions{Target: 100, Min: 75, Max: 180, MinFiles: 2, All: true, MaxGroup: 5000, DeleteFiles: 1, DeletedRatio: 0.5}, o)
	for name, v := range map[string]string{
		"target-file-size": "1", "target-file-size-bytes": "0", "min-file-size-bytes": "1000", "max-file-size-bytes": "1000", "min-input-files": "0", "rewrite-all": "1x",
		"delete-ratio-threshold": "0", "delete-file-threshold": "-1", "partial-progress.enabled": "true", "use-starting-sequence-number": "false", "max-file-group-size-bytes": "many",
	} {
		_, err := ParseCompactOptions(map[string]string{name: v}, 1000)
		require.ErrorContains(t, err, name)
		var e *Error
		require.ErrorAs(t, err, &e)
	}
	_, err = ParseCompactOptions(map[string]string{"delete-ratio-threshold": "NaN"}, 1000)
	require.Error(t, err)
}

func TestCompactGroups(t *testing.T) {
	n := 0
	file := func(size int64) *planv1.PinnedFile {
		n++
		return &planv1.PinnedFile{Name: fmt.Sprint(n), SizeBytes: size, RecordCount: 10}
	}
	in := func(partition string, sizes ...int64) []CompactFile {
		var out []CompactFile
		for _, s := range sizes {
			out = append(out, CompactFile{File: file(s), Partition: partition})
		}
		return out
	}
	with := func(f CompactFile, deletes ...*planv1.DeleteFile) CompactFile {
		f.File.Deletes = deletes
		return f
	}
	vector := func(rows int64) *planv1.DeleteFile {
		return &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, RecordCount: rows}
	}
	position := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, RecordCount: 100}
	for name, tc := range map[string]struct {
		files  []CompactFile
		edit   func(*CompactOptions)
		sorted bool
		want   [][]int64 // sizes
	}{
		"nothing":                           {},
		"files of the right size stay":      {files: in("p", 750, 1000, 1800, 900, 900)},
		"too few small ones":                {files: in("p", 10, 10, 10, 10)},
		"enough small ones":                 {files: in("p", 10, 10, 900, 10, 10, 10), want: [][]int64{{10, 10, 10, 10, 10}}},
		"few, but enough for a file":        {files: in("p", 600, 500), want: [][]int64{{600, 500}}},
		"one small one alone":               {files: in("p", 10), edit: func(o *CompactOptions) { o.MinFiles = 1 }},
		"a large one alone":                 {files: in("p", 1801), want: [][]int64{{1801}}},
		"partitions are apart":              {files: append(in("p", 10, 10, 10), in("q", 10, 10, 10)...)},
		"partitions are apart, both enough": {files: append(in("p", 600, 500), in("q", 700, 400)...), want: [][]int64{{600, 500}, {700, 400}}},
		"all":                               {files: append(in("p", 10, 900), in("q", 5)...), edit: func(o *CompactOptions) { o.All = true }, want: [][]int64{{10, 900}, {5}}},
		"many deleted rows":                 {files: []CompactFile{with(in("p", 900)[0], vector(3)), with(in("p", 900)[0], vector(2))}, want: [][]int64{{900}}},
		"deletes that may be of others":     {files: []CompactFile{with(in("p", 900)[0], position)}},
		"many delete files":                 {files: []CompactFile{with(in("p", 900)[0], position, position)}, edit: func(o *CompactOptions) { o.DeleteFiles = 2 }, want: [][]int64{{900}}},
		"a threshold of none is of those with deletes": {
			files: append([]CompactFile{with(in("p", 900)[0], position)}, in("p", 900)...), edit: func(o *CompactOptions) { o.DeleteFiles = 0 }, want: [][]int64{{900}},
		},
		"shared evenly, where order does not matter": {files: in("p", 700, 700, 700, 700, 700, 700, 700), want: [][]int64{{700, 700, 700, 700}, {700, 700, 700}}},
		"sorted together":               {files: in("p", 700, 700, 700, 700, 700, 700, 700), sorted: true, want: [][]int64{{700, 700, 700, 700, 700, 700, 700}}},
		"sorted by groups":              {files: in("p", 700, 700, 700, 700), sorted: true, edit: func(o *CompactOptions) { o.MaxGroup = 1500 }, want: [][]int64{{700, 700}, {700, 700}}},
		"a file above the group's size": {files: in("p", 5000, 600, 600), sorted: true, edit: func(o *CompactOptions) { o.MaxGroup = 1500 }, want: [][]int64{{5000}, {600, 600}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultCompactOptions(1000)
			if tc.edit != nil {
				tc.edit(&o)
			}
			var got [][]int64
			seen := map[string]bool{}
			for _, g := range CompactGroups(tc.files, o, tc.sorted) {
				var sizes []int64
				for _, f := range g {
					require.False(t, seen[f.Name], "no file twice")
					seen[f.Name] = true
					sizes = append(sizes, f.SizeBytes)
				}
				got = append(got, sizes)
			}
			require.Equal(t, tc.want, got)
		})
	}
}
