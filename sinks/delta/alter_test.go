package delta_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func (b *bench) tryAlter(req *sinkv1.AlterTableRequest) (*sinkv1.AlterTableResponse, error) {
	req.Lease, req.Table, req.MaxAttempts = b.host.Lease, b.ref, 4
	resp, err := b.sink.AlterTable(b.Context(), req)
	return resp, sdk.FromStatus(err)
}

func (b *bench) alter(changes ...*sinkv1.Change) *sinkv1.AlterTableResponse {
	b.Helper()
	resp, err := b.tryAlter(&sinkv1.AlterTableRequest{Changes: changes})
	require.NoError(b, err)
	return resp
}

func (b *bench) describe() *sinkv1.DescribeTableResponse {
	b.Helper()
	resp, err := b.sink.DescribeTable(b.Context(), &sinkv1.DescribeTableRequest{Lease: b.host.Lease, Table: b.ref})
	require.NoError(b, err)
	return resp
}

func adding(c *sinkv1.AddColumn) *sinkv1.Change {
	return &sinkv1.Change{Kind: &sinkv1.Change_AddColumn{AddColumn: c}}
}

func changing(c *sinkv1.ChangeColumn) *sinkv1.Change {
	return &sinkv1.Change{Kind: &sinkv1.Change_ChangeColumn{ChangeColumn: c}}
}

func setting(key, value string) *sinkv1.Change {
	return &sinkv1.Change{Kind: &sinkv1.Change_SetProperties{SetProperties: &sinkv1.SetProperties{Properties: map[string]string{key: value}}}}
}

func TestAlterTable(t *testing.T) {
	b := newBench(t)
	d := definition(true)
	d.Schema.Fields[0].Required = true
	b.create(d)
	comment := "what it is"
	resp := b.alter(adding(&sinkv1.AddColumn{Field: field("c", planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), After: "id"}),
		changing(&sinkv1.ChangeColumn{Path: []string{"ID"}, Optional: true, Doc: &comment}), setting("delta.checkpointInterval", "5"), setting("mine", "x"))
	require.Equal(t, "1", resp.GetVersion())
	require.Contains(t, resp.GetWarnings()[0], "timestampNtz")
	now := b.describe()
	var columns []string
	for _, f := range now.GetSchema().GetFields() {
		columns = append(columns, fmt.Sprint(f.GetName(), f.GetRequired(), f.GetDoc()))
	}
	require.Equal(t, []string{"idfalse" + comment, "cfalse", "pfalse"}, columns)
	require.Equal(t, "5", now.GetProperties()["delta.checkpointInterval"])
	require.Equal(t, "p", now.GetPartition()[0].GetName(), "E10: the partition columns stay")
	require.EqualValues(t, 3, now.GetPartition()[0].GetSourceId())

	require.True(t, b.alter(setting("mine", "x")).GetUnchanged())
	dry, err := b.tryAlter(&sinkv1.AlterTableRequest{Changes: []*sinkv1.Change{setting("mine", "y")}, DryRun: true})
	require.NoError(t, err)
	require.False(t, dry.GetUnchanged())
	require.Equal(t, "1", b.describe().GetVersion())
	b.alter(&sinkv1.Change{Kind: &sinkv1.Change_UnsetProperties{UnsetProperties: &sinkv1.UnsetProperties{Names: []string{"mine"}}}})
	require.NotContains(t, b.describe().GetProperties(), "mine")
	again, err := b.tryAlter(&sinkv1.AlterTableRequest{Again: true, Changes: []*sinkv1.Change{
		adding(&sinkv1.AddColumn{Field: field("c", planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)}),
		{Kind: &sinkv1.Change_UnsetProperties{UnsetProperties: &sinkv1.UnsetProperties{Names: []string{"mine"}}}},
	}})
	require.NoError(t, err)
	require.True(t, again.GetUnchanged())
}

func TestAlterTable_Refuses(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	before := b.host.Objects()
	for says, c := range map[string]*sinkv1.Change{
		"column id cannot be dropped: Delta needs column mapping": {Kind: &sinkv1.Change_DropColumn{DropColumn: &sinkv1.DropColumn{Path: []string{"id"}}}},
		"column id cannot be renamed: Delta needs column mapping": {Kind: &sinkv1.Change_RenameColumn{RenameColumn: &sinkv1.RenameColumn{Path: []string{"id"}, Name: "x"}}},
		"typeWidening":                  changing(&sinkv1.ChangeColumn{Path: []string{"id"}, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}}),
		"SET NOT NULL":                  changing(&sinkv1.ChangeColumn{Path: []string{"id"}, Required: true}),
		"the table has no column q":     changing(&sinkv1.ChangeColumn{Path: []string{"q"}, Optional: true}),
		"column id exists already":      adding(&sinkv1.AddColumn{Field: field("id", planv1.TypeKind_TYPE_KIND_INT64)}),
		"Delta refuses ' ' in names":    adding(&sinkv1.AddColumn{Field: field("a b", planv1.TypeKind_TYPE_KIND_INT64)}), // X15
		"so that it cannot be NOT NULL": adding(&sinkv1.AddColumn{Field: &planv1.Field{Name: "r", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}, Required: true}}),
		"the table has no struct p":     adding(&sinkv1.AddColumn{Parent: []string{"p"}, Field: field("x", planv1.TypeKind_TYPE_KIND_INT64)}),
		"partitioning of a Delta table": {Kind: &sinkv1.Change_AddPartitionField{AddPartitionField: &sinkv1.PartitionClause{Column: "id"}}},
		"no sort order":                 {Kind: &sinkv1.Change_SetSort{SetSort: &sinkv1.SetSort{}}},
		"no branches":                   {Kind: &sinkv1.Change_SetRef{SetRef: &sinkv1.SetRef{Name: "b"}}},
		"want true or false":            setting("delta.appendOnly", "maybe"),
		"property mine is not set":      {Kind: &sinkv1.Change_UnsetProperties{UnsetProperties: &sinkv1.UnsetProperties{Names: []string{"mine"}}}},
	} {
		_, err := b.tryAlter(&sinkv1.AlterTableRequest{Changes: []*sinkv1.Change{c}})
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, err, sdk.ErrPermanent)
	}
	require.Equal(t, before, b.host.Objects())
}

func TestAppendOnly(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0))
	stale := b.prepare(overwriting(all))
	u := b.unit(stale, nil)
	b.alter(setting("delta.appendOnly", "true"))
	b.add(file("b", 0))
	_, err := b.tryPrepare(overwriting(all))
	require.ErrorContains(t, err, "delta.appendOnly")
	b.refusedCommit(stale, "append-only", u)
}

func TestHistory(t *testing.T) {
	b := newBench(t)
	b.create(definition(false))
	b.add(file("a", 0))
	b.alter(setting("mine", "x"))
	list := func(limit int32) (out []*sinkv1.HistoryEntry) {
		s, err := b.sink.History(t.Context(), &sinkv1.HistoryRequest{Lease: b.host.Lease, Table: b.ref, Limit: limit})
		require.NoError(t, err)
		m, err := s.Recv()
		require.NoError(t, err)
		return m.GetEntries()
	}
	all := list(0)
	require.Len(t, all, 3)
	require.Equal(t, []string{"SET TBLPROPERTIES", "WRITE", "CREATE TABLE"}, []string{all[0].GetOperation(), all[1].GetOperation(), all[2].GetOperation()})
	require.Equal(t, "1", all[1].GetVersion())
	require.True(t, all[1].GetBlindAppend())
	require.EqualValues(t, 0, all[1].GetReadVersion())
	require.Equal(t, "10", all[1].GetMetrics()["numOutputRows"])
	require.NotEmpty(t, all[1].GetCommitId())
	require.Len(t, list(1), 1)
}

func TestMaintain(t *testing.T) {
	b := newBench(t)
	b.create(definition(true))
	b.add(file("live", 0, str("x")), file("gone", 0, str("y")))
	spec := b.prepare(overwriting(where(planv1.CompareOp_COMPARE_OP_EQ, 2, str("y"))))
	b.land(spec, b.unit(spec, nil))
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, name := range []string{"live", "gone", "orphan", "p=x/orphan", "_hidden/x", ".hidden", "_change_data/x", "fresh"} {
		b.host.Put(location+"/"+name, []byte("x"))
		if name != "fresh" {
			b.host.Touch(location+"/"+name, old)
		}
	}
	propose := func(unnamed int64) (out []string) {
		s, err := b.sink.Maintain(t.Context(), &sinkv1.MaintainRequest{
			Lease: b.host.Lease, Table: b.ref, OlderThanMillis: time.Now().Add(-time.Hour).UnixMilli(), UnnamedSinceMillis: unnamed,
		})
		require.NoError(t, err)
		m, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, spec.GetTableUuid(), m.GetTableUuid())
		require.Equal(t, (7 * 24 * time.Hour).Milliseconds(), m.GetRetentionMillis())
		for _, p := range m.GetProposals() {
			require.EqualValues(t, 1, p.GetSizeBytes())
			require.Equal(t, old.UnixMilli(), p.GetMtimeMillis())
			out = append(out, p.GetUri()[len(location)+1:])
		}
		slices.Sort(out)
		return out
	}
	require.Equal(t, []string{"orphan", "p=x/orphan"}, propose(0))
	require.Equal(t, []string{"gone", "orphan", "p=x/orphan"}, propose(time.Now().Add(time.Minute).UnixMilli()))
}
