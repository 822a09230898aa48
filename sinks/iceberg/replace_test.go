package iceberg

import (
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func newReplace(h *testHost, c sinkv1.SinkClient, def *sinkv1.TableDefinition) *job {
	return h.prepared(c, &sinkv1.PrepareWriteRequest{Mode: sinkv1.WriteMode_WRITE_MODE_REPLACE, Definition: def})
}

func TestReplace_DefinitionAndRowsInOneCommit(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		h, c := partitioned(t, "replace", version)
		h.setProperties("owner", "me", "comment", "old")
		j := newJob(t, h, c)
		old := []*planv1.DataFile{j.in("a", 0, 10), j.in("b", 1, 20)}
		j.land(old)
		h.setRef("v1", "tag")
		before := h.table()

		def := &sinkv1.TableDefinition{
			Schema: &planv1.Schema{Fields: []*planv1.Field{
				field("name", planv1.TypeKind_TYPE_KIND_STRING), field("id", planv1.TypeKind_TYPE_KIND_STRING), field("day", planv1.TypeKind_TYPE_KIND_DATE),
			}},
			Partition:  []*sinkv1.PartitionClause{clause("name", planv1.TransformKind_TRANSFORM_KIND_IDENTITY), clause("day", planv1.TransformKind_TRANSFORM_KIND_MONTH)},
			Sort:       []*sinkv1.SortClause{{Column: "day"}},
			Properties: map[string]string{"comment": "new", "write.parquet.compression-codec": "snappy"},
		}
		re := newReplace(h, c, def)
		ids := map[string]int32{}
		for _, f := range re.spec.GetSchema().GetFields() {
			ids[f.GetName()] = f.GetId()
		}
		require.Equal(t, map[string]int32{"name": 2, "id": 3, "day": 4}, ids, "same name and type: same id; another type: a new one")
		require.EqualValues(t, 1000, re.spec.GetPartition()[0].GetFieldId(), "a partition field that the table had keeps its id")
		require.EqualValues(t, 1001, re.spec.GetPartition()[1].GetFieldId())
		require.Equal(t, "snappy", re.spec.GetFiles().GetCodec())
		require.EqualValues(t, []int32{1, 1, 1}, []int32{re.spec.GetSchemaId(), re.spec.GetSpecId(), re.spec.GetSortOrderId()})

		file := re.plainFile(0, 7)
		file.Partition = []*planv1.Value{vStr("x"), vInt(3)}
		resp := re.land([]*planv1.DataFile{file})
		now := h.table()
		require.Equal(t, before.Metadata().TableUUID(), now.Metadata().TableUUID())
		require.Equal(t, []string{file.GetPath()}, h.livePaths())
		require.EqualValues(t, 1, now.Schema().ID)
		require.EqualValues(t, 1, now.Metadata().DefaultPartitionSpec())
		require.EqualValues(t, 1, now.Metadata().DefaultSortOrder())
		require.Equal(t, map[string]string{"owner": "me", "comment": "new"}, map[string]string{"owner": now.Properties()["owner"], "comment": now.Properties()["comment"]})
		require.EqualValues(t, 1, *now.CurrentSnapshot().SchemaID)
		require.Equal(t, before.CurrentSnapshot().SnapshotID, *now.CurrentSnapshot().ParentSnapshotID, "its history stays")
		h.wantSummary(map[string]string{"operation": "overwrite", "deleted-data-files": "2", "total-records": "7", "added-records": "7"})
		tasks, err := now.Scan(icetable.WithSnapshotID(now.SnapshotByName("v1").SnapshotID)).PlanFiles(t.Context())
		require.NoError(t, err)
		require.Len(t, tasks, 2)
		require.NotEmpty(t, resp.GetVersion())
		require.Equal(t, sinkv1.Outcome_OUTCOME_ALREADY_COMMITTED, re.commit().GetOutcome())

		// Back to the first definition: the ids that there were.
		back := newReplace(h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", planv1.TransformKind_TRANSFORM_KIND_IDENTITY)}})
		require.EqualValues(t, 0, back.spec.GetSpecId(), "a spec that the table has is used again")
		require.EqualValues(t, 5, back.spec.GetSchema().GetFields()[0].GetId(), "id was a string in between")
		back.land()
		require.Empty(t, h.livePaths())
		require.EqualValues(t, 2, h.table().Schema().ID)
		require.EqualValues(t, 0, h.table().Metadata().DefaultPartitionSpec())
		require.EqualValues(t, 0, h.table().Metadata().DefaultSortOrder())
		again := newReplace(h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", planv1.TransformKind_TRANSFORM_KIND_IDENTITY)}})
		require.EqualValues(t, 2, again.spec.GetSchemaId(), "and so is a schema")
		again.land()
		require.EqualValues(t, 2, h.table().Schema().ID)
	})
}

func TestReplace_UpgradesAndNeverDowngrades(t *testing.T) {
	h, c := versioned(t, "upgrade", "2")
	j := newJob(t, h, c)
	j.land([]*planv1.DataFile{j.plainFile(0, 10)})
	def := simple(map[string]string{"format-version": "3"})
	def.Schema.Fields = append(def.Schema.Fields, field("ns", planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS))
	re := newReplace(h, c, def)
	re.land([]*planv1.DataFile{re.plainFile(0, 4)})
	require.Equal(t, 3, h.table().Metadata().Version())
	require.EqualValues(t, 4, h.table().Metadata().NextRowID())
	_, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_REPLACE, Definition: simple(map[string]string{"format-version": "2"})})
	refused(t, err, sdk.Permanent, "no way back")
	elsewhere := simple(nil)
	elsewhere.Location = "file:///elsewhere"
	_, err = c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_REPLACE, Definition: elsewhere})
	refused(t, err, sdk.Permanent, "the table stays at")
}

func TestReplace_Conflicts(t *testing.T) {
	h, c := versioned(t, "conflicts", "2")
	j := newJob(t, h, c)
	j.land([]*planv1.DataFile{j.plainFile(0, 10)})
	re := newReplace(h, c, simple(nil))
	h.alterSchema(`{"id":1,"name":"id","required":false,"type":"long"}`, `{"id":2,"name":"name","required":false,"type":"string"}`, `{"id":3,"name":"more","required":false,"type":"int"}`)
	require.NoError(t, re.stage([]*planv1.DataFile{re.plainFile(0, 1)}))
	re.refused("have been changed since the statement was planned")

	re = newReplace(h, c, simple(nil))
	appendOne(h, c, nil)
	require.NoError(t, re.stage([]*planv1.DataFile{re.plainFile(0, 1)}))
	re.refused("added data file", "run the statement again")
}
