package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

func logicalQuery(text string, views []string, inputs ...int32) *planv1.LogicalOperator {
	return &planv1.LogicalOperator{Op: "Query", Sql: text, Views: views, Inputs: inputs}
}

func logical(ops ...*planv1.LogicalOperator) *planv1.LogicalPlan {
	return &planv1.LogicalPlan{Operators: ops}
}

// A logical plan whose operator is read twice gives what the statement gives, and writes as INSERT and CREATE TABLE AS do.
func TestPlans_Logical(t *testing.T) {
	e := newEngine(t, "")
	grouped := logicalQuery("SELECT k, count(*) AS n FROM lake.e.facts GROUP BY k", nil)
	joined := logicalQuery("SELECT a.k, a.n FROM a JOIN (SELECT max(n) AS most FROM b) m ON a.n = m.most", []string{"a", "b"}, 0, 0)
	want := sorted(e.SQL("WITH g AS (SELECT k, count(*) AS n FROM lake.e.facts GROUP BY k) SELECT k, n FROM g WHERE n = (SELECT max(n) FROM g)"))
	for _, planner := range planners {
		set := client.WithSettings(settings(planner))
		res, err := e.Client().ExecPlan(harness.Context(t), logical(grouped, joined, &planv1.LogicalOperator{Op: "Result", Inputs: []int32{1}}), set)
		require.NoError(t, err)
		require.Equal(t, want, sorted(e.rowsOf(res.Job)))

		table := "lake.e.made_" + planner
		res, err = e.Client().ExecPlan(harness.Context(t), logical(
			logicalQuery("SELECT k, g, id FROM lake.e.facts WHERE k IS NOT NULL", nil),
			&planv1.LogicalOperator{Op: "Write", Inputs: []int32{0}, Target: &planv1.WriteTarget{Table: table, Create: true, PartitionedBy: []string{"bucket(4, k)"}, Properties: map[string]string{"owner": "plan"}}},
			&planv1.LogicalOperator{Op: "Commit", Inputs: []int32{1}}), set)
		require.NoError(t, err)
		require.NotEmpty(t, res.Job.GetInlineResult(), "a commit's result")
		limited := logical(
			logicalQuery("SELECT id AS other, k FROM lake.e.facts ORDER BY id", nil), &planv1.LogicalOperator{Op: "Coalesce", Inputs: []int32{0}, Limit: 7},
			&planv1.LogicalOperator{Op: "Write", Inputs: []int32{1}, Target: &planv1.WriteTarget{Table: table, Columns: []string{"id", "k"}}},
			&planv1.LogicalOperator{Op: "Commit", Inputs: []int32{2}})
		first, err := e.Client().ExecPlan(harness.Context(t), limited, set, client.WithIdempotencyKey("plan-"+planner))
		require.NoError(t, err)
		again, err := e.Client().ExecPlan(harness.Context(t), limited, set, client.WithIdempotencyKey("plan-"+planner))
		require.NoError(t, err)
		require.True(t, again.Existing)
		require.Equal(t, first.Job.GetJobId(), again.Job.GetJobId())
		require.Equal(t, "120007", e.Value("SELECT count(*) FROM "+table))
		require.Equal(t, "7", e.Value("SELECT count(*) FROM "+table+" WHERE g IS NULL"))
	}
	_, err := e.Client().ExecPlan(harness.Context(t), logical(grouped, &planv1.LogicalOperator{Op: "Shuffle", Inputs: []int32{0}}))
	require.ErrorContains(t, err, `there is no operator "Shuffle"`)
	e.freed()
}

// A physical plan reads shares of a file, exchanges rows by hash, and ends in rows, in a table, or in a limit, exactly as it says.
func TestPlans_Physical(t *testing.T) {
	e := newEngine(t, "")
	var rows strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&rows, `{"id": %d}`, i)
	}
	files := []string{filepath.Join(t.TempDir(), "ids.parquet")}
	harness.WriteParquet(t, files[0], arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil), "["+strings.ReplaceAll(rows.String(), "}{", "}, {")+"]")
	share := func(first, end int64) *planv1.PhysicalInput {
		return &planv1.PhysicalInput{View: "f", Kind: &planv1.PhysicalInput_Files{Files: &planv1.FileInput{Function: "read_parquet", Names: files, FirstRow: first, EndRow: end}}}
	}
	scan := func() *planv1.PhysicalStage {
		st := &planv1.PhysicalStage{Exchange: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: []int32{0}, Partitions: 3, Repeatable: true}
		for i := range int64(4) {
			st.Tasks = append(st.Tasks, &planv1.PhysicalTask{Sql: "SELECT id % 10 AS g, 1 AS one FROM f", Inputs: []*planv1.PhysicalInput{share(i*10_000, (i+1)*10_000)}})
		}
		return st
	}
	last := func(text string) *planv1.PhysicalStage {
		st := &planv1.PhysicalStage{}
		for i := range int32(3) {
			st.Tasks = append(st.Tasks, &planv1.PhysicalTask{Sql: text, Inputs: []*planv1.PhysicalInput{{View: "s", Kind: &planv1.PhysicalInput_Stage{Stage: &planv1.StageRead{Partitions: []int32{i}}}}}})
		}
		return st
	}
	const sum = "SELECT g, CAST(sum(one) AS BIGINT) AS n FROM s GROUP BY g"
	want := sorted(e.SQL("SELECT id % 10 AS g, count(*) AS n FROM '" + files[0] + "' GROUP BY 1"))
	e.SQL("CREATE TABLE lake.e.sums (n BIGINT, g BIGINT)")
	for i, planner := range planners {
		set := client.WithSettings(settings(planner))
		run := func(p *planv1.PhysicalPlan) (*client.Result, error) {
			return e.Client().ExecPhysicalPlan(harness.Context(t), p, set)
		}
		res, err := run(&planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{scan(), last(sum)}})
		require.NoError(t, err)
		require.Equal(t, want, sorted(e.rowsOf(res.Job)))
		res, err = run(&planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{scan(), last(sum)}, Limit: 2})
		require.NoError(t, err)
		require.Len(t, e.rowsOf(res.Job), 2)
		_, err = run(&planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{scan(), last(sum)}, Target: &planv1.WriteTarget{Table: "lake.e.sums", Columns: []string{"g", "n"}}})
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(40_000*(i+1)), e.Value("SELECT sum(n) FROM lake.e.sums"))

		for text, p := range map[string]*planv1.PhysicalPlan{
			"Referenced column \"nope\" not found": {Stages: []*planv1.PhysicalStage{scan(), last("SELECT nope FROM s")}},
			"is none of the inputs of this task":   {Stages: []*planv1.PhysicalStage{scan(), last("SELECT * FROM lake.e.facts")}},
			"read_text":                            {Stages: []*planv1.PhysicalStage{scan(), last("SELECT * FROM read_text('/etc/passwd')")}},
			"want one statement":                   {Stages: []*planv1.PhysicalStage{scan(), last("SELECT 1; SELECT 2")}},
			"SELECT":                               {Stages: []*planv1.PhysicalStage{scan(), last("COPY s TO '/tmp/x'")}},
			"declared as (g BIGINT)":               {Stages: []*planv1.PhysicalStage{scan(), {Tasks: last(sum).Tasks, Columns: []*planv1.Column{{Name: "g", EngineType: "BIGINT"}}}}},
			"nothing reads it":                     {Stages: []*planv1.PhysicalStage{scan(), {Tasks: []*planv1.PhysicalTask{{Sql: "SELECT 1"}}}}},
		} {
			_, err := run(p)
			require.ErrorContains(t, err, text)
			var failure *client.Error
			require.ErrorAs(t, err, &failure, "%v", err)
		}
	}
	e.freed()
}

func TestPlans_FromTheCommandLine(t *testing.T) {
	e := newEngine(t, "")
	file := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"operators": [{"op": "Query", "sql": "SELECT count(*) AS n FROM lake.e.names"}, {"op": "Result", "inputs": [0]}]}`), 0o600))
	r := e.Run("sql", "--plan", file, "-o", "csv")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "n\r\n120\r\n", r.Out)
	require.NoError(t, os.WriteFile(file, []byte(`{"stages": [{"tasks": [{"sql": "SELECT 42 AS x"}]}]}`), 0o600))
	r = e.Run("sql", "--plan", file, "-o", "csv")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "x\r\n42\r\n", r.Out)
	require.NoError(t, os.WriteFile(file, []byte(`{"what": []}`), 0o600))
	require.Equal(t, 2, e.Run("sql", "--plan", file).Code)
	require.Equal(t, 2, e.Run("sql", "--plan", file, "SELECT 1").Code)
}
