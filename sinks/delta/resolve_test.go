package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Others than Spark do not escape the colons of partition directories: such a path is relative all the same.
func TestResolve(t *testing.T) {
	for path, want := range map[string]string{
		"a.parquet": "s3://b/t/a.parquet", "time=1971-07-22T03:06:40Z/a.parquet": "s3://b/t/time=1971-07-22T03:06:40Z/a.parquet", "p=x:/a.parquet": "s3://b/t/p=x:/a.parquet",
		"s3://c/a.parquet": "s3://c/a.parquet", "file:/c/a.parquet": "file:/c/a.parquet", "/c/a.parquet": "/c/a.parquet", "abfss://f@a.dfs.core.windows.net/a": "abfss://f@a.dfs.core.windows.net/a",
	} {
		require.Equal(t, want, resolve("s3://b/t", path))
	}
}
