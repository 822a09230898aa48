package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func query(text string, inputs ...int32) *planv1.LogicalOperator {
	o := &planv1.LogicalOperator{Op: "Query", Sql: text, Inputs: inputs}
	for i := range inputs {
		o.Views = append(o.Views, string(rune('a'+i)))
	}
	return o
}

func operator(op string, inputs ...int32) *planv1.LogicalOperator {
	return &planv1.LogicalOperator{Op: op, Inputs: inputs}
}

func write(t *planv1.WriteTarget, input int32) *planv1.LogicalOperator {
	return &planv1.LogicalOperator{Op: "Write", Target: t, Inputs: []int32{input}}
}

func TestStatement_SaysTheSame(t *testing.T) {
	for want, ops := range map[string][]*planv1.LogicalOperator{
		"SELECT 1": {query("SELECT 1;"), operator("Result", 0)},
		"WITH signet_operator_2 AS (\nFROM f\n), \"a\" AS (SELECT * FROM signet_operator_2)\nSELECT * FROM a":                 {operator("Result", 1), query("SELECT * FROM a", 2), query("FROM f")},
		"WITH signet_operator_0 AS (\nFROM f\n), \"a\" AS (SELECT * FROM signet_operator_0),  x AS (FROM a) FROM x":           {query("FROM f"), query("with x AS (FROM a) FROM x", 0), operator("Result", 1)},
		"WITH RECURSIVE signet_operator_0 AS (\nFROM f\n), \"a\" AS (SELECT * FROM signet_operator_0),  x AS (FROM a) FROM x": {query("FROM f"), query("WITH  recursive x AS (FROM a) FROM x", 0), operator("Result", 1)},
		"WITH signet_operator_0 AS (\nFROM f\n)\nSELECT * FROM signet_operator_0 LIMIT 5":                                     {query("FROM f"), {Op: "Coalesce", Inputs: []int32{0}, Limit: 5}, operator("Result", 1)},
		"INSERT INTO lake.s.\"T 1\" (\"x\", \"y\") BY NAME\nFROM f":                                                           {query("FROM f"), write(&planv1.WriteTarget{Table: `lake.s."T 1"`, Columns: []string{"x", "y"}, ByName: true}, 0), operator("Commit", 1)},
		"CREATE TABLE IF NOT EXISTS t PARTITIONED BY (day(ts), bucket(4, id)) WITH ('a' = '1', 'k' = 'it''s') AS\nFROM f":     {query("FROM f"), write(&planv1.WriteTarget{Table: "t", Create: true, IfNotExists: true, PartitionedBy: []string{"day(ts)", "bucket(4, id)"}, Properties: map[string]string{"k": "it's", "a": "1"}}, 0), operator("Commit", 1)},
	} {
		got, err := Statement(&planv1.LogicalPlan{Operators: ops})
		if want == "INSERT INTO lake.s.\"T 1\" (\"x\", \"y\") BY NAME\nFROM f" {
			require.Error(t, err) // a list of columns and BY NAME exclude each other, as in SQL
			continue
		}
		require.NoError(t, err, want)
		require.Equal(t, want, got)
	}
}

func TestStatement_RefusesWhatIsNoPlan(t *testing.T) {
	million := make([]*planv1.LogicalOperator, 1_000_000)
	for want, ops := range map[string][]*planv1.LogicalOperator{
		"has no operators":             nil,
		"has 1000000 operators":        million,
		`there is no operator "Merge"`: {query("SELECT 1"), operator("Merge", 0)},
		`there is no operator ""`:      {nil},
		"cycle":                        {operator("Coalesce", 1), operator("Coalesce", 0)},
		"a cycle":                      {query("SELECT 1"), operator("Result", 0), query("FROM a", 3), query("FROM a", 2)},
		"reads operator 7 of 2":        {query("SELECT 1"), operator("Result", 7)},
		"reads operator -1 of 2":       {query("SELECT 1"), operator("Result", -1)},
		"two roots":                    {query("SELECT 1"), operator("Result", 0), operator("Result", 0)},
		"ends in Commit or Result":     {query("SELECT 1")},
		"it has 0 inputs, not one":     {operator("Result")},
		"Result cannot be its input":   {query("SELECT 1"), operator("Result", 0), operator("Result", 1)},
		"Query cannot be its input":    {query("SELECT 1"), operator("Commit", 0)},
		"Commit cannot be its input":   {query("SELECT 1"), write(&planv1.WriteTarget{Table: "t"}, 0), operator("Commit", 1), query("FROM a", 2), operator("Result", 3)},
		"does not say which table":     {query("SELECT 1"), operator("Write", 0), operator("Commit", 1)},
		"1 input and 0 views":          {query("SELECT 1"), {Op: "Query", Sql: "FROM a", Inputs: []int32{0}}, operator("Result", 1)},
		`view "signet_operator_1"`:     {query("SELECT 1"), {Op: "Query", Sql: "FROM a", Inputs: []int32{0}, Views: []string{"signet_operator_1"}}, operator("Result", 1)},
		"this ) closes nothing":        {query("SELECT 1) UNION (SELECT 2"), operator("Result", 0)},
		"more than one statement":      {query("SELECT 1; DROP TABLE t"), operator("Result", 0)},
		"its text is not a query":      {query("DROP TABLE t"), operator("Result", 0)},
		"is not the name of a table":   {query("SELECT 1"), write(&planv1.WriteTarget{Table: "t SELECT 2 --"}, 0), operator("Commit", 1)},
		"tables that are created":      {query("SELECT 1"), write(&planv1.WriteTarget{Table: "t", PartitionedBy: []string{"a"}}, 0), operator("Commit", 1)},
		"of which one is no term":      {query("SELECT 1 a"), write(&planv1.WriteTarget{Table: "t", Create: true, PartitionedBy: []string{"a) AS SELECT 666 a UNION ALL --"}}, 0), operator("Commit", 1)},
		"\"a, b\"":                     {query("SELECT 1 a"), write(&planv1.WriteTarget{Table: "t", Create: true, PartitionedBy: []string{"a, b"}}, 0), operator("Commit", 1)},
		"a limit of -1 rows":           {query("SELECT 1"), {Op: "Coalesce", Inputs: []int32{0}, Limit: -1}, operator("Result", 1)},
	} {
		_, err := Statement(&planv1.LogicalPlan{Operators: ops})
		require.ErrorContains(t, err, want)
	}
}

func TestCheckPhysical_RefusesWhatCannotRun(t *testing.T) {
	files := func(f *planv1.FileInput) *planv1.PhysicalPlan {
		return &planv1.PhysicalPlan{Stages: []*planv1.PhysicalStage{{Tasks: []*planv1.PhysicalTask{{Sql: "FROM f", Inputs: []*planv1.PhysicalInput{{View: "f", Kind: &planv1.PhysicalInput_Files{Files: f}}}}}}}}
	}
	task := &planv1.PhysicalTask{Sql: "SELECT 1"}
	hash := func(partitions int32, tasks ...*planv1.PhysicalTask) *planv1.PhysicalStage {
		return &planv1.PhysicalStage{Tasks: tasks, Exchange: planv1.ExchangeKind_EXCHANGE_KIND_HASH, Keys: []int32{0}, Partitions: partitions}
	}
	reads := func(stage int32, partitions ...int32) *planv1.PhysicalTask {
		return &planv1.PhysicalTask{Sql: "FROM s", Inputs: []*planv1.PhysicalInput{{View: "s", Kind: &planv1.PhysicalInput_Stage{Stage: &planv1.StageRead{Stage: stage, Partitions: partitions}}}}}
	}
	last := func(tasks ...*planv1.PhysicalTask) *planv1.PhysicalStage { return &planv1.PhysicalStage{Tasks: tasks} }
	plan := func(stages ...*planv1.PhysicalStage) *planv1.PhysicalPlan {
		return &planv1.PhysicalPlan{Stages: stages}
	}
	require.NoError(t, CheckPhysical(plan(hash(2, task), last(reads(0, 0), reads(0, 1))), Limits{}))
	for want, p := range map[string]*planv1.PhysicalPlan{
		"it has no stages":                           {},
		"has 1000000 stages":                         plan(make([]*planv1.PhysicalStage, 1_000_000)...),
		"it has no tasks":                            plan(last()),
		"more than 100000 tasks":                     plan(last(make([]*planv1.PhysicalTask, 100_001)...)),
		"nothing reads the last stage":               plan(hash(1, task)),
		"does not say how its rows are kept":         plan(last(task), last(task)),
		"reads stage 1, which does not stand":        plan(hash(1, task), last(reads(1))),
		"reads stage -1":                             plan(hash(1, task), last(reads(-1))),
		"partition 2 of stage 0, which has 2":        plan(hash(2, task), last(reads(0, 0, 1, 2))),
		"each of them once":                          plan(hash(2, task), last(reads(0, 0, 1, 1))),
		"1000000 partitions":                         plan(hash(1_000_000, task), last(reads(0))),
		"no task of it reads partition 1 of stage 0": plan(hash(2, task), last(reads(0, 0))),
		"without a number of partitions":             plan(hash(0, task), last(reads(0))),
		"of a kind that is not known":                plan(last(&planv1.PhysicalTask{Inputs: []*planv1.PhysicalInput{{View: "x"}}})),
		"a table without a name":                     plan(last(&planv1.PhysicalTask{Inputs: []*planv1.PhysicalInput{{View: "x", Kind: &planv1.PhysicalInput_Table{}}}})),
		`no function "read_text"`:                    files(&planv1.FileInput{Function: "read_text", Names: []string{"x"}}),
		"no files":                                   files(&planv1.FileInput{Function: "read_csv"}),
		"option delim = ') FROM x --":                files(&planv1.FileInput{Function: "read_csv", Names: []string{"x"}, Options: map[string]string{"delim": "') FROM x --"}}),
		"option a b = 1":                             files(&planv1.FileInput{Function: "read_csv", Names: []string{"x"}, Options: map[string]string{"a b": "1"}}),
		"rows 5 to 5":                                files(&planv1.FileInput{Function: "read_parquet", Names: []string{"x"}, FirstRow: 5, EndRow: 5}),
		"writes a table that exists":                 {Stages: plan(last(task)).Stages, Target: &planv1.WriteTarget{Table: "t", Create: true}},
		"for plans whose rows are the result":        {Stages: plan(last(task)).Stages, Target: &planv1.WriteTarget{Table: "t"}, Limit: 5},
	} {
		require.ErrorContains(t, CheckPhysical(p, Limits{}), want)
	}
}
