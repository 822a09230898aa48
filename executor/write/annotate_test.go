package write_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/executor/footer"
)

// Integers have no annotations, wherever they are; everything else of the footer stays, bloom filters included.
func TestRun_BareIntegers(t *testing.T) {
	tb := newTable(t, field(1, "i", "int"), field(2, "l", "long"), field(3, "d", "date"), field(4, "dec", "decimal(9,2)"), listOf(5, "li", field(6, "", "int")), field(7, "s", "string"))
	files := tb.mustRun(t, "SELECT (r % 5)::INTEGER, r, DATE '2020-01-01', r::DECIMAL(9,2), [r::INTEGER], 's' || (r % 5) FROM range(10000) AS q(r)")
	meta, start, size, err := footer.Open(path(files[0].GetPath()))
	require.NoError(t, err)
	require.Equal(t, files[0].GetSizeBytes(), size)
	for _, e := range meta.Schema {
		switch e.Name {
		case "i", "l", "element":
			require.Equal(t, footer.NoConverted, e.Converted, e.Name)
			require.Equal(t, footer.NoLogical, e.Logical.Kind, e.Name)
			require.True(t, e.HasID)
		case "d":
			require.Equal(t, footer.DateConverted, e.Converted)
		case "dec":
			require.Equal(t, footer.DecimalOld, e.Converted)
		}
	}
	c := meta.Groups[0].Chunks[5]
	require.Positive(t, c.BloomOffset)
	require.Less(t, c.BloomOffset, start)
	require.Equal(t, []string{"10000 20000 49995000 5"}, readBack(t, files, "count(*), sum(i), sum(l), count(DISTINCT s)"))
	require.Equal(t, []string{"2000"}, query(t, "SELECT count(*) FROM '"+path(files[0].GetPath())+"' WHERE s = 's3'"))
}
