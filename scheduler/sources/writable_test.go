package sources

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckWritable(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, d := range []string{"own/warehouse/t", "own/results", "deny", "listed", "table", "raw"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "own"), filepath.Join(dir, "table", "link")))
	r, err := New(Rules{Roots: []string{dir + "/raw"}, Deny: []string{dir + "/deny", dir + "/listed/deny"}, Own: []string{dir + "/own", dir + "/own/warehouse/scratch"}})
	require.NoError(t, err)
	check := func(place string) error {
		return r.CheckWritable(place, "file://"+dir+"/own/warehouse", "file://"+dir+"/table", dir+"/listed")
	}
	for _, ok := range []string{
		"file://" + dir + "/own/warehouse/t/data", dir + "/own/warehouse/new/data", "file:" + dir + "/own/warehouse", dir + "/table/data", "file://" + dir + "/listed/x",
	} {
		require.NoError(t, check(ok), ok)
	}
	for place, why := range map[string]string{
		"file://" + dir + "/elsewhere":              "none of",
		"file://" + dir + "/raw":                    "none of",
		"file://" + dir + "/listed2":                "none of",
		"file://" + dir + "/own/results":            "nobody writes",
		"file://" + dir + "/own":                    "nobody writes",
		"file://" + dir + "/own/warehouse/scratch/": "nobody writes",
		"file://" + dir + "/table/link/results":     "nobody writes",
		"file://" + dir + "/deny":                   "sources.deny",
		"file://" + dir + "/listed/deny/x":          "sources.deny",
		"file://" + dir + "/table/../raw":           "..",
		"s3://bucket/x":                             "s3",
		"file:///proc/self":                         "/proc",
		"data":                                      "absolute",
	} {
		err := check(place)
		require.ErrorIs(t, err, ErrNotWritable, place)
		require.ErrorContains(t, err, why, place)
	}
	require.ErrorIs(t, r.CheckWritable(dir+"/elsewhere", "file://"+dir+"/table", "file:///"), ErrNotWritable, "the root confines nothing")
}

// In an object store places are compared by scheme, bucket and segments; a table may not write above them, nor into another bucket.
func TestCheckWritable_ObjectStores(t *testing.T) {
	r, err := New(Rules{Roots: []string{t.TempDir()}})
	require.NoError(t, err)
	check := func(place string) error {
		return r.CheckWritable(place, "s3://lake/wh", "s3a://other/t1", "file:///srv/listed")
	}
	for _, place := range []string{"s3://lake/wh/ns/t/data", "s3a://lake/wh/ns", "s3://other/t1/data"} {
		require.NoError(t, check(place), place)
	}
	for _, place := range []string{
		"s3://lake/wh2/t", "s3://lake", "s3://lake/other", "s3://Lake/wh/t", "s3://lake2/wh/t", "gs://lake/wh/t", "s3://other/t10/data", "s3://lake/wh/../x", "s3://lake//wh/t",
		"s3://srv/listed", "s3://key:secret@lake/wh/t",
	} {
		require.ErrorIs(t, check(place), ErrNotWritable, place)
		require.NotContains(t, check(place).Error(), "secret")
	}
}
