package iceberg

import (
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func TestCreateTable_MakesWhatWasAsked(t *testing.T) {
	h := newHost(t, "made")
	c := h.client(New())
	resp := createTable(t, h, c, &sinkv1.TableDefinition{
		Schema: &planv1.Schema{Fields: []*planv1.Field{
			required(field("id", kLong)), field("tiny", planv1.TypeKind_TYPE_KIND_INT8), field("a", kStr), field("A", kStr), // X3
			{Name: "st", Doc: "a struct", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("x", planv1.TypeKind_TYPE_KIND_INT16)}}},
			field("ts", kTSTZ),
		}},
		Partition:  []*sinkv1.PartitionClause{clause("ts", tMonth), clause("a", tIdentity)},
		Sort:       []*sinkv1.SortClause{{Column: "id", NullsFirst: true}},
		Properties: map[string]string{"owner": "me", "write.summary.partition-limit": "5"},
	})
	md := h.table().Metadata()
	require.Equal(t, md.TableUUID().String(), resp.GetTableUuid())
	require.Equal(t, h.location(), resp.GetLocation())
	require.Equal(t, 2, md.Version())
	require.Equal(t, "me", md.Properties()["owner"])
	require.NotContains(t, md.Properties(), "format-version")
	require.Len(t, resp.GetWarnings(), 3)
	require.Contains(t, resp.GetWarnings()[0], "column tiny")
	require.Contains(t, resp.GetWarnings()[1], "column st.x")
	require.Contains(t, resp.GetWarnings()[2], "write.summary.partition-limit")
	f, ok := md.CurrentSchema().FindFieldByName("st.x")
	require.True(t, ok)
	w, err := prepare(t, h, c)
	require.NoError(t, err)
	require.EqualValues(t, f.ID, w.GetSchema().GetFields()[4].GetType().GetFields()[0].GetId(), "this catalog numbers anew, and its word counts (I1)")
	require.Equal(t, icebergo.PrimitiveTypes.Int32, f.Type)
	spec := md.PartitionSpec()
	require.Equal(t, "ts_month", spec.Field(0).Name)
	require.Equal(t, "a", spec.Field(1).Name)
	require.Equal(t, 1, md.SortOrder().OrderID())

	_, err = c.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Table: h.ref(), Definition: simple(nil)})
	refused(t, err, sdk.Exists)
	_, err = c.DropTable(t.Context(), &sinkv1.DropTableRequest{Table: h.ref()})
	require.NoError(t, err)
	_, err = c.DropTable(t.Context(), &sinkv1.DropTableRequest{Table: h.ref()})
	refused(t, err, sdk.NotFound)
}

func TestCreateTable_FormatVersions(t *testing.T) {
	old := newHost(t, "v1")
	resp := createTable(t, old, old.client(New()), simple(map[string]string{"format-version": "1"}))
	require.Len(t, resp.GetWarnings(), 1)
	require.Contains(t, resp.GetWarnings()[0], "format version 1: rows are only added")
	require.Equal(t, 1, old.table().Metadata().Version())
	for version, want := range map[string]int{"2": 2, "3": 3} {
		h := newHost(t, "v"+version)
		resp := createTable(t, h, h.client(New()), simple(map[string]string{"format-version": version}))
		require.Equal(t, want, h.table().Metadata().Version())
		require.Empty(t, resp.GetWarnings())
	}
}

func TestCreateTable_RefusesByName(t *testing.T) {
	h := newHost(t, "no")
	c := h.client(New())
	with := func(f ...*planv1.Field) *sinkv1.TableDefinition {
		return &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: f}}
	}
	list := func(n int) *planv1.Field {
		return &planv1.Field{Name: "li", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: make([]*planv1.Field, n)}}
	}
	withDefault := field("d", kInt)
	withDefault.WriteDefault = vInt(5)
	wrongDefault := field("d", kInt)
	wrongDefault.WriteDefault = vStr("x")
	wrong := with(wrongDefault)
	wrong.Properties = map[string]string{"format-version": "3"}
	for want, def := range map[string]*sinkv1.TableDefinition{
		"at least one column":              with(),
		`column "": a column needs a name`: with(field("", kInt)),
		"column a is defined twice":        with(field("a", kInt), field("a", kStr)),
		"column st.x is defined twice": with(&planv1.Field{Name: "st", Type: &planv1.Type{
			Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("x", kInt), field("x", kInt)},
		}}),
		"column st: a struct needs at least one field":     with(field("st", planv1.TypeKind_TYPE_KIND_STRUCT)),
		"column li: a list has 1 inner types, not 2":       with(list(2)),
		"column x: its type cannot be stored":              with(field("x", 0)),
		"column d: decimal(39, 2)":                         with(decimal("d", 39, 2)),
		"column d: decimal(2, 3)":                          with(decimal("d", 2, 3)),
		"column f: fixed[0]":                               with(field("f", kFixed)),
		"column d: a default needs table format version 3": with(withDefault),
		"its default: 'x' is not a value of type int":      wrong,
		"two columns have the path a.b": with(field("a.b", kInt), &planv1.Field{Name: "a", Type: &planv1.Type{
			Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("b", kInt)},
		}}),
		"property format-version=4":                          simple(map[string]string{"format-version": "4"}),
		"property signet.landed.x=1":                         simple(map[string]string{"signet.landed.x": "1"}),
		"property current-snapshot-id=1":                     simple(map[string]string{"current-snapshot-id": "1"}),
		"encrypted tables":                                   simple(map[string]string{"encryption.key-id": "1"}),
		"written as parquet only":                            simple(map[string]string{"write.format.default": "avro"}),
		"write.target-file-size-bytes=-5":                    simple(map[string]string{"write.target-file-size-bytes": "-5"}),
		"commit.retry.num-retries=many: it must be a whole":  simple(map[string]string{"commit.retry.num-retries": "many"}),
		"min-snapshots-to-keep=-1: it must be a positive":    simple(map[string]string{"history.expire.min-snapshots-to-keep": "-1"}),
		"write.delete.mode=fast: it must be copy-on-write":   simple(map[string]string{"write.delete.mode": "fast"}),
		"write.parquet.compression-codec=lzo":                simple(map[string]string{"write.parquet.compression-codec": "lzo"}),
		"write.metadata.metrics.column.id=all":               simple(map[string]string{"write.metadata.metrics.column.id": "all"}),
		"partition by column nope":                           {Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("nope", tIdentity)}},
		"sort by column nope":                                {Schema: simple(nil).GetSchema(), Sort: []*sinkv1.SortClause{{Column: "nope"}}},
		"column name: year cannot be applied to type string": {Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", tYear)}},
	} {
		_, err := c.CreateTable(t.Context(), &sinkv1.CreateTableRequest{Table: h.ref(), Definition: def})
		refused(t, err, sdk.Permanent, want, "c.n.no")
	}
}

func TestCreateAsSelect_CreatesAndAppendsInOneStep(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		h := newHost(t, "ctas"+version)
		c := h.client(New())
		j := newCreateJob(t, h, c, &sinkv1.TableDefinition{
			Schema: &planv1.Schema{Fields: allTypes()}, Partition: []*sinkv1.PartitionClause{clause("ts", tDay), clause("s", tIdentity)},
			Sort: []*sinkv1.SortClause{{Column: "id"}}, Properties: map[string]string{"format-version": version, "owner": "me"},
		})
		require.True(t, j.spec.GetCreatesTable())
		require.Equal(t, h.location()+"/data", j.spec.GetDataLocation())
		resp := j.land(j.write(allRows()...))
		md := h.table().Metadata()
		require.Equal(t, j.spec.GetTableUuid(), md.TableUUID().String())
		require.Equal(t, version, []string{"", "1", "2", "3"}[md.Version()])
		require.Len(t, md.Snapshots(), 1)
		require.EqualValues(t, 1, md.CurrentSnapshot().SequenceNumber)
		require.Equal(t, "me", md.Properties()["owner"])
		require.Equal(t, j.marker()+":"+resp.GetVersion(), md.Properties()[testProperty])
		require.Equal(t, int(j.spec.GetSchemaId()), md.CurrentSchema().ID, "the ids that the files were written with")
		require.Equal(t, int(j.spec.GetSpecId()), md.DefaultPartitionSpec())
		require.Equal(t, 1, md.SortOrder().OrderID())
		require.Equal(t, h.location(), md.Location())
		readBack(t, h, int64(len(allRows())))

		require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, j.commit().GetOutcome())
		next := newJob(t, h, c)
		next.land(next.write(allRows()...))
		readBack(t, h, 2*int64(len(allRows())))
	}
}

func TestCreateAsSelect_WithoutRowsStillCreates(t *testing.T) {
	h := newHost(t, "empty")
	c := h.client(New())
	j := newCreateJob(t, h, c, simple(nil))
	resp := j.land()
	snap := h.table().CurrentSnapshot()
	require.Equal(t, resp.GetVersion(), versionOf(snap.SnapshotID))
	require.Equal(t, "0", snap.Summary.Properties["total-records"])
	readBack(t, h, 0)
	require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, j.commit().GetOutcome())
	next := newJob(t, h, c)
	next.land(next.write(row{vInt(1), vStr("x")}))
	readBack(t, h, 1)
}

func TestCreateAsSelect_Refusals(t *testing.T) {
	h := newHost(t, "taken")
	c := h.client(New())
	j := newCreateJob(t, h, c, simple(nil))
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("x")})))
	createTable(t, h, c, simple(nil))
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "was created by someone else")

	_, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: simple(nil)})
	refused(t, err, sdk.Exists)
	free := newHost(t, "free")
	at := func(location string) error {
		def := simple(nil)
		def.Location = location
		_, err := free.client(New()).PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: free.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_CREATE, Definition: def})
		return err
	}
	refused(t, at("file:///elsewhere"), sdk.Permanent, "file:///elsewhere", free.location())
	require.NoError(t, at(free.location()+"/"))
	require.NoError(t, at(free.path(free.location())))
}

func TestCreateAsSelect_LosesARaceWithAnother(t *testing.T) {
	h := newHost(t, "race")
	c := h.client(New())
	j := newCreateJob(t, h, c, simple(nil))
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("x")})))
	h.before = func(_, _ []byte) error {
		h.before = nil
		createTable(t, h, c, simple(nil))
		return nil
	}
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), resp.GetMessage())
	require.Contains(t, resp.GetMessage(), "was created by someone else")
	require.Nil(t, h.table().CurrentSnapshot())
}
