package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	iceberg "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// boundsOf are a file's counts and bounds, by the path of the column.
func boundsOf(t *testing.T, tab harness.Table, f iceberg.DataFile) map[string]string {
	t.Helper()
	out := map[string]string{}
	for id, n := range f.ValueCounts() {
		name, ok := tab.Metadata.CurrentSchema().FindColumnName(id)
		require.True(t, ok, id)
		lower, upper := "-", "-"
		if b, ok := f.LowerBoundValues()[id]; ok {
			lower = string(b)
		}
		if b, ok := f.UpperBoundValues()[id]; ok {
			upper = string(b)
		}
		out[name] = fmt.Sprint(n, " ", lower, " ", upper)
	}
	return out
}

// X10: the modes of metrics hold in Iceberg manifests, for nested columns, long values, wide tables and files that are copied.
func TestX10_MetricsModes(t *testing.T) {
	t.Parallel()
	c := newCases(t, 1)
	const columns = "(id BIGINT, body VARCHAR, s STRUCT(k VARCHAR, j VARCHAR), m MAP(VARCHAR, BIGINT), l VARCHAR[])"
	const row = " SELECT 7, repeat('b', 1000000), {'k': repeat('k', 40), 'j': repeat('😎', 20)}, MAP {'key': 1}, [repeat('x', 40)]"
	c.SQL("CREATE TABLE lake.x.modes " + columns + " WITH ('write.metadata.metrics.default' = 'none', 'write.metadata.metrics.column.body' = 'counts', 'write.metadata.metrics.column.s.k' = 'full'); " +
		"INSERT INTO lake.x.modes" + row + "; CREATE TABLE lake.x.plain " + columns + "; INSERT INTO lake.x.plain" + row)
	require.Equal(t, map[string]string{"body": "1 - -", "s.k": "1 " + strings.Repeat("k", 40) + " " + strings.Repeat("k", 40)},
		boundsOf(t, c.Table("x", "modes"), c.DataFiles("x", "modes")[0]))
	plain := boundsOf(t, c.Table("x", "plain"), c.DataFiles("x", "plain")[0])
	next := string([]rune("😎")[0] + 1)
	require.Equal(t, "1 "+strings.Repeat("b", 16)+" "+strings.Repeat("b", 15)+"c", plain["body"])
	require.Equal(t, "1 "+strings.Repeat("k", 16)+" "+strings.Repeat("k", 15)+"l", plain["s.k"])
	require.Equal(t, "1 "+strings.Repeat("😎", 16)+" "+strings.Repeat("😎", 15)+next, plain["s.j"], "16 code points, the upper bound rounded up")
	require.Equal(t, "1 - -", plain["l.element"], "elements have no bounds")
	for _, name := range []string{"modes", "plain"} {
		_, manifests := metadataFiles(t, c.Table("x", name))
		for _, m := range manifests {
			st, err := os.Stat(m)
			require.NoError(t, err)
			require.Less(t, st.Size(), int64(20_000), "no whole value is in a manifest")
		}
	}

	var wide, values []string
	for i := range 150 {
		wide, values = append(wide, fmt.Sprintf("c%03d BIGINT", i)), append(values, fmt.Sprint(i))
	}
	c.SQL("CREATE TABLE lake.x.wide (" + strings.Join(wide, ", ") + "); INSERT INTO lake.x.wide VALUES (" + strings.Join(values, ", ") + ")")
	got := boundsOf(t, c.Table("x", "wide"), c.DataFiles("x", "wide")[0])
	require.Len(t, got, 100, "max-inferred-column-defaults")
	require.Contains(t, got, "c099")

	// Of a file that is copied the footer says whole values, of one that is written anew the engine does: the manifest is the same.
	path := t.TempDir() + "/long.parquet"
	exported(t, path, 1_000_000_000, compress.Codecs.Zstd)
	for _, modes := range []string{"", " WITH ('write.metadata.metrics.column.name' = 'truncate(8)')", " WITH ('write.metadata.metrics.column.name' = 'counts', 'write.metadata.metrics.default' = 'none')"} {
		var all []map[string]string
		for _, splice := range []string{"true", "false"} {
			c.SQL("CREATE OR REPLACE TABLE lake.x.copied (id BIGINT, name VARCHAR, day DATE)" + modes)
			c.SQL("INSERT INTO lake.x.copied SELECT * FROM '"+path+"'", "--set", "signet.splice.enabled="+splice)
			tab := c.Table("x", "copied")
			require.Equal(t, splice == "true", copiedFiles(t, tab.Files) > 0)
			require.Len(t, tab.Files, 1)
			all = append(all, boundsOf(t, tab, c.DataFiles("x", "copied")[0]))
		}
		require.Equal(t, all[1], all[0], modes)
		require.Contains(t, all[0], "name")
	}
}
