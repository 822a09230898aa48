package write_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func mode(kind planv1.MetricsKind, n int32) *planv1.MetricsMode {
	return &planv1.MetricsMode{Kind: kind, Length: n}
}

const (
	metricsNone     = planv1.MetricsKind_METRICS_KIND_NONE
	metricsCounts   = planv1.MetricsKind_METRICS_KIND_COUNTS
	metricsTruncate = planv1.MetricsKind_METRICS_KIND_TRUNCATE
	metricsFull     = planv1.MetricsKind_METRICS_KIND_FULL
)

// X10
func TestRun_MetricsModes(t *testing.T) {
	tb := newTable(t, field(1, "none", "string"), field(2, "counts", "string"), field(3, "cut", "string"), structOf(4, "s", field(5, "k", "string")),
		field(6, "absent", "int"), field(7, "body", "string"), field(8, "bin", "binary"), listOf(9, "l", field(10, "", "string")), field(11, "n", "long"))
	tb.Files.Metrics = map[int32]*planv1.MetricsMode{
		1: mode(metricsNone, 0), 2: mode(metricsCounts, 0), 3: mode(metricsTruncate, 16), 5: mode(metricsFull, 0), 7: mode(metricsFull, 0), 8: mode(metricsTruncate, 2),
		10: mode(metricsTruncate, 16), 11: mode(metricsTruncate, 16),
	}
	long := strings.Repeat("日", 20)
	files := tb.mustRun(t, fmt.Sprintf("SELECT 'a', 'a', '%s', {'k': '%s'}, 1, repeat('b', 1000000), '\\x01\\xFF\\x05'::BLOB, ['x'], 5", long, long))
	ids := map[int32]*planv1.ColumnMetrics{}
	for _, m := range files[0].GetColumns() {
		ids[m.GetFieldId()] = m
	}
	require.NotContains(t, ids, int32(1))
	require.NotContains(t, ids, int32(6), "no mode: none")
	require.Equal(t, int64(1), ids[2].GetValueCount())
	require.Nil(t, ids[2].GetLower())
	require.Equal(t, strings.Repeat("日", 16), ids[3].GetLower().GetValue().GetString_(), "counted in code points")
	require.Equal(t, strings.Repeat("日", 15)+string([]rune("日")[0]+1), ids[3].GetUpper().GetValue().GetString_())
	require.False(t, ids[3].GetUpper().GetExact())
	require.Equal(t, long, ids[5].GetUpper().GetValue().GetString_())
	require.True(t, ids[5].GetUpper().GetExact())
	require.False(t, ids[7].GetLower().GetExact(), "DuckDB cuts at 256 bytes")
	require.LessOrEqual(t, ids[7].GetLower().GetValue().GetString_(), strings.Repeat("b", 1000000))
	require.Greater(t, ids[7].GetUpper().GetValue().GetString_(), strings.Repeat("b", 1000000))
	require.LessOrEqual(t, len(ids[7].GetUpper().GetValue().GetString_()), 256)
	require.Equal(t, []byte{1, 255}, ids[8].GetLower().GetValue().GetBinary())
	require.Equal(t, []byte{2}, ids[8].GetUpper().GetValue().GetBinary())
	require.Equal(t, int64(1), ids[10].GetValueCount())
	require.Nil(t, ids[10].GetLower())
	require.True(t, ids[11].GetLower().GetExact(), "numbers are never cut")
}

// V6, and that DuckDB's counts are right wherever they are passed on.
func TestRun_NullCounts(t *testing.T) {
	tb := newTable(t,
		structOf(1, "s", field(2, "d", "double"), structOf(3, "in", field(4, "x", "int"))),
		listOf(5, "l", field(6, "", "int")), listOf(7, "ls", structOf(8, "", field(9, "x", "int"))))
	files := tb.mustRun(t, `VALUES
		(NULL, NULL, NULL),
		({'d': NULL, 'in': {'x': 1}}, [1, NULL], [{'x': 1}, NULL]),
		({'d': 1.5::DOUBLE, 'in': NULL}, [], []),
		({'d': 'nan'::DOUBLE, 'in': {'x': NULL}}, [2], [{'x': NULL}])`)
	require.Equal(t, int64(2), metrics(t, files[0], 2).GetNullCount())
	require.Equal(t, int64(4), metrics(t, files[0], 2).GetValueCount())
	require.Equal(t, int64(1), metrics(t, files[0], 2).GetNanCount())
	require.Equal(t, 1.5, metrics(t, files[0], 2).GetUpper().GetValue().GetFloat64(), "NaN is no bound")
	require.Equal(t, int64(3), metrics(t, files[0], 4).GetNullCount())
	// Entries of a list: 1, NULL, 2, and one each for the absent and the empty list.
	require.Equal(t, int64(5), metrics(t, files[0], 6).GetValueCount())
	require.Equal(t, int64(3), metrics(t, files[0], 6).GetNullCount())
	require.Nil(t, metrics(t, files[0], 9).NullCount, "DuckDB 1.5.6 counts these twice")
}

func TestRun_AllNaNHasNoBounds(t *testing.T) {
	tb := newTable(t, field(1, "x", "double"), field(2, "f", "float"))
	files := tb.mustRun(t, "SELECT 'nan'::DOUBLE, unnest([0.0, -0.0])::FLOAT")
	m := metrics(t, files[0], 1)
	require.Equal(t, int64(2), m.GetNanCount())
	require.Nil(t, m.GetLower())
	require.Nil(t, m.GetUpper())
	require.NotNil(t, metrics(t, files[0], 2).NanCount)
	require.Zero(t, metrics(t, files[0], 2).GetNanCount())
}

func TestRun_FileRules(t *testing.T) {
	for _, codec := range []string{"", "zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"} {
		tb := newTable(t, field(1, "x", "int"), field(2, "f", "fixed(2)"))
		tb.Files.Codec, tb.Files.CodecLevel, tb.Files.ParquetVersion, tb.Files.RowGroupBytes = codec, 3, "V2", 1<<20
		files := tb.mustRun(t, "SELECT i, 'ab'::BLOB FROM range(5000) t(i)")
		require.Equal(t, []string{"5000"}, readBack(t, files, "count(*)"), codec)
	}
}
