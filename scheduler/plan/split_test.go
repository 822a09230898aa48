package plan

import (
	"testing"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

func fileInput(files []*planv1.PinnedFile, stats []*executorv1.FileStats) Input {
	return Input{
		Sources: []*planv1.Source{{View: "v", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: files}}}},
		Stats:   []*executorv1.SourceStats{{View: "v", Files: stats}},
		RowWise: true,
	}
}

func TestSplitInput_OneFileByRowGroups(t *testing.T) {
	in := fileInput([]*planv1.PinnedFile{{Path: "a", SizeBytes: 400}}, []*executorv1.FileStats{{Path: "a", RowGroupRows: []int64{10, 10, 0, 10, 10}, Rows: 40}})
	got := SplitInput(in, Limits{Executors: 2, MinBytes: 1})
	require.Len(t, got.Shares, 2)
	require.Empty(t, got.Reason)
	require.Equal(t, [][2]int64{{0, 20}}, ranges(got.Shares[0]))
	require.Equal(t, [][2]int64{{20, 40}}, ranges(got.Shares[1]))
	require.Equal(t, []int64{200, 200}, got.Bytes)
}

func TestSplitInput_WholeFilesAgain(t *testing.T) {
	in := fileInput([]*planv1.PinnedFile{{Path: "a", SizeBytes: 100}, {Path: "b", SizeBytes: 100}, {Path: "c", SizeBytes: 100}, {Path: "d", SizeBytes: 100}},
		[]*executorv1.FileStats{{Path: "a", RowGroupRows: []int64{5, 5}, Rows: 10}, {Path: "b", RowGroupRows: []int64{5, 5}, Rows: 10}, {Path: "d", Rows: -1}})
	got := SplitInput(in, Limits{Executors: 2, MinBytes: 1})
	require.Equal(t, [][2]int64{{0, 0}, {0, 0}}, ranges(got.Shares[0]))
	require.Equal(t, [][2]int64{{0, 0}, {0, 0}}, ranges(got.Shares[1]))
	require.Zero(t, in.Sources[0].GetFile().GetFiles()[0].GetEndRow(), "the caller's messages stay as they are")
}

func ranges(sources []*planv1.Source) [][2]int64 {
	var out [][2]int64
	for _, f := range filesOf(sources[0]) {
		out = append(out, [2]int64{f.GetFirstRow(), f.GetEndRow()})
	}
	return out
}

func TestSplitInput_ReasonsForOneTask(t *testing.T) {
	big := fileInput([]*planv1.PinnedFile{{Path: "a", SizeBytes: 1 << 40}, {Path: "b", SizeBytes: 1 << 40}}, nil)
	small := fileInput([]*planv1.PinnedFile{{Path: "a", SizeBytes: 10}, {Path: "b", SizeBytes: 10}}, nil)
	notRowWise := proto.CloneOf(big.Sources[0])
	for want, c := range map[string]struct {
		in     Input
		limits Limits
	}{
		"GROUP BY":                 {Input{Sources: []*planv1.Source{notRowWise}, NotRowWise: "GROUP BY"}, Limits{Executors: 4}},
		"needs all its rows":       {Input{Sources: []*planv1.Source{notRowWise}}, Limits{Executors: 4}},
		"the query reads no files": {Input{RowWise: true}, Limits{Executors: 4}},
		"several sources":          {Input{RowWise: true, Sources: []*planv1.Source{notRowWise, notRowWise}}, Limits{Executors: 4}},
		"the input is small: 20 B": {small, Limits{Executors: 4}},
		"it has one part":          {fileInput([]*planv1.PinnedFile{{Path: "a", SizeBytes: 1 << 40}}, nil), Limits{Executors: 4}},
		"there is one executor":    {big, Limits{Executors: 1, TargetBytes: 1 << 50}},
		"one task was asked for":   {big, Limits{Executors: 9, MaxTasks: 1}},
		"the input is small: 0 B":  {fileInput([]*planv1.PinnedFile{{Path: "a"}, {Path: "b"}}, []*executorv1.FileStats{{Path: "a", RowGroupRows: []int64{0}}, {Path: "b"}}), Limits{Executors: 2}}, // X6
	} {
		got := SplitInput(c.in, c.limits)
		require.Len(t, got.Shares, 1, want)
		require.Contains(t, got.Reason, want)
		require.Equal(t, c.in.Sources, got.Shares[0])
	}
}

func TestSplitInput_TableScansByFiles(t *testing.T) {
	src := &planv1.Source{View: "v", Kind: &planv1.Source_Table{Table: &planv1.TableScan{Table: "c.s.t", Version: "7", ConstantIds: []int32{3}, Files: []*planv1.PinnedFile{
		{Path: "a", SizeBytes: 100, Constants: []*planv1.Value{{}}}, {Path: "b", SizeBytes: 100}, {Path: "c", SizeBytes: 100},
	}}}}
	got := SplitInput(Input{Sources: []*planv1.Source{src}, RowWise: true, Stats: []*executorv1.SourceStats{{View: "v", Files: []*executorv1.FileStats{{Path: "a", RowGroupRows: []int64{5, 5}, Rows: 10}}}}},
		Limits{Executors: 8, MinBytes: 1})
	require.Len(t, got.Shares, 3)
	require.Equal(t, "7", got.Shares[0][0].GetTable().GetVersion())
	require.Len(t, got.Shares[0][0].GetTable().GetFiles()[0].GetConstants(), 1)
}

// Whatever the files, shares are not empty, cover every row exactly once and in order, and none is larger than an even share by more
// than the largest unit.
func TestSplitInput_CoversExactlyOnce_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []*planv1.PinnedFile
		var stats []*executorv1.FileStats
		type span struct {
			path      string
			from, end int64
		}
		var want []span
		largest, total := int64(0), int64(0)
		for i := range rapid.IntRange(1, 12).Draw(t, "files") {
			path := string(rune('a' + i))
			size := rapid.Int64Range(0, 1000).Draw(t, "size")
			files = append(files, &planv1.PinnedFile{Path: path, SizeBytes: size})
			total += size
			groups := rapid.SliceOfN(rapid.Int64Range(0, 50), 0, 6).Draw(t, "groups")
			rows := int64(0)
			for _, g := range groups {
				rows += g
			}
			stats = append(stats, &executorv1.FileStats{Path: path, RowGroupRows: groups, Rows: rows})
			want = append(want, span{path, 0, rows})
			largest = max(largest, size)
		}
		in := fileInput(files, stats)
		limits := Limits{Executors: rapid.IntRange(0, 20).Draw(t, "executors"), MinBytes: rapid.Int64Range(1, 300).Draw(t, "min"), TargetBytes: rapid.Int64Range(1, 5000).Draw(t, "target")}
		got := SplitInput(in, limits)
		if len(got.Shares) == 0 || len(got.Shares) != len(got.Bytes) || len(got.Shares) == 1 != (got.Reason != "") {
			t.Fatalf("%d shares, %d bytes, reason %q", len(got.Shares), len(got.Bytes), got.Reason)
		}
		var covered []span
		for i, share := range got.Shares {
			if len(filesOf(share[0])) == 0 {
				t.Fatalf("share %d is empty", i)
			}
			if len(got.Shares) > 1 && got.Bytes[i] > total/int64(len(got.Shares))+largest+1 {
				t.Fatalf("share %d has %d of %d bytes in %d shares", i, got.Bytes[i], total, len(got.Shares))
			}
			for _, f := range filesOf(share[0]) {
				s := span{f.GetPath(), f.GetFirstRow(), f.GetEndRow()}
				if s.from == 0 && s.end == 0 {
					s.end = want[int(f.GetPath()[0]-'a')].end
				}
				if n := len(covered); n > 0 && covered[n-1].path == s.path {
					if covered[n-1].end != s.from {
						t.Fatalf("%v follows %v", s, covered[n-1])
					}
					covered[n-1].end = s.end
					continue
				}
				covered = append(covered, s)
			}
		}
		if len(covered) != len(want) {
			t.Fatalf("covered %v, want %v", covered, want)
		}
		for i := range want {
			if covered[i] != want[i] {
				t.Fatalf("covered %v, want %v", covered, want)
			}
		}
	})
}
