package iceberg

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

// scanAll plans a scan and joins its messages.
func scanAll(t testing.TB, h *testHost, c sinkv1.SinkClient, version string) (*sinkv1.PlanScanResponse, int, error) {
	t.Helper()
	st, err := c.PlanScan(t.Context(), &sinkv1.PlanScanRequest{Table: h.ref(), Version: version})
	require.NoError(t, err)
	var out *sinkv1.PlanScanResponse
	for n := 0; ; n++ {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return out, n, nil
		}
		if err != nil {
			return nil, n, err
		}
		if out == nil {
			out = m
			continue
		}
		require.Nil(t, m.GetSchema())
		require.LessOrEqual(t, len(m.GetFiles()), scanBatchFiles)
		out.Files = append(out.Files, m.GetFiles()...)
	}
}

func TestPlanScan_ListsTheLiveFiles(t *testing.T) {
	h, c := simpleTable(t, "scan", New())
	empty, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Empty(t, empty.GetVersion())
	require.Empty(t, empty.GetFiles())
	require.Len(t, empty.GetSchema().GetFields(), 2)

	first := newJob(t, h, c)
	firstFiles := first.write(row{vInt(1), vStr("a")})
	v1 := first.land(firstFiles).GetVersion()
	h.alterSchema(jsonID, jsonName, `{"id":3,"name":"new","required":false,"type":"int"}`)
	second := newJob(t, h, c)
	second.land(second.write(row{vInt(2), vStr("b"), vInt(5)}))

	now, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, now.GetFiles(), 2)
	require.Len(t, now.GetSchema().GetFields(), 3)
	require.Equal(t, h.table().Metadata().TableUUID().String(), now.GetTableUuid())
	then, _, err := scanAll(t, h, c, v1)
	require.NoError(t, err)
	require.Equal(t, v1, then.GetVersion())
	require.Len(t, then.GetSchema().GetFields(), 2, "the schema of that snapshot")
	require.Len(t, then.GetFiles(), 1)
	f := then.GetFiles()[0]
	require.Equal(t, firstFiles[0].GetPath(), f.GetUri())
	require.Equal(t, firstFiles[0].GetSizeBytes(), f.GetSizeBytes())
	require.EqualValues(t, 1, f.GetRecordCount())
	require.Equal(t, []int64{4}, f.GetSplitOffsets())
	require.Empty(t, then.GetConstantIds())

	for version, want := range map[string]string{"5": "no snapshot 5", "main": "is not a snapshot id"} {
		_, _, err = scanAll(t, h, c, version)
		refused(t, err, sdk.Permanent, want)
	}
}

func TestPlanScan_SendsBatches(t *testing.T) {
	h, c := simpleTable(t, "batches", New())
	j := newJob(t, h, c)
	var files []*planv1.DataFile
	for i := range 2500 {
		files = append(files, j.plainFile(i, 1))
	}
	j.land(files)
	resp, messages, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), 2500)
	require.Equal(t, 3, messages)
}

func TestPlanScan_LeavesDeletedFilesOut(t *testing.T) {
	h, c := simpleTable(t, "deleted", New())
	j := newJob(t, h, c)
	a, b := j.write(row{vInt(1), vStr("a")}), j.write(row{vInt(2), vStr("b")})
	j.land(append(a, b...))
	tx := h.table().NewTransaction()
	require.NoError(t, tx.Delete(t.Context(), icebergo.EqualTo(icebergo.Reference("id"), int64(1)), nil))
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	resp, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), 1)
	require.Equal(t, b[0].GetPath(), resp.GetFiles()[0].GetUri())
	next := newJob(t, h, c) // EXISTING and DELETED entries in the parent's manifests
	next.land(next.write(row{vInt(3), vStr("c")}))
	readBack(t, h, 2)
	require.Equal(t, "2", h.table().CurrentSnapshot().Summary.Properties["total-records"])
}

func TestPlanScan_ConstantsOfFilesThatLackTheColumn(t *testing.T) {
	h := newHost(t, "hive")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", tIdentity)}})
	j := newJob(t, h, c)
	files := j.write(row{vInt(1), vStr("a")}, row{vInt(2), null}, row{vInt(3), vStr("")})
	withColumn, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Empty(t, withColumn.GetConstantIds())
	files[0].Columns = files[0].Columns[:1] // as add_files of a Hive directory leaves it
	j.land(files)
	resp, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Equal(t, []int32{2}, resp.GetConstantIds())
	got := map[string]*planv1.Value{}
	for _, f := range resp.GetFiles() {
		require.Len(t, f.GetConstants(), 1)
		got[f.GetUri()] = f.GetConstants()[0]
	}
	require.Equal(t, "a", got[files[0].GetPath()].GetString_())
	require.Nil(t, got[files[1].GetPath()].GetKind())
	require.NotNil(t, got[files[2].GetPath()].GetKind())

	// A file of another spec has the column in the file or not at all; it has no constant.
	spec := json.RawMessage(`{"spec-id":1,"fields":[]}`)
	h.alter(map[string]any{"action": "add-spec", "spec": spec}, map[string]any{"action": "set-default-spec", "spec-id": -1})
	next := newJob(t, h, c)
	next.land(next.write(row{vInt(4), vStr("d")}))
	resp, _, err = scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), len(files)+1)
	for _, f := range resp.GetFiles() {
		require.Len(t, f.GetConstants(), 1, "for a file that holds the column it is not used")
	}
}

func TestPlanScan_RefusesByName(t *testing.T) {
	h := newHost(t, "none")
	c := h.client(New())
	_, _, err := scanAll(t, h, c, "")
	refused(t, err, sdk.NotFound)
	for want, change := range map[string]func(map[string]any){
		"column must is nested and has an initial default": func(m map[string]any) {
			addSchema(m, `[`+jsonID+`,`+jsonName+`,{"id":3,"name":"must","required":true,"type":{"type":"struct","fields":[]},"initial-default":{}}]`)
		},
		"column name: type variant":            func(m map[string]any) { setColumnType(m, "variant") },
		"column name: type geometry":           func(m map[string]any) { setColumnType(m, "geometry") },
		"property schema.name-mapping.default": func(m map[string]any) { m["properties"] = map[string]any{"schema.name-mapping.default": "{"} },
		"it is encrypted":                      func(m map[string]any) { m["encryption-keys"] = []any{map[string]any{"key-id": "x"}} },
		"column name: type unknown":            func(m map[string]any) { setColumnType(m, "unknown") },
	} {
		h := newHost(t, "odd")
		c := h.client(New())
		createTable(t, h, c, simple(nil))
		h.rewriteMetadata(change)
		err := New().planScan(t.Context(), &rawHost{t: t, h: h}, &sinkv1.PlanScanRequest{Table: h.ref()}, func(*sinkv1.PlanScanResponse) error { return nil })
		refused(t, err, sdk.Permanent, want)
	}
}

func TestPlanScan_DamagedFilesAreNamed(t *testing.T) {
	for _, what := range []string{"list", "manifest"} {
		h, c := simpleTable(t, "damaged", New())
		j := newJob(t, h, c)
		j.land(j.write(row{vInt(1), vStr("a")}))
		uri := h.table().CurrentSnapshot().ManifestList
		if what == "manifest" {
			uri = h.readList(uri)[0].Path
		}
		raw, err := os.ReadFile(h.path(uri))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(h.path(uri), raw[:len(raw)-5], 0o600))
		_, _, err = scanAll(t, h, h.client(New()), "")
		refused(t, err, sdk.Permanent, uri, "damaged Avro data")
		require.NoError(t, os.Remove(h.path(uri)))
		_, _, err = scanAll(t, h, h.client(New()), "")
		refused(t, err, sdk.NotFound, uri)
		if what == "list" {
			next := newJob(t, h, h.client(New()))
			require.NoError(t, next.stage(next.write(row{vInt(2), vStr("b")})))
			resp := next.commit()
			require.Equal(t, sinkv1.Outcome_OUTCOME_PERMANENT, resp.GetOutcome(), "nothing may be committed on top")
			require.Contains(t, resp.GetMessage(), uri)
		}
	}
}

func TestDescribeTable_SaysWhatIsThere(t *testing.T) {
	h := newHost(t, "described")
	c := h.client(New())
	_, err := c.DescribeTable(t.Context(), &sinkv1.DescribeTableRequest{Table: h.ref()})
	refused(t, err, sdk.NotFound, "c.n.described")
	createTable(t, h, c, &sinkv1.TableDefinition{
		Schema: &planv1.Schema{Fields: allTypes()}, Partition: []*sinkv1.PartitionClause{clause("ts", tHour)}, Sort: []*sinkv1.SortClause{{Column: "id"}}, Properties: map[string]string{"owner": "me"},
	})
	j := newJob(t, h, c)
	version := j.land(j.write(allRows()...)).GetVersion()
	d, err := c.DescribeTable(t.Context(), &sinkv1.DescribeTableRequest{Table: h.ref()})
	require.NoError(t, err)
	require.Len(t, d.GetSchema().GetFields(), len(allTypes()))
	for i, f := range allTypes() {
		require.Equal(t, f.GetType().String(), d.GetSchema().GetFields()[i].GetType().String())
	}
	require.Equal(t, "ts_hour", d.GetPartition()[0].GetName())
	require.Len(t, d.GetSort(), 1)
	require.Equal(t, map[string]string{"owner": "me"}, d.GetProperties())
	require.Equal(t, version, d.GetVersion())
	require.Equal(t, h.location(), d.GetLocation())
	require.EqualValues(t, 2, d.GetFormatVersion())
}

func TestLookup_OfNothing(t *testing.T) {
	h, c := simpleTable(t, "lookup", New())
	resp, err := c.Lookup(t.Context(), &sinkv1.LookupRequest{Table: h.ref(), Marker: "m", MarkerProperty: testProperty})
	require.NoError(t, err)
	require.False(t, resp.GetFound())
	require.NoError(t, h.cat.DropTable(t.Context(), h.ident))
	resp, err = c.Lookup(t.Context(), &sinkv1.LookupRequest{Table: h.ref(), Marker: "m", MarkerProperty: testProperty})
	require.NoError(t, err)
	require.False(t, resp.GetFound())
}

// Of which files every row satisfies the filter: by bounds, partitions and NULL counts, and never where somebody could not know.
func TestPlanScan_FilesThatMatchWholly(t *testing.T) {
	h := newHost(t, "matched")
	c := h.client(New())
	createTable(t, h, c, &sinkv1.TableDefinition{Schema: simple(nil).GetSchema(), Partition: []*sinkv1.PartitionClause{clause("name", tIdentity)}})
	j := newJob(t, h, c)
	files := j.write(row{vInt(1), vStr("a")}, row{vInt(5), vStr("a")}, row{vInt(7), vStr("b")}, row{vInt(9), null}, row{null, vStr("c")}, row{vInt(8), vStr("c")})
	files[1].Columns = nil // nothing is known but its partition
	j.land(files)
	fieldOf := map[string]int32{}
	for _, f := range j.spec.GetSchema().GetFields() {
		fieldOf[f.GetName()] = f.GetId()
	}
	is := func(column string, op planv1.CompareOp, v *planv1.Value) *planv1.Predicate {
		return scopeFilter(fieldOf[column], op, v).GetFilter()
	}
	isNull := func(column string) *planv1.Predicate {
		return &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: fieldOf[column]}}}
	}
	not := func(p *planv1.Predicate) *planv1.Predicate {
		return &planv1.Predicate{Kind: &planv1.Predicate_Not{Not: p}}
	}
	const ge, lt, eq, ne = planv1.CompareOp_COMPARE_OP_GE, planv1.CompareOp_COMPARE_OP_LT, planv1.CompareOp_COMPARE_OP_EQ, planv1.CompareOp_COMPARE_OP_NE
	for name, tc := range map[string]struct {
		filter        *planv1.Predicate
		listed, whole string // partitions
	}{
		"no filter":             {nil, "abcn", "abcn"},
		"a partition":           {is("name", eq, vStr("b")), "b", "b"},
		"all but one":           {is("name", ne, vStr("b")), "ac", "ac"},
		"not one":               {not(is("name", eq, vStr("b"))), "ac", "ac"},
		"the NULL partition":    {isNull("name"), "n", "n"},
		"all but NULL":          {not(isNull("name")), "abc", "abc"},
		"by bounds":             {is("id", ge, vInt(2)), "abcn", "n"},
		"by bounds of one file": {is("id", lt, vInt(6)), "ab", "a"},
		"NULL is not less":      {not(is("id", ge, vInt(9))), "abc", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := c.PlanScan(t.Context(), &sinkv1.PlanScanRequest{Table: h.ref(), Filter: tc.filter})
			require.NoError(t, err)
			listed, whole := "", ""
			for {
				m, err := st.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				for _, f := range m.GetFiles() {
					i := slices.IndexFunc(files, func(d *planv1.DataFile) bool { return d.GetPath() == f.GetUri() })
					name := "n"
					if v := files[i].GetPartition()[0].GetString_(); v != "" {
						name = v
					}
					if listed += name; f.GetMatched() {
						whole += name
					}
				}
			}
			require.Equal(t, []string{tc.listed, tc.whole}, []string{sorted(listed), sorted(whole)})
		})
	}
}

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}
