package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
)

// Whole files go without being read where every row matches and the number of rows is known.
func TestRowLevel_TakeWhole(t *testing.T) {
	vector := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, RecordCount: 4}
	own := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, RecordCount: 3, Single: true}
	shared := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_POSITION_DELETES, RecordCount: 3}
	equality := &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES, RecordCount: 3}
	for name, c := range map[string]struct {
		text    string
		inexact bool
		file    *planv1.PinnedFile
		rows    int64 // 0: it is read
	}{
		"every row":                       {file: &planv1.PinnedFile{RecordCount: 10, Matched: true}, rows: 10},
		"some rows":                       {file: &planv1.PinnedFile{RecordCount: 10}},
		"the filter says less":            {inexact: true, file: &planv1.PinnedFile{RecordCount: 10, Matched: true}},
		"rows are updated":                {text: "UPDATE s.t SET id = 1", file: &planv1.PinnedFile{RecordCount: 10, Matched: true}},
		"some are deleted":                {file: &planv1.PinnedFile{RecordCount: 10, Matched: true, Deletes: []*planv1.DeleteFile{vector}}, rows: 6},
		"some are deleted, by positions":  {file: &planv1.PinnedFile{RecordCount: 10, Matched: true, Deletes: []*planv1.DeleteFile{own}}, rows: 7},
		"who knows which are deleted":     {file: &planv1.PinnedFile{RecordCount: 10, Matched: true, Deletes: []*planv1.DeleteFile{shared}}},
		"who knows how many times":        {file: &planv1.PinnedFile{RecordCount: 10, Matched: true, Deletes: []*planv1.DeleteFile{own, own}}},
		"deletes by value":                {file: &planv1.PinnedFile{RecordCount: 10, Matched: true, Deletes: []*planv1.DeleteFile{equality}}},
		"all are deleted: nothing to do":  {file: &planv1.PinnedFile{RecordCount: 4, Matched: true, Deletes: []*planv1.DeleteFile{vector}}},
		"there are none: nothing to do":   {file: &planv1.PinnedFile{Matched: true}},
		"nobody says how many there are":  {file: &planv1.PinnedFile{RecordCount: -1, Matched: true}},
		"deletes of more than there were": {file: &planv1.PinnedFile{RecordCount: 3, Matched: true, Deletes: []*planv1.DeleteFile{vector}}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.text == "" {
				c.text = "DELETE FROM s.t WHERE id > 3"
			}
			c.file.Name = "file:///f"
			scan := &planv1.TableScan{Files: []*planv1.PinnedFile{c.file, {Name: "file:///g", RecordCount: 1}}, TotalFiles: 5}
			whole := rowLevel(t, c.text, false).TakeWhole(scan, !c.inexact)
			require.EqualValues(t, 5, scan.GetTotalFiles())
			if c.rows == 0 {
				require.Empty(t, whole)
				require.Len(t, scan.GetFiles(), 2)
				return
			}
			require.Len(t, scan.GetFiles(), 1)
			require.Len(t, whole, 1)
			require.Equal(t, []any{"file:///f", c.rows, c.rows}, []any{whole[0].GetPath(), whole[0].GetRecordCount(), whole[0].GetDeletedRows()})
		})
	}
}

// A task names so many whole files as its message can hold; those that nothing is to be found for read nothing.
func TestRowLevelTasks_WholeFiles(t *testing.T) {
	r := rowLevel(t, "DELETE FROM s.t WHERE id > 3", false)
	var whole []*planv1.ReplacedFile
	for i := range 25_001 {
		whole = append(whole, &planv1.ReplacedFile{Path: fmt.Sprintf("file:///w%d", i), RecordCount: 2, DeletedRows: 2})
	}
	target := &planv1.Source{View: plan.TargetView, Kind: &planv1.Source_Table{Table: &planv1.TableScan{Schema: r.Schema, WithPositions: true, Version: "5"}}}
	for name, c := range map[string]struct {
		found *plan.Found
		files int
		reads int // sources of each task
	}{
		"nothing else":      {nil, 0, 0},
		"and one in part":   {&plan.Found{SQL: "SELECT changes", Columns: 3, Clauses: []*planv1.ChangeClause{{Op: planv1.RowOp_ROW_OP_DELETE}}}, 1, 1},
		"and three in part": {&plan.Found{SQL: "SELECT changes", Columns: 3, Clauses: []*planv1.ChangeClause{{Op: planv1.RowOp_ROW_OP_DELETE}}}, 9, 1},
	} {
		t.Run(name, func(t *testing.T) {
			target.GetTable().Files = nil
			for i := range c.files {
				target.GetTable().Files = append(target.GetTable().Files, &planv1.PinnedFile{Path: fmt.Sprintf("/f%d", i), Name: fmt.Sprintf("file:///f%d", i), SizeBytes: 100})
			}
			p, err := (&plan.RowLevelTasks{
				Statement: r, Spec: &planv1.WriteSpec{Schema: r.Schema, BaseVersion: "5"}, Target: target, Whole: whole, Found: c.found,
				Request: plan.Request{Limits: plan.Limits{Executors: 2, MinBytes: 1}, Table: "lake.s.t"},
			}).Planner()
			require.NoError(t, err)
			batch, err := p.Next(nil)
			require.NoError(t, err)
			names, reads := map[string]bool{}, 0
			for i := range batch.Stages[0].Tasks() {
				task := batch.Stages[0].Task(i)
				require.Len(t, task.GetSources(), c.reads)
				for _, s := range task.GetSources() {
					reads += len(s.GetTable().GetFiles())
				}
				list := task.GetWrite().GetRewrite().GetWhole()
				require.LessOrEqual(t, len(list), 10_000)
				for _, f := range list {
					require.False(t, names[f.GetPath()])
					names[f.GetPath()] = true
				}
			}
			require.Len(t, names, len(whole))
			require.Equal(t, c.files, reads)
			require.Contains(t, p.Plan().Explain(), "by metadata alone: 25001 files with 50002 rows, every row of which goes")
		})
	}
}
