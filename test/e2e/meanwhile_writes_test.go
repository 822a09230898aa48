package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	iceberg "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/test/harness"
)

// meanwhileChanges are made by another engine while a write waits to commit.
var meanwhileChanges = map[string]func(tx *table.Transaction) error{
	"rename, add, widen": func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, false).AddColumn([]string{"note"}, iceberg.StringType{}, "", false, nil).
			UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}}).
			RenameColumn([]string{"id"}, "key").Commit()
	},
	"partition": func(tx *table.Transaction) error {
		return tx.UpdateSpec(true).AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "b").Commit()
	},
	"require": func(tx *table.Transaction) error {
		return tx.UpdateSchema(true, true).AddColumn([]string{"must"}, iceberg.StringType{}, "", true, nil).Commit()
	},
}

// C19, C28, C29 for every statement that writes: what another engine changes between planning and commit is kept, or the statement is refused; it never lands
// under a schema or a spec that its files were not written for.
func TestMeanwhile_EveryWrite(t *testing.T) {
	t.Parallel()
	h := newHeld(t, "scheduler.root.before-commit=pause(${gate})")
	h.open()
	n := 0
	for _, w := range []struct {
		statement string
		sum       string // of the column, where it lands
		require   string // what a required column that was added does: a part of the reason, or the sum
	}{
		{"INSERT INTO TABLE SELECT i AS id FROM range(10, 13) r(i)", "48", "must"},
		{"INSERT OVERWRITE TABLE SELECT i AS id FROM range(10, 13) r(i)", "33", "must"},
		{"INSERT INTO TABLE REPLACE WHERE id > 0 SELECT i AS id FROM range(10, 13) r(i)", "33", "must"},
		{"DELETE FROM TABLE WHERE id = 2", "13", "must"},
		{"UPDATE TABLE SET id = id + 100 WHERE id = 2", "115", "must"},
		{"MERGE INTO TABLE AS t USING (SELECT 2 AS id UNION ALL SELECT 9) AS s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", "22", "must"},
		{"CALL system.rewrite_data_files(table => 'h.NAME', options => map('rewrite-all', 'true'))", "15", "must"},
		{"TRUNCATE TABLE TABLE", "0", ""},
	} {
		for change, do := range meanwhileChanges {
			n++
			name := fmt.Sprintf("w%d", n)
			t.Run(change+": "+w.statement, func(t *testing.T) {
				h.Use(t)
				h.SQL(fmt.Sprintf("CREATE TABLE lake.h.%s (id INTEGER); INSERT INTO lake.h.%s SELECT i AS id FROM range(1, 6) r(i)", name, name))
				before := h.Table("h", name)
				require.NoError(t, os.Remove(h.gate))
				t.Cleanup(h.open)
				r, err := h.Client().Raw().Submit(harness.Context(t), &schedulerv1.SubmitRequest{Sql: strings.NewReplacer(" TABLE TABLE", " TABLE lake.h."+name, " TABLE ", " lake.h."+name+" ", "NAME", name).Replace(w.statement)})
				require.NoError(t, err)
				h.awaitPhase(r.GetJobId(), "root")
				h.changeTable(name, do)
				h.open()
				job := h.end(r.GetJobId())
				if after := h.Table("h", name); change == "require" && w.require != "" {
					require.Equal(t, schedulerv1.JobState_JOB_STATE_FAILED, job.GetState())
					require.Contains(t, job.GetError().GetMessage(), w.require)
					require.Equal(t, before.Metadata.CurrentSnapshot().SnapshotID, after.Metadata.CurrentSnapshot().SnapshotID)
					require.Equal(t, before.Files, after.Files)
				} else {
					require.Equal(t, schedulerv1.JobState_JOB_STATE_SUCCESSFUL, job.GetState(), job.GetError().GetMessage())
					column := map[bool]string{true: "key", false: "id"}[change == "rename, add, widen"]
					require.Equal(t, w.sum, h.Value("SELECT coalesce(sum("+column+"), 0) FROM lake.h."+name))
				}
				h.NoOrphans("h", name)
			})
		}
	}
}
