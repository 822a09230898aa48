package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// scattered makes lake.c.NAME with six small files in each of three partitions, 180 rows in all.
func scattered(c *harness.Cluster, name string, version int) {
	c.SQL(fmt.Sprintf("CREATE TABLE lake.c.%s (id BIGINT, p VARCHAR) PARTITIONED BY (p) WITH ('format-version' = '%d')", name, version))
	for i := range 6 {
		c.SQL(fmt.Sprintf("INSERT INTO lake.c.%s SELECT i + %d AS id, 'p' || (i %% 3)::VARCHAR AS p FROM range(30) r(i)", name, 1000*i))
	}
}

func sums(c *harness.Cluster, name string) []string {
	return c.SQL("SELECT count(*), sum(id), count(DISTINCT id), count(DISTINCT p) FROM lake.c." + name)[0]
}

// TestCompact_SmallFilesBecomeOne: the rows stay, with their lineage; the snapshot says replace; a second call has nothing to do.
func TestCompact_SmallFilesBecomeOne(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.c")
	for _, version := range []int{2, 3} {
		name := fmt.Sprintf("t%d", version)
		scattered(c, name, version)
		want := sums(c, name)
		got := c.SQL("CALL system.rewrite_data_files(table => 'c." + name + "')")[0]
		require.Equal(t, []string{"18", "3", "0", "0"}, []string{got[0], got[1], got[3], got[4]})
		bytes, err := strconv.Atoi(got[2])
		require.NoError(t, err)
		require.Positive(t, bytes)
		require.Equal(t, want, sums(c, name))
		tab := c.Table("c", name)
		require.Len(t, tab.Files, 3)
		require.EqualValues(t, 180, tab.Records)
		require.Equal(t, "replace", string(tab.Metadata.CurrentSnapshot().Summary.Operation))
		require.Equal(t, "180", tab.Metadata.CurrentSnapshot().Summary.Properties["total-records"])
		if version == 3 {
			rows := c.SQL("SELECT count(*), min(_row_id), max(_row_id), count(DISTINCT _row_id), min(_last_updated_sequence_number), max(_last_updated_sequence_number) FROM read_parquet(['" +
				strings.Join(tab.Files, "', '") + "'])")[0]
			require.Equal(t, []string{"180", "0", "179", "180", "1", "6"}, rows, "each row is the one that it was")
		}
		require.Equal(t, []string{"0", "0", "0", "0", "0"}, c.SQL("CALL system.rewrite_data_files('c." + name + "')")[0])
		require.Equal(t, tab.Snapshots, c.Table("c", name).Snapshots)

		sorted := c.SQL("CALL system.rewrite_data_files(table => 'c." + name + "', strategy => 'sort', sort_order => 'id DESC', options => MAP('rewrite-all', 'true'))")[0]
		require.Equal(t, []string{"3", "3"}, sorted[:2])
		require.Equal(t, want, sums(c, name))
		for _, f := range c.Table("c", name).Files {
			require.Equal(t, "0", c.Value("SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY file_row_number) AS before FROM read_parquet('"+f+"', file_row_number = true)) WHERE id > before"))
		}
		harness.Eventually(t, "nothing is left behind", func() bool { return len(c.Table("c", name).DataOrphans()) == 0 })
	}
}

// TestCompact_TakesOnlyWhatItIsAskedFor: the condition chooses files by their rows, options by their sizes; deleted rows are gone afterwards.
func TestCompact_TakesOnlyWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.c")
	scattered(c, "t", 2)
	want := sums(c, "t")
	require.Equal(t, []string{"6", "1"}, c.SQL("CALL system.rewrite_data_files(table => 'c.t', where => 'p = ''p1''')")[0][:2])
	require.Equal(t, want, sums(c, "t"))
	require.Equal(t, []string{"0", "0"}, c.SQL("CALL system.rewrite_data_files(table => 'c.t', options => MAP('min-input-files', '7'))")[0][:2])
	before := c.Table("c", "t").Snapshots
	for call, said := range map[string]string{
		"table => 'c.t', strategy => 'zorder'":                                   "strategy \"zorder\" is not known",
		"table => 'c.t', strategy => 'sort'":                                     "has no sort order",
		"table => 'c.t', strategy => 'binpack', sort_order => 'id'":              "sort_order is for the strategy sort",
		"table => 'c.t', strategy => 'sort', sort_order => 'nope'":               "nope",
		"table => 'c.t', options => MAP('target-size', '1')":                     "no option \"target-size\"",
		"table => 'c.t', options => MAP('min-input-files', 'x')":                 "min-input-files",
		"table => 'c.t', options => MAP('partial-progress.enabled', 'true')":     "partial-progress.enabled",
		"table => 'c.t', options => MAP('use-starting-sequence-number','false')": "use-starting-sequence-number",
		"table => 'c.t', where => 'nope > 1'":                                    "nope",
		"table => 'c.t', where => 'id > (SELECT 1'":                              "syntax error",
		"table => 'c.gone'": "does not exist",
	} {
		c.Fail(1, "CALL system.rewrite_data_files("+call+")", said)
	}
	require.Equal(t, before, c.Table("c", "t").Snapshots)
}

// TestCompact_RowsDeletedMeanwhileStayDeleted: a delete that lands between the plan and the commit of a rewrite is a conflict, and nothing is lost.
func TestCompact_RowsDeletedMeanwhileStayDeleted(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.c")
	scattered(c, "t", 2)
	c.Scheduler.Terminate(t)
	c.StartScheduler("SIGNET_FAILPOINTS=scheduler.root.before-commit=1*pause(" + gate + ")->off")
	c.AwaitExecutors(1)
	done := make(chan harness.Result, 1)
	go func() { done <- c.Run("sql", "--quiet", "CALL system.rewrite_data_files(table => 'c.t')") }()
	harness.Eventually(t, "the rewrite is about to commit", func() bool {
		j := c.JobsAbout("rewrite_data_files")
		return len(j) == 1 && j[0].GetPhase() == "root"
	})
	c.SQL("DELETE FROM lake.c.t WHERE id = 4")
	c.SQL("INSERT INTO lake.c.t VALUES (-1, 'p0')")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	r := <-done
	require.Equal(t, 1, r.Code, r.Out)
	require.Contains(t, r.Err, "run the statement again")
	require.Equal(t, "180", sums(c, "t")[0])
	require.Equal(t, "0", c.Value("SELECT count(*) FROM lake.c.t WHERE id = 4"))
	c.SQL("CALL system.rewrite_data_files(table => 'c.t')")
	require.Equal(t, "180", sums(c, "t")[0])
	harness.Eventually(t, "the files of the refused rewrite are gone", func() bool { return len(c.Table("c", "t").DataOrphans()) == 0 })
}

// TestRewriteManifests: the files of many commits come into one manifest, and nothing else changes.
func TestRewriteManifests(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1, Config: tellConfig})
	c.SQL("CREATE SCHEMA lake.c")
	scattered(c, "t", 3)
	want, before := sums(c, "t"), c.Table("c", "t")
	require.Equal(t, []string{"6", "1"}, c.SQL("CALL system.rewrite_manifests('c.t')")[0])
	awaitLineage(t, c, c.Jobs()[0].ID, "COMPLETE")
	after := c.Table("c", "t")
	require.ElementsMatch(t, before.Files, after.Files)
	require.Equal(t, before.Snapshots+1, after.Snapshots)
	s := after.Metadata.CurrentSnapshot()
	require.Equal(t, []string{"replace", "6", "1", "18"}, []string{
		string(s.Summary.Operation), s.Summary.Properties["manifests-replaced"], s.Summary.Properties["manifests-created"], s.Summary.Properties["entries-processed"],
	})
	require.Equal(t, want, sums(c, "t"))
	require.Equal(t, []string{"0", "0"}, c.SQL("CALL system.rewrite_manifests('c.t')")[0])
	require.Equal(t, after.Snapshots, c.Table("c", "t").Snapshots)
	c.SQL("CREATE TABLE lake.c.e (id BIGINT)")
	require.Equal(t, []string{"0", "0"}, c.SQL("CALL system.rewrite_manifests('c.e')")[0])
	c.SQL("INSERT INTO lake.c.t VALUES (-1, 'p0')")
	require.Equal(t, "181", sums(c, "t")[0])
}

// TestCompact_CopiesRowGroups: where rows keep their order and nothing else, row groups are copied as they are, and nobody sees a difference.
func TestCompact_CopiesRowGroups(t *testing.T) {
	t.Parallel()
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.c")
	raw := t.TempDir()
	const n = 6
	for i := range int64(n) {
		exported(t, filepath.Join(raw, fmt.Sprintf("%d.parquet", i)), i*40000, compress.Codecs.Zstd)
	}
	for name, tc := range map[string]struct {
		with, set, options string
		version            int
		copied             bool
	}{
		"t": {copied: true, version: 2},
		"p": {with: "PARTITIONED BY (day)", copied: true, version: 2},
		"u": {set: "signet.splice.enabled=false", version: 2},
		"s": {options: ", strategy => 'sort', sort_order => 'id DESC'", version: 2},
		"v": {version: 3}, // the rows keep their ids
	} {
		c.SQL(fmt.Sprintf("CREATE TABLE lake.c.%s (id BIGINT NOT NULL, name VARCHAR, day DATE) %s WITH ('format-version' = '%d')", name, tc.with, tc.version))
		for i := range n {
			c.SQL(fmt.Sprintf("INSERT INTO lake.c.%s SELECT * FROM '%s/%d.parquet'", name, raw, i), "--set", "signet.splice.enabled=false")
		}
		c.SQL(fmt.Sprintf("INSERT INTO lake.c.%s VALUES (-1, 'small', DATE '1970-01-01' + 18000)", name)) // too small to be copied
		require.Zero(t, copiedFiles(t, c.Table("c", name).Files))
		want := c.SQL("SELECT " + addSums + " FROM lake.c." + name)
		args := []string{}
		if tc.set != "" {
			args = []string{"--set", tc.set}
		}
		c.SQL("CALL system.rewrite_data_files(table => 'c."+name+"'"+tc.options+")", args...)
		tab := c.Table("c", name)
		require.Less(t, len(tab.Files), n, name)
		require.Equal(t, tc.copied, copiedFiles(t, tab.Files) > 0, name)
		require.Equal(t, want, c.SQL("SELECT "+addSums+" FROM lake.c."+name), name)
		require.Equal(t, "1", c.Value("SELECT count(*) FROM lake.c."+name+" WHERE id = 41234"))
		require.Equal(t, "replace", string(tab.Metadata.CurrentSnapshot().Summary.Operation))
		require.EqualValues(t, n*40000+1, tab.Records)
		if tc.version == 3 {
			require.Equal(t, []string{"240001", "240000", "1", "7"}, c.SQL("SELECT count(DISTINCT _row_id), max(_row_id), min(_last_updated_sequence_number), max(_last_updated_sequence_number) FROM read_parquet(['" +
				strings.Join(tab.Files, "', '") + "'])")[0])
		}
		harness.Eventually(t, "nothing is left behind", func() bool { return len(c.Table("c", name).DataOrphans()) == 0 })
	}
}
