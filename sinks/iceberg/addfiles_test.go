package iceberg

import (
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

func newAddJob(t testing.TB, h *testHost, c sinkv1.SinkClient, check bool) *job {
	t.Helper()
	j := newJob(t, h, c)
	resp, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{
		Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_APPEND, AddFiles: &sinkv1.AddFiles{CheckDuplicates: check},
	})
	require.NoError(t, err)
	j.spec = resp.GetSpec()
	return j
}

func there(path string, byName bool) *planv1.DataFile {
	return &planv1.DataFile{Path: path, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 1000, ByName: byName}
}

// A file that the table has is refused by the commit itself, however its name is spelt and whoever has added it meanwhile.
func TestAddFiles_Duplicates(t *testing.T) {
	h := newHost(t, "adds")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	first := newAddJob(t, h, c, true)
	require.True(t, first.spec.GetAddsFiles())
	late := newAddJob(t, h, c, true) // planned before the first has landed
	first.land([]*planv1.DataFile{there("file:///raw/a.parquet", false), there("file:///raw/b.parquet", false)})

	require.NoError(t, late.stage([]*planv1.DataFile{there("file:/raw/b.parquet", false), there("file:///raw/c.parquet", false)}))
	resp := late.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "it has the data file file:///raw/b.parquet already")
	require.Len(t, h.table().Metadata().Snapshots(), 1)

	other := newAddJob(t, h, c, true)
	other.land([]*planv1.DataFile{there("file:///raw/c.parquet", false)})
	twice := newAddJob(t, h, c, false)
	twice.land([]*planv1.DataFile{there("file:///raw/a.parquet", false)})
	require.Equal(t, "40", h.table().CurrentSnapshot().Summary.Properties["total-records"])
	require.Empty(t, h.table().Properties()[meta.NameMapping], "the files have field ids")
}

// What was removed from the table may come back.
func TestAddFiles_AfterRemoval(t *testing.T) {
	h := newHost(t, "removed")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	newAddJob(t, h, c, true).land([]*planv1.DataFile{there("file:///raw/a.parquet", false)})
	all := newOverwrite(h, c, &planv1.Scope{Kind: &planv1.Scope_All{All: true}})
	all.land()
	newAddJob(t, h, c, true).land([]*planv1.DataFile{there("file:///raw/a.parquet", false)})
	require.Equal(t, "10", h.table().CurrentSnapshot().Summary.Properties["total-records"])
}

// Files without field ids bring a name mapping with them, in the same commit.
func TestAddFiles_NameMapping(t *testing.T) {
	h := newHost(t, "names")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{
		field("id", planv1.TypeKind_TYPE_KIND_INT64),
		{Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{field("element", planv1.TypeKind_TYPE_KIND_STRING)}}},
	}}})
	same, other := newAddJob(t, h, c, true), newAddJob(t, h, c, true)
	newAddJob(t, h, c, true).land([]*planv1.DataFile{there("file:///raw/a.parquet", true)})
	mapping := h.table().Properties()[meta.NameMapping]
	require.JSONEq(t, `[{"field-id":1,"names":["id"]},{"field-id":2,"names":["l"],"fields":[{"field-id":3,"names":["element"]}]}]`, mapping)
	same.land([]*planv1.DataFile{there("file:///raw/b.parquet", true)})
	require.Equal(t, mapping, h.table().Properties()[meta.NameMapping])

	h.setProperties(meta.NameMapping, `[{"field-id":1,"names":["id","nr"]}]`)
	require.NoError(t, other.stage([]*planv1.DataFile{there("file:///raw/c.parquet", true)}))
	resp := other.commit()
	require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome())
	require.Contains(t, resp.GetMessage(), "schema.name-mapping.default has changed since the files were checked")
	now := newAddJob(t, h, c, true)
	require.Equal(t, []string{"id", "nr"}, now.spec.GetNames()[0].GetNames())
	now.land([]*planv1.DataFile{there("file:///raw/c.parquet", true)})

	h2 := newHost(t, "evolved")
	c2 := h2.client(New())
	createTable(t, h2, c2, simple(nil))
	j := newAddJob(t, h2, c2, true)
	h2.alterSchema(`{"id":1,"name":"key","type":"long","required":false}`, `{"id":2,"name":"name","type":"string","required":false}`)
	require.NoError(t, j.stage([]*planv1.DataFile{there("file:///raw/a.parquet", true)}))
	resp = j.commit()
	require.Contains(t, resp.GetMessage(), "its columns have changed since the files were checked")
}

func TestAddFiles_OnlyAppends(t *testing.T) {
	h := newHost(t, "mode")
	c := h.client(New())
	createTable(t, h, c, simple(nil))
	_, err := c.PrepareWrite(t.Context(), &sinkv1.PrepareWriteRequest{
		Table: h.ref(), Mode: sinkv1.WriteMode_WRITE_MODE_OVERWRITE, Scope: &planv1.Scope{Kind: &planv1.Scope_All{All: true}}, AddFiles: &sinkv1.AddFiles{},
	})
	refused(t, err, sdk.Permanent, "files are added by appends")
}
