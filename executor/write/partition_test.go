package write_test

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

const (
	identity = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
	bucket   = planv1.TransformKind_TRANSFORM_KIND_BUCKET
	truncate = planv1.TransformKind_TRANSFORM_KIND_TRUNCATE
	year     = planv1.TransformKind_TRANSFORM_KIND_YEAR
	hour     = planv1.TransformKind_TRANSFORM_KIND_HOUR
	void     = planv1.TransformKind_TRANSFORM_KIND_VOID
)

func partitions(files []*planv1.DataFile) []string {
	var out []string
	for _, f := range files {
		var parts []string
		for _, v := range f.GetPartition() {
			parts = append(parts, show(v))
		}
		out = append(out, fmt.Sprintf("%s: %d", strings.Join(parts, ","), f.GetRecordCount()))
	}
	sort.Strings(out)
	return out
}

// V2, V10, V11, and values that would be absurd in a path.
func TestRun_StringPartitionsStayApart(t *testing.T) {
	long := strings.Repeat("x", 5000)
	tb := newTable(t, field(1, "x", "int"), field(2, "p", "string")).partitionBy("p", 2, identity, 0)
	files := tb.mustRun(t, "VALUES (1, NULL), (2, ''), (3, 'null'), (4, 'NULL'), (5, '__HIVE_DEFAULT_PARTITION__'), (6, '11/12/13'), (7, '../../etc'), (8, '😎'), "+
		"(9, 'a\nb'), (10, 'a' || chr(0) || 'b'), (11, '"+long+"'), (12, ' '), (13, '%20'), (14, '.'), (15, NULL), (16, 'a=b')")
	want := []string{
		`" ": 1`, `"": 1`, `"%20": 1`, `".": 1`, `"../../etc": 1`, `"11/12/13": 1`, `"NULL": 1`, `"__HIVE_DEFAULT_PARTITION__": 1`, `"a\nb": 1`, `"a\x00b": 1`,
		`"a=b": 1`, `"null": 1`, `"` + long + `": 1`, `"😎": 1`, "NULL: 2",
	}
	sort.Strings(want)
	require.Equal(t, want, partitions(files))
	for _, f := range files {
		rows := readBack(t, []*planv1.DataFile{f}, "p")
		v := f.GetPartition()[0]
		if v.GetKind() == nil {
			require.Equal(t, []string{"<nil>", "<nil>"}, rows)
			continue
		}
		require.Equal(t, []string{v.GetString_()}, rows, "the partition's source column is in the file")
	}
}

// V13
func TestRun_PartitionsOfEveryType(t *testing.T) {
	for _, m := range matrix {
		t.Run(m.t, func(t *testing.T) {
			tb := newTable(t, field(1, "x", "int"), field(2, "p", m.t)).partitionBy("p", 2, identity, 0)
			var rows []string
			for n, v := range append(m.values, "NULL") {
				rows = append(rows, fmt.Sprintf("(%d, %s)", n, v), fmt.Sprintf("(%d, %s)", n, v))
			}
			files := tb.mustRun(t, "VALUES "+strings.Join(rows, ", "))
			require.Len(t, files, len(m.values)+1)
			for _, f := range files {
				require.Equal(t, int64(2), f.GetRecordCount())
				cm := metrics(t, f, 2)
				if f.GetPartition()[0].GetKind() == nil {
					require.Equal(t, int64(2), cm.GetNullCount())
					continue
				}
				if f64 := f.GetPartition()[0].GetFloat64(); math.IsNaN(f64) {
					require.Equal(t, int64(2), cm.GetNanCount())
					continue
				}
				require.Equal(t, show(cm.GetLower().GetValue()), show(f.GetPartition()[0]))
			}
		})
	}
}

func TestRun_SeveralTransformsAtOnce(t *testing.T) {
	tb := newTable(t, field(1, "i", "int"), field(2, "ts", "timestamp"), structOf(3, "s", field(4, "v", "string"))).
		partitionBy("b", 1, bucket, 4).partitionBy("gone", 1, void, 0).partitionBy("y", 2, year, 0).partitionBy("h", 2, hour, 0).partitionBy("v", 4, truncate, 2)
	files := tb.mustRun(t, "VALUES (34, TIMESTAMP '1969-12-31 23:59:59', {'v': '日本語'}), (34, NULL, NULL)")
	require.Equal(t, []string{`3,NULL,-1,-1,"日本": 1`, `3,NULL,NULL,NULL,NULL: 1`}, partitions(files))

	tb = newTable(t, field(1, "i", "int")).partitionBy("gone", 1, void, 0)
	require.Equal(t, []string{"NULL: 3"}, partitions(tb.mustRun(t, "SELECT unnest([1,2,3])")))
}

// X4: infinite values in the source of a partition are refused, not routed.
func TestRun_PartitionOfInfinity(t *testing.T) {
	tb := newTable(t, field(1, "ts", "timestamp")).partitionBy("y", 1, year, 0)
	_, err := tb.run(t, "SELECT unnest(['infinity'::TIMESTAMP, TIMESTAMP '2020-01-01'])")
	refuse(t, err, `column "ts": value infinity`)
	files := tb.mustRun(t, "SELECT unnest([TIMESTAMP '0001-01-01', TIMESTAMP '9999-12-31 23:59:59'])")
	require.Equal(t, []string{"-1969: 1", "8029: 1"}, partitions(files))
}

func TestRun_TruncateLowEndNamesColumn(t *testing.T) {
	tb := newTable(t, field(1, "i", "int")).partitionBy("t", 1, truncate, 10)
	_, err := tb.run(t, "SELECT unnest([1, -2147483648])")
	refuse(t, err, `column "i": value -2147483648 cannot be partitioned`, `partition field "t"`)
}

func TestRun_ManyPartitionsSorted(t *testing.T) {
	tb := newTable(t, field(1, "i", "long")).partitionBy("i", 1, identity, 0)
	tb.write().SortForPartitions = true
	files := tb.mustRun(t, "SELECT i % 500 FROM range(20000) t(i)")
	rows := map[string]int64{}
	for _, f := range files {
		rows[show(f.GetPartition()[0])] += f.GetRecordCount()
	}
	require.Len(t, rows, 500)
	require.LessOrEqual(t, len(files), 520, "each partition's rows meet in few files")
	for p, n := range rows {
		require.Equal(t, int64(40), n, p)
	}
}
