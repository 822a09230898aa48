package iceberg

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// planned is a job that has staged one file with a NULL in name, and none in id.
func planned(t *testing.T, def *sinkv1.TableDefinition) (*testHost, *job) {
	t.Helper()
	h := newHost(t, "evolve")
	c := h.client(impatient())
	createTable(t, h, c, def)
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), null}, row{vInt(2), vStr("b")})))
	return h, j
}

const (
	jsonID   = `{"id":1,"name":"id","required":false,"type":"long"}`
	jsonName = `{"id":2,"name":"name","required":false,"type":"string"}`
)

func TestEvolution_HarmlessChangesLand(t *testing.T) { // C28
	for name, change := range map[string]func(*testHost){
		"column renamed": func(h *testHost) { h.alterSchema(jsonID, `{"id":2,"name":"title","required":false,"type":"string"}`) },
		"optional column": func(h *testHost) {
			h.alterSchema(jsonID, jsonName, `{"id":3,"name":"new","required":false,"type":"int"}`)
		},
		"column dropped": func(h *testHost) { h.alterSchema(jsonID) },
		"optional struct with a required field": func(h *testHost) {
			h.alterSchema(jsonID, jsonName, `{"id":3,"name":"st","required":false,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"int"}]}}`)
		},
		"default spec changed": func(h *testHost) {
			spec := json.RawMessage(`{"spec-id":1,"fields":[{"source-id":1,"field-id":1000,"name":"id_bucket","transform":"bucket[4]"}]}`)
			h.alter(map[string]any{"action": "add-spec", "spec": spec}, map[string]any{"action": "set-default-spec", "spec-id": -1})
		},
		"a column without NULLs made required": func(h *testHost) {
			h.rewriteMetadata(func(m map[string]any) {
				addSchema(m, `[{"id":1,"name":"id","required":true,"type":"long"},`+jsonName+`]`)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, j := planned(t, simple(nil))
			change(h)
			resp := j.commit()
			require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
			readBack(t, h, 2)
			for m, err := range h.table().AllManifests(t.Context()) {
				require.NoError(t, err)
				require.EqualValues(t, 0, m.PartitionSpecID(), "under the spec that the files were written for")
			}
		})
	}
}

// addSchema makes a schema current that no API lets through.
func addSchema(m map[string]any, fields string) {
	m["schemas"] = append(m["schemas"].([]any), map[string]any{"type": "struct", "schema-id": 9, "fields": json.RawMessage(fields)})
	m["current-schema-id"] = 9
	m["last-column-id"] = 9
}

func TestEvolution_RequiredColumnBetweenLoadAndSend(t *testing.T) { // C29
	h, j := planned(t, simple(nil))
	h.before = func(_, _ []byte) error {
		h.before = nil
		h.rewriteMetadata(func(m map[string]any) {
			addSchema(m, `[`+jsonID+`,{"id":2,"name":"name","required":true,"type":"string"}]`)
		})
		return nil
	}
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), "the head has not moved, the schema has")
	require.EqualValues(t, 2, resp.GetAttempts())
}

func TestEvolution_RequiredColumnWithInitialDefault(t *testing.T) {
	h, j := planned(t, simple(map[string]string{"format-version": "3"}))
	h.rewriteMetadata(func(m map[string]any) {
		addSchema(m, `[`+jsonID+`,`+jsonName+`,{"id":3,"name":"must","required":true,"type":"int","initial-default":5,"write-default":5}]`)
	})
	resp, err := h.client(impatient()).Commit(t.Context(), j.request())
	require.NoError(t, err)
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
}

func TestEvolution_StructMadeRequired(t *testing.T) { // V6
	st := &planv1.Field{Name: "s", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("a", kInt), field("b", kStr)}}}
	for nulls, want := range map[int64]sinkv1.Outcome{0: sinkv1.Outcome_OUTCOME_COMMITTED, 1: sinkv1.Outcome_OUTCOME_PERMANENT} {
		h := newHost(t, "struct")
		c := h.client(impatient())
		createTable(t, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{field("id", kLong), st}}})
		j := newJob(t, h, c)
		f := j.plainFile(0, 3)
		three, two := int64(3), int64(2)
		inner := j.spec.GetSchema().GetFields()[1].GetType().GetFields()
		f.Columns = []*planv1.ColumnMetrics{{FieldId: inner[0].GetId(), ValueCount: &three, NullCount: &nulls}, {FieldId: inner[1].GetId(), ValueCount: &three, NullCount: &two}}
		require.NoError(t, j.stage([]*planv1.DataFile{f}))
		h.rewriteMetadata(func(m map[string]any) {
			addSchema(m, fmt.Sprintf(`[%s,{"id":2,"name":"s","required":true,"type":{"type":"struct","fields":[{"id":%d,"name":"a","required":false,"type":"int"},{"id":%d,"name":"b","required":false,"type":"string"}]}}]`,
				jsonID, inner[0].GetId(), inner[1].GetId()))
		})
		resp, err := h.client(impatient()).Commit(t.Context(), j.request())
		require.NoError(t, err)
		require.Equal(t, want, resp.GetOutcome(), resp.GetMessage())
	}
}

func TestEvolution_Version2BecomesVersion3(t *testing.T) { // C31
	h, j := planned(t, simple(nil))
	earlier := newJob(t, h, j.c)
	earlier.land(earlier.write(row{vInt(7), vStr("x")}))
	h.alter(map[string]any{"action": "upgrade-format-version", "format-version": 3})
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_COMMITTED, resp.GetOutcome(), resp.GetMessage())
	snap := h.table().CurrentSnapshot()
	require.EqualValues(t, 0, *snap.FirstRowID)
	require.EqualValues(t, 3, *snap.AddedRows, "the rows that were there get ids too")
	require.EqualValues(t, 3, h.table().Metadata().NextRowID())
	readBack(t, h, 3)
	next := newJob(t, h, h.client(New()))
	next.land(next.write(row{vInt(8), vStr("y")}))
	require.EqualValues(t, 3, *h.table().CurrentSnapshot().FirstRowID)
	readBack(t, h, 4)
}

func TestEvolution_Version1BecomesVersion2(t *testing.T) {
	h := newHost(t, "one")
	s := impatient()
	c := h.client(s)
	createTable(t, h, c, simple(map[string]string{"format-version": "1"}))
	j := newJob(t, h, c)
	require.NoError(t, j.stage(j.write(row{vInt(1), vStr("a")})))
	h.alter(map[string]any{"action": "upgrade-format-version", "format-version": 2})
	resp := j.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "format version was 1")
}
