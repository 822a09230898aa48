package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

const (
	hashKind   = planv1.ExchangeKind_EXCHANGE_KIND_HASH
	gatherKind = planv1.ExchangeKind_EXCHANGE_KIND_GATHER
)

func typed(names ...string) []*planv1.Column {
	var out []*planv1.Column
	for _, n := range names {
		out = append(out, &planv1.Column{Name: n, EngineType: "BIGINT", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}})
	}
	return out
}

func tableOf(view string, files int, each int64) *planv1.Source {
	f := &planv1.FileSource{Function: "read_parquet"}
	for i := range files {
		f.Files = append(f.Files, &planv1.PinnedFile{Path: fmt.Sprintf("/%s/%d", view, i), Name: fmt.Sprintf("%s%d.parquet", view, i), SizeBytes: each})
	}
	return &planv1.Source{View: view, Kind: &planv1.Source_File{File: f}}
}

// joinRequest is a.k = b.k by hash, each side of four files, and either side may be broadcast instead.
func joinRequest(a, b int64) Request {
	left, right := tableOf("a", 4, a/4), tableOf("b", 4, b/4)
	own := func(view string) []*executorv1.StageInput {
		return []*executorv1.StageInput{{View: view, Stage: -1, Split: true}}
	}
	return Request{
		SQL: "SELECT x FROM a JOIN b USING (k)", Columns: typed("x"), MaxResultBytes: 100,
		Input:  Input{Sources: []*planv1.Source{left, right}, NotRowWise: "it joins"},
		Limits: Limits{Executors: 3, MinBytes: 1 << 20, BroadcastBytes: 2 << 20},
		Staged: &executorv1.StagedQuery{Stages: []*executorv1.QueryStage{
			{Sql: "SELECT k FROM a", Inputs: own("a"), Columns: typed("k"), Output: hashKind, Keys: []int32{0}, Label: "scan", Repeatable: true},
			{Sql: "SELECT k, x FROM b", Inputs: own("b"), Columns: typed("k", "x"), Output: hashKind, Keys: []int32{0}, Label: "scan", Repeatable: true},
			{
				Sql: "SELECT x FROM s0 JOIN s1 USING (k)", Columns: typed("x"), Label: "hash join", Repeatable: true,
				Inputs: []*executorv1.StageInput{{View: "s0", Stage: 0, Split: true}, {View: "s1", Stage: 1, Split: true}},
				Broadcasts: []*executorv1.BroadcastJoin{
					{Absorbs: 0, Broadcasts: 1, Sql: "SELECT x FROM a JOIN s1 USING (k)", Inputs: []*executorv1.StageInput{{View: "a", Stage: -1, Split: true}, {View: "s1", Stage: 1}}},
					{Absorbs: 1, Broadcasts: 0, Sql: "SELECT x FROM s0 JOIN b USING (k)", Inputs: []*executorv1.StageInput{{View: "b", Stage: -1, Split: true}, {View: "s0", Stage: 0}}},
				},
			},
		}},
	}
}

// aggregateInsert is INSERT … SELECT k, sum(x) … GROUP BY k into a partitioned table.
func aggregateInsert(t *testing.T) Request {
	s := schema(t, "k BIGINT, total BIGINT")
	cols := typed("k", "total")
	out, err := MapColumns(Target{Table: "lake.demo.t", Schema: s}, cols)
	require.NoError(t, err)
	return Request{
		SQL: "SELECT k, sum(x) AS total FROM a GROUP BY k", Columns: cols, Table: "lake.demo.t", Output: out,
		Spec:   &planv1.WriteSpec{Schema: s, BaseVersion: "1", Partition: []*planv1.PartitionField{{SourceId: 1, Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}}},
		Input:  Input{Sources: []*planv1.Source{tableOf("a", 4, 16<<20)}, NotRowWise: "it has a GROUP BY"},
		Limits: Limits{Executors: 3, MinBytes: 1 << 20},
		Staged: &executorv1.StagedQuery{Stages: []*executorv1.QueryStage{
			{Sql: "SELECT k, sum(x) AS p FROM a GROUP BY k", Inputs: []*executorv1.StageInput{{View: "a", Stage: -1, Split: true}}, Columns: typed("k", "p"), Output: hashKind, Keys: []int32{0}, Label: "partial aggregate", Repeatable: true},
			{Sql: "SELECT k, sum(p) AS total FROM s0 GROUP BY k", Inputs: []*executorv1.StageInput{{View: "s0", Stage: 0, Split: true}}, Columns: cols, Label: "final aggregate", Repeatable: true},
		}},
	}
}

// drive runs an adaptive planner; each stage's output is measured as out says.
func drive(t *testing.T, p Planner, out func(st Stage, partition int) int64) [][]Stage {
	t.Helper()
	measured := map[int32]Measure{}
	var batches [][]Stage
	for {
		b, err := p.Next(measured)
		require.NoError(t, err)
		batches = append(batches, b.Stages)
		for _, st := range b.Stages {
			if !st.Stored {
				continue
			}
			m := Measure{}
			for i := range st.Exchange().GetPartitions() {
				m.Bytes, m.Rows = append(m.Bytes, out(st, int(i))), append(m.Rows, 1)
			}
			measured[st.ID] = m
		}
		if !b.More {
			return batches
		}
		require.Less(t, len(batches), 20)
	}
}

func explainAdaptive(t *testing.T, r Request) string {
	p, err := New(Adaptive, r)
	require.NoError(t, err)
	_, err = p.Next(nil)
	require.NoError(t, err)
	first := p.Plan().Explain()
	p, err = New(Adaptive, r)
	require.NoError(t, err)
	drive(t, p, func(st Stage, i int) int64 { return int64(i%4) << 20 })
	return "at submission\n" + first + "at the end\n" + p.Plan().Explain()
}

func sqlOf(stages []Stage) []string {
	var out []string
	for _, st := range stages {
		out = append(out, strings.ReplaceAll(st.Task(0).GetSql(), "\n", " "))
	}
	return out
}

// checkReads: every partition of every stage is read by somebody, and split inputs by exactly one task (S10).
func checkReads(t *testing.T, stages []Stage) {
	t.Helper()
	for _, st := range stages {
		for _, in := range st.Inputs {
			require.Less(t, in, st.ID)
			seen := map[int32]int{}
			for i := range st.Tasks() {
				for _, s := range st.Task(i).GetSources() {
					if s.GetExchange().GetStage() != in || s.GetExchange() == nil {
						continue
					}
					require.Equal(t, stages[in].Columns(), s.GetExchange().GetColumns())
					for _, p := range s.GetExchange().GetParts() {
						seen[p.GetPartition()]++
					}
				}
			}
			n := stages[in].Exchange().GetPartitions()
			require.Len(t, seen, int(n), "stage %d of stage %d", st.ID, in)
			for p, times := range seen {
				require.True(t, times == 1 || times == st.Tasks(), "partition %d is read %d times by %d tasks", p, times, st.Tasks())
			}
		}
	}
}

func TestStatic_HashJoinReadsEveryPartitionOnce(t *testing.T) {
	p, err := Build(joinRequest(64<<20, 64<<20))
	require.NoError(t, err)
	require.Len(t, p.Stages, 4)
	require.Equal(t, 3, p.Stages[0].Tasks())
	require.EqualValues(t, 3, p.Stages[0].Exchange().GetPartitions())
	require.EqualValues(t, 3, p.Stages[1].Exchange().GetPartitions(), "both sides have the same number")
	require.Equal(t, 3, p.Stages[2].Tasks())
	require.Equal(t, 1, p.Stages[3].Tasks())
	require.False(t, p.Stages[3].Stored)
	checkReads(t, p.Stages)
}

func TestStatic_SmallSideIsBroadcast(t *testing.T) {
	p, err := Build(joinRequest(64<<20, 1<<20))
	require.NoError(t, err)
	require.Equal(t, []string{"SELECT k, x FROM b", "SELECT * FROM ( SELECT x FROM a JOIN s1 USING (k) ) AS q(c0)", `SELECT c0 AS "x" FROM __signet_rows`}, sqlOf(p.Stages))
	require.Equal(t, planv1.ExchangeKind_EXCHANGE_KIND_BROADCAST, p.Stages[0].Exchange().GetKind())
	require.Equal(t, 3, p.Stages[1].Tasks())
	checkReads(t, p.Stages)
	r := joinRequest(64<<20, 1<<20)
	r.Limits.BroadcastBytes = -1
	p, err = Build(r)
	require.NoError(t, err)
	require.Len(t, p.Stages, 4, "never, if the session says so")
}

func TestAdaptive_MeasuredSideDecidesTheJoin(t *testing.T) {
	p, err := New(Adaptive, joinRequest(64<<20, 32<<20))
	require.NoError(t, err)
	batches := drive(t, p, func(Stage, int) int64 { return 100 })
	require.Equal(t, []string{"SELECT k, x FROM b"}, sqlOf(batches[0]), "the smaller side goes first, and the other waits")
	require.Equal(t, "SELECT * FROM ( SELECT x FROM a JOIN s1 USING (k) ) AS q(c0)", sqlOf(batches[1])[0])
	checkReads(t, p.Plan().Stages)

	p, err = New(Adaptive, joinRequest(64<<20, 32<<20))
	require.NoError(t, err)
	batches = drive(t, p, func(Stage, int) int64 { return 1 << 20 })
	require.Equal(t, []string{"SELECT k FROM a"}, sqlOf(batches[1]), "it is not small: both sides are hashed")
	require.Equal(t, "SELECT * FROM ( SELECT x FROM s0 JOIN s1 USING (k) ) AS q(c0)", sqlOf(batches[2])[0])
	checkReads(t, p.Plan().Stages)

	p, err = New(Adaptive, joinRequest(640<<20, 640<<20))
	require.NoError(t, err)
	batches = drive(t, p, func(Stage, int) int64 { return 8 << 20 })
	require.Len(t, batches[0], 2, "neither side looks small: both go at once")
}

func TestAdaptive_SmallPartitionsAreReadTogether(t *testing.T) {
	r := aggregateInsert(t)
	p, err := New(Adaptive, r)
	require.NoError(t, err)
	batches := drive(t, p, func(st Stage, i int) int64 { return 1 << 20 })
	require.EqualValues(t, 12, batches[0][0].Exchange().GetPartitions(), "more than tasks will read them")
	final := p.Plan().Stages[1]
	require.Equal(t, 3, final.Tasks())
	require.Len(t, final.Task(0).GetSources()[0].GetExchange().GetParts(), 4)
	checkReads(t, p.Plan().Stages)

	p, err = New(Adaptive, r)
	require.NoError(t, err)
	drive(t, p, func(Stage, int) int64 { return 10 })
	require.Len(t, p.Plan().Stages, 2, "one task writes: nothing to distribute")
	require.Equal(t, 1, p.Plan().Stages[1].Tasks())
	require.NotNil(t, p.Plan().Stages[1].Task(0).GetWrite())
}

func TestWrites_DistributedByPartition(t *testing.T) {
	for _, mode := range []Mode{Static, Adaptive} {
		for d, stages := range map[Distribution]int{DistributionUnset: 3, DistributionHash: 3, DistributionNone: 2} {
			r := aggregateInsert(t)
			r.Distribution = d
			p, err := New(mode, r)
			require.NoError(t, err)
			drive(t, p, func(Stage, int) int64 { return 1 << 20 })
			all := p.Plan().Stages
			require.Len(t, all, stages, "%s %q", mode, d)
			checkReads(t, all)
			last := all[len(all)-1]
			require.Greater(t, last.Tasks(), 1)
			require.NotNil(t, last.Task(0).GetWrite())
			if stages == 3 {
				ex := all[1].Exchange()
				require.Equal(t, []int32{2}, ex.GetKeys())
				require.Contains(t, all[1].Task(0).GetSql(), "CAST(CAST(c0 AS BIGINT) AS VARCHAR) AS k0")
				require.Equal(t, "SELECT c0, c1 FROM __signet_rows", last.Task(0).GetSql())
			}
		}
	}
	r := writeRequest(t) // row-wise
	r.Columns = proto.CloneOf(&executorv1.QueryStage{Columns: typed("n", "ts", "c", "s")}).GetColumns()
	for d, stages := range map[Distribution]int{DistributionUnset: 1, DistributionHash: 2} {
		r.Distribution = d
		p, err := Build(r)
		require.NoError(t, err)
		require.Len(t, p.Stages, stages)
	}
	_, err := DistributionByName("shuffle")
	require.ErrorContains(t, err, "none, hash or range")
	d, err := DistributionByName("RANGE")
	require.NoError(t, err)
	require.Equal(t, DistributionHash, d)
}

func TestClusterExpression_EveryTransform(t *testing.T) {
	kind := func(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }
	for want, c := range map[string]struct {
		f *planv1.PartitionField
		t planv1.TypeKind
	}{
		"c": {&planv1.PartitionField{Transform: planv1.TransformKind_TRANSFORM_KIND_IDENTITY}, planv1.TypeKind_TYPE_KIND_STRING},
		"date_trunc('month', make_timestamp(epoch_us(c)))": {&planv1.PartitionField{Transform: planv1.TransformKind_TRANSFORM_KIND_MONTH}, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS},
		"(__signet_hash_text(c) % 7)":                      {&planv1.PartitionField{Transform: planv1.TransformKind_TRANSFORM_KIND_BUCKET, Param: 7}, planv1.TypeKind_TYPE_KIND_STRING},
		"left(c, 3)":                                       {&planv1.PartitionField{Transform: planv1.TransformKind_TRANSFORM_KIND_TRUNCATE, Param: 3}, planv1.TypeKind_TYPE_KIND_STRING},
	} {
		got, ok := clusterExpression(c.f, kind(c.t), "c")
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok := clusterExpression(&planv1.PartitionField{Transform: planv1.TransformKind_TRANSFORM_KIND_VOID}, kind(planv1.TypeKind_TYPE_KIND_STRING), "c")
	require.False(t, ok)
}

func TestNew_OneTaskWhereStagesAreNotWorthIt(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"the input is small":     func(r *Request) { r.Limits.MinBytes = 1 << 30 },
		"there is one executor":  func(r *Request) { r.Limits.Executors = 1 },
		"one task was asked for": func(r *Request) { r.Limits.MaxTasks = 1 },
		"it calls random()": func(r *Request) {
			r.Staged = &executorv1.StagedQuery{Stages: oneStage(*r).Stages, NotStaged: "it calls random()"}
		},
		"it joins":                 func(r *Request) { r.Staged = nil },
		"the query reads no files": func(r *Request) { *r = Request{SQL: "SELECT 1", Columns: typed("x"), Input: Input{RowWise: true}} },
	} {
		for _, mode := range []Mode{Static, Adaptive} {
			r := joinRequest(64<<20, 64<<20)
			change(&r)
			p, err := New(mode, r)
			require.NoError(t, err)
			b, err := p.Next(nil)
			require.NoError(t, err)
			require.False(t, b.More)
			require.Len(t, b.Stages, 1, want)
			require.Equal(t, 1, b.Stages[0].Tasks())
			require.Equal(t, r.SQL, b.Stages[0].Task(0).GetSql())
			require.Contains(t, b.Stages[0].Split.Reason, want)
			require.NotNil(t, b.Stages[0].Task(0).GetResult())
		}
	}
	r := joinRequest(10, 10)
	r.Limits.Executors, r.Tuning.Partitions, r.Limits.BroadcastBytes = 1, 5, -1
	p, err := Build(r)
	require.NoError(t, err)
	require.EqualValues(t, 5, p.Stages[0].Exchange().GetPartitions(), "who asks for partitions gets them")
}

// The planner never makes more than the limits, and what it is given wrong is refused with what is wrong.
func TestNew_Refusals(t *testing.T) {
	chain := func(n int) *executorv1.StagedQuery {
		out := &executorv1.StagedQuery{}
		for i := range n {
			q := &executorv1.QueryStage{Sql: "SELECT 1 AS x", Columns: typed("x"), Output: gatherKind}
			if i > 0 {
				q.Inputs = []*executorv1.StageInput{{View: "s", Stage: int32(i - 1)}}
			}
			if i == n-1 {
				q.Output = 0
			}
			out.Stages = append(out.Stages, q)
		}
		return out
	}
	for want, change := range map[string]func(*Request){
		"needs 1000000 stages; at most 1000":      func(r *Request) { r.Staged = chain(1_000_000) },
		"reads stage 2, which does not stand":     func(r *Request) { r.Staged.Stages[0].Inputs = []*executorv1.StageInput{{View: "s", Stage: 2}} },
		"reads stage 0, which does not stand":     func(r *Request) { r.Staged.Stages[0].Inputs = []*executorv1.StageInput{{View: "s", Stage: 0}} },
		`no source "nope"`:                        func(r *Request) { r.Staged.Stages[0].Inputs[0].View = "nope" },
		"key 7 of 1 columns":                      func(r *Request) { r.Staged.Stages[0].Keys = []int32{7} },
		"without keys":                            func(r *Request) { r.Staged.Stages[0].Keys = nil },
		"key 0 is BIGINT on one side and VARCHAR": func(r *Request) { r.Staged.Stages[1].Columns[0].EngineType = "VARCHAR" },
		"its output is EXCHANGE_KIND_UNSPECIFIED": func(r *Request) { r.Staged.Stages[0].Output = 0 },
		"it is the last one":                      func(r *Request) { r.Staged.Stages[2].Output = gatherKind },
		"nothing reads it":                        func(r *Request) { r.Staged.Stages[2].Inputs = r.Staged.Stages[2].Inputs[:1] },
		"1 sources and 1 stages are split": func(r *Request) {
			r.Staged.Stages[2].Inputs[0] = &executorv1.StageInput{View: "a", Stage: -1, Split: true}
		},
		"it has no query":           func(r *Request) { r.Staged.Stages[0].Sql = "" },
		"its columns are not known": func(r *Request) { r.Staged.Stages[0].Columns = nil },
		"2 tasks; at most 1 are allowed in one job": func(r *Request) {
			r.Limits.MaxJobTasks = 1
			r.Staged = nil
			r.Input.Sources = r.Input.Sources[:1]
			r.Input.RowWise = true
			r.Input.NotRowWise = ""
			r.Limits.Executors = 1
			r.Limits.TargetBytes = 32 << 20
			r.Limits.MaxStages = 5
			r.Spec = &planv1.WriteSpec{}
		},
		"the plan has 4 stages; at most 3 are allowed": func(r *Request) { r.Limits.MaxStages = 3 },
		`there is no planner "clever"`:                 nil,
	} {
		r := joinRequest(64<<20, 64<<20)
		mode := Static
		if change == nil {
			mode = "clever"
		} else {
			change(&r)
		}
		p, err := New(mode, r)
		if err == nil {
			_, err = p.Next(nil)
		}
		require.ErrorContains(t, err, want)
	}
}

func TestFillParts_KeepsOrderAndLeavesThePlanAlone(t *testing.T) {
	p, err := Build(joinRequest(64<<20, 64<<20))
	require.NoError(t, err)
	task := p.Stages[2].Task(1)
	before := proto.CloneOf(task)
	part := func(task, partition int32) *planv1.ExchangePart {
		return &planv1.ExchangePart{Task: task, Partition: partition, AttemptId: fmt.Sprint(task)}
	}
	left := func(stage, partition int32) []*planv1.ExchangePart {
		if stage == 1 {
			return nil
		}
		return []*planv1.ExchangePart{part(0, partition), part(2, partition)}
	}
	got := FillParts(task.GetSources(), left)
	require.True(t, proto.Equal(before, task))
	require.Equal(t, []*planv1.ExchangePart{part(0, 1), part(2, 1)}, got[0].GetExchange().GetParts())
	require.Empty(t, got[1].GetExchange().GetParts(), "a side without rows")
	require.NotEmpty(t, got[1].GetExchange().GetColumns())
	whole := []*planv1.Source{exchangeSource("v", p.Stages[0], []int32{0, 1})}
	require.Equal(t, []*planv1.ExchangePart{part(0, 0), part(0, 1), part(2, 0), part(2, 1)}, FillParts(whole, left)[0].GetExchange().GetParts())
	plain := []*planv1.Source{tableOf("a", 1, 1)}
	require.Equal(t, plain, FillParts(plain, nil))
}

func TestParseSettings(t *testing.T) {
	s, err := ParseSettings(map[string]string{
		SettingPlanner: "adaptive", SettingMinTaskBytes: "10", SettingMaxTasks: "3", SettingPartitions: "5", SettingBroadcastBytes: "0",
		SettingRoot: "Result", SettingTaskPolicy: "pull", SettingPipelined: "true", SettingSplice: "false",
	})
	require.NoError(t, err)
	require.Equal(t, Settings{Mode: Adaptive, MinTaskBytes: 10, MaxTasks: 3, Partitions: 5, BroadcastBytes: -1, Root: "Result", TaskPolicy: "pull", Pipelined: true, NoSplice: true}, s)
	r := Request{Root: func(n *Node) bool { return n.Op == OpWrite }}
	require.NoError(t, s.Apply(&r))
	require.Equal(t, Limits{MinBytes: 10, MaxTasks: 3, BroadcastBytes: -1}, r.Limits)
	require.Equal(t, Tuning{Partitions: 5, NoSplice: true}, r.Tuning)
	require.True(t, r.Root(node(OpResult)) && r.Root(node(OpCommit)) && r.Root(node(OpWrite)))
	for name, v := range map[string]string{
		"signet.plannr": "static", SettingPlanner: "clever", SettingMinTaskBytes: "0", SettingMaxTasks: "-1", SettingPartitions: "1e9", SettingBroadcastBytes: "x",
		SettingRoot: "Sort", SettingTaskPolicy: "both", SettingPipelined: "perhaps", SettingSplice: "perhaps",
		SettingSummary: "x", SettingSummary + "total-records": "9", SettingSummary + "a b": "x", SettingSummary + "k": "a\x00",
	} {
		_, err := ParseSettings(map[string]string{name: v})
		require.ErrorContains(t, err, name)
	}
}

func TestParseSettings_SnapshotProperties(t *testing.T) {
	m := map[string]string{SettingMaxTasks: "3"}
	for i := range 32 {
		m[SettingSummary+"k"+strconv.Itoa(i)] = "v"
	}
	s, err := ParseSettings(m)
	require.NoError(t, err)
	require.Len(t, s.Summary, 32)
	require.Equal(t, "v", s.Summary["k31"])
	m[SettingSummary+"more"] = "v"
	_, err = ParseSettings(m)
	require.ErrorContains(t, err, "at most 32")
	_, err = ParseSettings(map[string]string{SettingSummary + "wap.id": "x"})
	require.ErrorContains(t, err, `the snapshot property "wap.id" is reserved`)
	_, err = ParseSettings(map[string]string{"signet.plannr": ""})
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Hint, SettingSummary+"NAME")
}

func TestNew_NoRootWhereRowsLeaveEarlier_S33_S34_S35(t *testing.T) {
	for _, mode := range []Mode{Static, Adaptive} {
		r := joinRequest(64<<20, 64<<20)
		r.Keep = true
		p, err := New(mode, r)
		require.NoError(t, err, "without a root it is fine")
		drive(t, p, func(Stage, int) int64 { return 10 << 20 })
		last := p.Plan().Stages[len(p.Plan().Stages)-1]
		require.True(t, last.Stored)
		require.Equal(t, 3, last.Tasks())

		r.Root = func(n *Node) bool { return n.Op == OpResult }
		_, err = New(mode, r)
		require.ErrorContains(t, err, "builds a cache cannot have a scheduler root")
		r.Keep, r.Pipelined = false, true
		_, err = New(mode, r)
		require.ErrorContains(t, err, "a pipelined job cannot have a scheduler root: Result")
		w := aggregateInsert(t)
		w.Pipelined = true
		_, err = New(mode, w)
		require.ErrorContains(t, err, "a pipelined job cannot have a scheduler root: Commit")
	}
}
