package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

func rowLevel(t *testing.T, text string, lineage bool) *plan.RowLevel {
	t.Helper()
	st, err := sql.Parse(text)
	require.NoError(t, err)
	long, str := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}
	r := &plan.RowLevel{Table: "lake.s.t", Name: []string{"s", "t"}, Lineage: lineage, Schema: &planv1.Schema{Fields: []*planv1.Field{
		{Id: 1, Name: "id", Type: long, Required: true}, {Id: 2, Name: "a b", Type: str, WriteDefault: &planv1.Value{Kind: &planv1.Value_String_{String_: "x"}}},
	}}}
	switch st := st.(type) {
	case *sql.Delete:
		r.Delete = st
	case *sql.Update:
		r.Update = st
	case *sql.Merge:
		r.Merge = st
	}
	return r
}

// The query that finds changes has the user's texts in it as they are, each between brackets of its own.
func TestRowLevel_QueryOfChanges(t *testing.T) {
	for _, c := range []struct {
		text    string
		lineage bool
		want    string
	}{
		{"DELETE FROM s.t", false, `SELECT "t"."_file", "t"."_pos", 0 FROM "signet_target" AS "t"`},
		{"DELETE FROM s.t AS x WHERE x.id = 1 OR true", true, `SELECT "x"."_file", "x"."_pos", 0, "x"."_row_id" FROM "signet_target" AS "x" WHERE (x.id = 1 OR true)`},
		{"UPDATE s.t SET id = id + 1", false, `SELECT "t"."_file", "t"."_pos", 0, (id + 1), "t"."a b" FROM "signet_target" AS "t"`},
		{
			`UPDATE s.t SET "A B" = NULL FROM u JOIN w ON u.i = w.i WHERE u.i = t.id`, false,
			`SELECT "t"."_file", "t"."_pos", 0, "t"."id" FROM "signet_target" AS "t", u JOIN w ON u.i = w.i WHERE (u.i = t.id)`,
		},
		{
			"MERGE INTO s.t USING u ON t.id = u.id WHEN MATCHED AND u.x THEN DELETE WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)", false,
			`SELECT "t"."_file", "t"."_pos", CASE WHEN "t"."_file" IS NULL THEN CASE WHEN true THEN 1 END WHEN "u".signet_matched THEN CASE WHEN (u.x) THEN 0 WHEN true THEN NULL END ELSE NULL END AS signet_clause, ` +
				`CASE WHEN signet_clause = 1 THEN (u.id) END FROM "signet_target" AS "t" RIGHT JOIN (SELECT true AS signet_matched, * FROM u) AS "u" ON (t.id = u.id)`,
		},
	} {
		got, err := rowLevel(t, c.text, c.lineage).Changes()
		require.NoError(t, err)
		require.Equal(t, c.want, got.SQL)
	}
}

func TestRowLevel_ClausesAreCheckedAsAnInsert(t *testing.T) {
	columns := func(types ...string) []*planv1.Column {
		out := []*planv1.Column{{Name: "_file"}, {Name: "_pos"}, {Name: "clause"}}
		for i, typ := range types {
			out = append(out, &planv1.Column{Name: fmt.Sprint(i), EngineType: typ})
		}
		return out
	}
	for _, c := range []struct{ text, typ, want string }{
		{"UPDATE s.t SET id = x", "INTEGER", ""},
		{"UPDATE s.t SET id = x", "VARCHAR", "column id of lake.s.t is BIGINT and SET gives VARCHAR"},
		{"UPDATE s.t SET id = '7'", "VARCHAR", ""},
		{"UPDATE s.t SET id = NULL", "VARCHAR", "column id of lake.s.t is required and SET gives NULL"},
		{"UPDATE s.t SET id = DEFAULT", "VARCHAR", "column id of lake.s.t is required and SET gives it no value"},
		{"MERGE INTO s.t USING u ON true WHEN NOT MATCHED THEN INSERT (\"a b\") VALUES (x)", "VARCHAR", "column id of lake.s.t is required and INSERT gives it no value"},
		{"MERGE INTO s.t USING u ON true WHEN NOT MATCHED THEN INSERT VALUES (x, DEFAULT)", "BIGINT", ""},
	} {
		ch, err := rowLevel(t, c.text, false).Changes()
		require.NoError(t, err)
		clauses, err := ch.Clauses(columns(c.typ, "VARCHAR"))
		if c.want != "" {
			require.ErrorContains(t, err, c.want, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		require.Len(t, clauses[0].GetColumns(), 2)
	}
}

// Every file is whole in one task; of several tasks one adds the new rows, and it sees the whole table.
func TestRowLevelTasks(t *testing.T) {
	var files []*planv1.PinnedFile
	for i := range 7 {
		files = append(files, &planv1.PinnedFile{Path: fmt.Sprintf("/f%d", i), Name: fmt.Sprintf("file:///f%d", i), SizeBytes: 100})
	}
	r := rowLevel(t, "MERGE INTO s.t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET id = 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)", true)
	target := &planv1.Source{View: plan.TargetView, Kind: &planv1.Source_Table{Table: &planv1.TableScan{Schema: r.Schema, Files: files, WithPositions: true, Version: "5"}}}
	other := &planv1.Source{View: "signet_source_1", Kind: &planv1.Source_File{File: &planv1.FileSource{Function: "read_parquet", Files: []*planv1.PinnedFile{{Path: "/u"}}}}}
	for _, executors := range []int{1, 3} {
		p, err := (&plan.RowLevelTasks{
			Statement: r, Spec: &planv1.WriteSpec{Schema: r.Schema, BaseVersion: "5", SinkState: []byte("secret")}, Target: target,
			Found:   &plan.Found{SQL: "SELECT changes", Columns: 6, Sources: []*planv1.Source{other}, Clauses: []*planv1.ChangeClause{{Op: planv1.RowOp_ROW_OP_UPDATE}, {Op: planv1.RowOp_ROW_OP_INSERT}}},
			Request: plan.Request{Limits: plan.Limits{Executors: executors, MinBytes: 1}, Table: "lake.s.t"},
		}).Planner()
		require.NoError(t, err)
		batch, err := p.Next(nil)
		require.NoError(t, err)
		require.Len(t, batch.Stages, 1)
		seen := map[string]int{}
		adds := 0
		for i := range batch.Stages[0].Tasks() {
			task := batch.Stages[0].Task(i)
			w := task.GetWrite()
			require.True(t, w.GetRowLineage())
			require.Empty(t, w.GetSpec().GetSinkState())
			require.Len(t, task.GetSources(), 2)
			if w.GetRewrite().GetView() == "" {
				adds++
				require.Len(t, task.GetSources()[0].GetTable().GetFiles(), 7)
				require.Contains(t, w.GetRewrite().GetChanged().GetSql(), "IS NULL")
				continue
			}
			for _, f := range task.GetSources()[0].GetTable().GetFiles() {
				seen[f.GetPath()]++
			}
			require.True(t, task.GetSources()[0].GetTable().GetWithPositions())
			require.Contains(t, task.GetSql(), "ANTI JOIN")
		}
		require.Len(t, seen, 7)
		for path, n := range seen {
			require.Equal(t, 1, n, path)
		}
		want := 0
		if executors > 1 {
			want = 1
		}
		require.Equal(t, want, adds)
		require.Contains(t, p.Plan().Explain(), "Commit lake.s.t (merge, planned on version 5)")
	}
}
