package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// summaryOf is a key of the current snapshot's summary.
func summaryOf(tab harness.Table, keys ...string) string {
	var out []string
	s := tab.Metadata.CurrentSnapshot().Summary
	for _, k := range keys {
		if k == "operation" {
			out = append(out, string(s.Operation))
		} else {
			out = append(out, s.Properties[k])
		}
	}
	return strings.Join(out, " ")
}

// newVersioned is lake.m.t of two files with ids 0 to 99 and 100 to 199, which changes rows by merge-on-read.
func newVersioned(t *testing.T, version string) *harness.Cluster {
	c := harness.New(t, harness.Options{Executors: 1})
	c.SQL("CREATE SCHEMA lake.m; CREATE TABLE lake.m.t (id BIGINT, name VARCHAR) WITH ('format-version' = '" + version + "', " + mergeOnRead + ")")
	for n := range 2 {
		c.SQL(fmt.Sprintf("INSERT INTO lake.m.t SELECT i, 'n' || i FROM range(%d, %d) r(i)", 100*n, 100*n+100))
	}
	return c
}

// What a statement says that it did, what the snapshot says, and what is there.
func TestMergeOnRead_LeavesDataFiles(t *testing.T) {
	t.Parallel()
	for version, how := range map[string]string{"2": "position delete files", "3": "deletion vectors"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newVersioned(t, version)
			before := c.Table("m", "t")
			require.Contains(t, oneOf(c, "EXPLAIN DELETE FROM lake.m.t WHERE id % 10 = 3"), "merge-on-read: changed rows go into "+how)
			require.Equal(t, "20", answerOf(t, c, "VALIDATE UPDATE lake.m.t SET name = 'x' WHERE id % 10 = 3")["rows"])
			require.Equal(t, before.MetadataLocation, c.Table("m", "t").MetadataLocation)
			require.Empty(t, c.Table("m", "t").DataOrphans())

			got := answerOf(t, c, "DELETE FROM lake.m.t WHERE id % 10 = 3")
			require.Equal(t, "0 2 20 0 0 delete", strings.Join([]string{got["rows"], got["files"], got["deleted_rows"], got["updated_rows"], got["removed_files"], got["operation"]}, " "))
			now := c.Table("m", "t")
			require.Equal(t, before.Files, now.Files)
			require.Len(t, now.DeleteFiles, 2)
			require.Equal(t, "delete 2 20 20", summaryOf(now, "operation", "added-delete-files", "added-position-deletes", "total-position-deletes"))

			got = answerOf(t, c, "UPDATE lake.m.t SET name = 'x' WHERE id IN (7, 107, 13)") // 13 is gone
			require.Equal(t, "2 3 0 2 0 overwrite", strings.Join([]string{got["rows"], got["files"], got["deleted_rows"], got["updated_rows"], got["removed_files"], got["operation"]}, " "))
			now = c.Table("m", "t")
			require.Len(t, now.Files, 3)
			require.EqualValues(t, 180, now.Records)
			require.Len(t, idsOf(t, now), 180)
			removed := "removed-position-delete-files" // the new ones hold what they held
			if version == "3" {
				removed = "removed-dvs"
			}
			require.Equal(t, "2 2 20", summaryOf(now, "total-delete-files", removed, "removed-position-deletes"))
			require.Equal(t, "22", summaryOf(now, "total-position-deletes"))

			got = answerOf(t, c, "MERGE INTO lake.m.t USING (SELECT range AS id FROM range(195, 205)) AS s ON t.id = s.id WHEN MATCHED AND t.id = 195 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
			require.Equal(t, "9 1 4 overwrite", strings.Join([]string{got["rows"], got["deleted_rows"], got["updated_rows"], got["operation"]}, " "))
			require.Len(t, idsOf(t, c.Table("m", "t")), 184)

			// Of a file nothing is left: it goes, with its deletes.
			got = answerOf(t, c, "DELETE FROM lake.m.t WHERE id BETWEEN 100 AND 199 AND name LIKE 'n%'")
			require.Equal(t, "1", got["removed_files"])
			for _, f := range before.Files {
				require.Equal(t, harness.Int64s(t, f, "id")[0] == 0, slices.Contains(c.Table("m", "t").Files, f))
			}

			// Compaction applies deletes and drops them.
			c.SQL("CALL system.rewrite_data_files(table => 'lake.m.t', options => map('rewrite-all', 'true'))")
			after := c.Table("m", "t")
			require.Empty(t, after.DeleteFiles)
			require.Equal(t, "0 0", summaryOf(after, "total-delete-files", "total-position-deletes"))
			require.Len(t, idsOf(t, after), int(after.Records))
			require.Equal(t, "0", oneOf(c, "SELECT count(*) FROM lake.m.t WHERE id % 10 = 3 AND id < 200"))
			c.NoOrphans("m", "t")
		})
	}
}

// A table of version 2 becomes one of version 3, and its partitioning changes: deletes of older files stand where those files stand.
func TestMergeOnRead_OverChangesOfTheTable(t *testing.T) {
	t.Parallel()
	c := newVersioned(t, "2")
	c.SQL("DELETE FROM lake.m.t WHERE id IN (1, 101)")
	c.SQL("ALTER TABLE lake.m.t ADD PARTITION FIELD bucket(4, id)")
	c.SQL("DELETE FROM lake.m.t WHERE id IN (2, 102)")
	c.SQL("INSERT INTO lake.m.t SELECT i, 'p' || i FROM range(200, 300) r(i)")
	c.SQL("UPDATE lake.m.t SET name = 'u' WHERE id IN (3, 103, 203)")
	tab := c.Table("m", "t")
	require.EqualValues(t, 296, tab.Records)
	require.Len(t, idsOf(t, tab), 296)

	c.SQL("ALTER TABLE lake.m.t SET TBLPROPERTIES ('format-version' = '3')")
	c.SQL("DELETE FROM lake.m.t WHERE id = 4")
	tab = c.Table("m", "t")
	vectors := 0
	for _, f := range tab.DeleteFiles {
		if strings.HasSuffix(f, ".puffin") {
			vectors++
		}
	}
	require.Equal(t, 1, vectors)
	require.Equal(t, "1", summaryOf(tab, "removed-position-delete-files"), "those of the first file; the other files keep theirs")
	require.Len(t, idsOf(t, tab), 295)
	require.Equal(t, "295", oneOf(c, "SELECT count(*) FROM lake.m.t"))
	c.SQL("ALTER TABLE lake.m.t RENAME COLUMN name TO label")
	c.SQL("UPDATE lake.m.t SET label = label || '!' WHERE id % 2 = 0")
	require.Equal(t, "147", oneOf(c, "SELECT count(*) FROM lake.m.t WHERE label LIKE '%!'"))
	require.Len(t, idsOf(t, c.Table("m", "t")), 295)
	c.NoOrphans("m", "t")
}

// Two statements delete rows of one file: in version 2 both land; in version 3, where a file has one deletion vector, the second is refused and nothing of it stays.
func TestMergeOnRead_BesideAnother(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]struct {
		statement string
		refused   string
		left      int
	}{
		"2": {"DELETE FROM lake.h.t WHERE id = 1", "", 98},
		"3": {"DELETE FROM lake.h.t WHERE id = 1", "deleted rows of data file", 99},
	} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, "scheduler.root.before-commit=1*off->1*pause(${gate})")
			h.SQL("ALTER TABLE lake.h.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'format-version' = '" + version + "')")
			h.SQL("INSERT INTO lake.h.t SELECT i FROM range(100) r(i)")
			r, err := h.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: want.statement})
			require.NoError(t, err)
			h.awaitPhase(r.GetJobId(), "root")
			harness.Eventually(t, "its delete file is written", func() bool { return len(h.Table("h", "t").DataOrphans()) == 1 })
			h.SQL("DELETE FROM lake.h.t WHERE id = 2")
			h.open()
			job := h.end(r.GetJobId())
			if want.refused == "" {
				require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState(), job.GetError())
			} else {
				require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, job.GetState())
				require.Contains(t, job.GetError().GetMessage(), want.refused)
			}
			require.Len(t, idsOf(t, h.Table("h", "t")), want.left)
			h.NoOrphans("h", "t")
		})
	}
}
