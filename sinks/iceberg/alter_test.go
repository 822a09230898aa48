package iceberg

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

func changes(t testing.TB, texts ...string) []*sinkv1.Change {
	t.Helper()
	out := make([]*sinkv1.Change, len(texts))
	for i, text := range texts {
		out[i] = &sinkv1.Change{}
		require.NoError(t, protojson.Unmarshal([]byte(text), out[i]), text)
	}
	return out
}

// altered is a table of every kind of column, with a sort order, partitioned by day.
type altered struct {
	*testHost
	c sinkv1.SinkClient
}

func newAltered(t testing.TB, version string) *altered {
	t.Helper()
	h := newHost(t, "alter")
	s := impatient()
	c := h.client(s)
	st := &planv1.Field{Name: "s", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("a", kInt), field("b", kStr)}}}
	list := &planv1.Field{Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{field("element", kInt)}}}
	dec := field("d", planv1.TypeKind_TYPE_KIND_DECIMAL)
	dec.Type.Precision, dec.Type.Scale = 9, 2
	createTable(t, h, c, &sinkv1.TableDefinition{
		Schema:     &planv1.Schema{Fields: []*planv1.Field{required(field("id", kInt)), field("name", kStr), field("ts", kTSTZ), st, list, dec, field("f", planv1.TypeKind_TYPE_KIND_FLOAT32)}},
		Partition:  []*sinkv1.PartitionClause{clause("ts", tDay)},
		Sort:       []*sinkv1.SortClause{{Column: "name"}},
		Properties: map[string]string{"format-version": version, "owner": "me"},
	})
	return &altered{h, c}
}

func (a *altered) send(texts ...string) (*sinkv1.AlterTableResponse, error) {
	return a.c.AlterTable(a.t.Context(), &sinkv1.AlterTableRequest{Table: a.ref(), Changes: changes(a.t, texts...)})
}

func (a *altered) must(texts ...string) *sinkv1.AlterTableResponse {
	a.t.Helper()
	resp, err := a.send(texts...)
	require.NoError(a.t, err)
	return resp
}

// schemaText is the current schema in short: names with ids and types.
func (a *altered) schemaText() string {
	return strings.Join(strings.Fields(strings.NewReplacer("\n", " ", "\t", "").Replace(a.table().Schema().String())), " ")
}

// land adds a file whose partition is NULL, and gives the snapshot.
func (a *altered) land() string {
	a.t.Helper()
	j := newJob(a.t, a.testHost, a.c)
	f := j.plainFile(0, 1)
	f.Partition = nil
	for range j.spec.GetPartition() {
		f.Partition = append(f.Partition, &planv1.Value{})
	}
	return j.land([]*planv1.DataFile{f}).GetVersion()
}

func addText(name, kind string, more ...string) string {
	return fmt.Sprintf(`{"addColumn":{"field":{"name":%q,"type":{"kind":"TYPE_KIND_%s"}}%s}}`, name, kind, strings.Join(append([]string{""}, more...), ","))
}

func TestAlter_Columns(t *testing.T) {
	a := newAltered(t, "2")
	last := a.table().Metadata().LastColumnID()
	a.must(addText("new", "INT64", `"after":"id"`), addText("first", "BOOLEAN", `"first":true`))
	text := a.schemaText()
	require.Contains(t, text, fmt.Sprintf("%d: first: optional boolean 1: id: required int %d: new: optional long 2: name", last+2, last+1))

	a.must(`{"dropColumn":{"path":["new"]}}`)
	a.must(addText("new", "STRING"))
	require.Contains(t, a.schemaText(), fmt.Sprintf("%d: new: optional string", last+3), "ids are never used again")

	a.must(`{"addColumn":{"parent":["s"],"field":{"name":"c","doc":"inner","type":{"kind":"TYPE_KIND_STRUCT","fields":[{"name":"x","type":{"kind":"TYPE_KIND_INT32"}}]}},"first":true}}`)
	f, ok := a.table().Schema().FindFieldByName("s.c.x")
	require.True(t, ok)
	require.Equal(t, last+5, f.ID, "the struct before what it holds")
	a.must(`{"renameColumn":{"path":["S","B"],"name":"bee"}}`) // names without regard to case
	_, ok = a.table().Schema().FindFieldByName("s.bee")
	require.True(t, ok)

	a.must(`{"changeColumn":{"path":["id"],"type":{"kind":"TYPE_KIND_INT64"},"doc":"key","optional":true}}`,
		`{"changeColumn":{"path":["f"],"type":{"kind":"TYPE_KIND_FLOAT64"}}}`,
		`{"changeColumn":{"path":["d"],"type":{"kind":"TYPE_KIND_DECIMAL","precision":12,"scale":2}}}`,
		`{"changeColumn":{"path":["l","element"],"type":{"kind":"TYPE_KIND_INT64"}}}`,
		`{"changeColumn":{"path":["s","a"],"type":{"kind":"TYPE_KIND_INT64"},"after":"bee"}}`)
	text = a.schemaText()
	for _, want := range []string{"1: id: optional long (key)", "f: optional double", "d: optional decimal(12, 2)", "l: optional list<long>"} {
		require.Contains(t, text, want)
	}
}

func TestAlter_SchemasAreNotRepeated(t *testing.T) {
	a := newAltered(t, "2")
	first := a.table().Schema().ID
	a.must(`{"changeColumn":{"path":["name"],"doc":"x"}}`)
	require.NotEqual(t, first, a.table().Schema().ID)
	a.must(`{"changeColumn":{"path":["name"],"doc":""}}`)
	require.Equal(t, first, a.table().Schema().ID)
	require.Len(t, a.table().Metadata().Schemas(), 2)

	before, requests := a.table().MetadataLocation(), a.requests
	for _, same := range []string{
		`{"changeColumn":{"path":["name"],"doc":""}}`, `{"setProperties":{"properties":{"owner":"me"}}}`, `{"dropColumn":{"path":["nope"],"ifExists":true}}`,
		addText("name", "STRING", `"ifNotExists":true`), `{"setProperties":{"properties":{"format-version":"2"}}}`, `{"unsetProperties":{"names":["nope"],"ifExists":true}}`,
		`{"setSort":{"sort":[{"column":"name"}]}}`, `{"dropRef":{"name":"nope","ifExists":true}}`,
	} {
		require.True(t, a.must(same).GetUnchanged(), same)
	}
	require.Equal(t, before, a.table().MetadataLocation())
	require.Equal(t, requests, a.requests, "nothing was sent")
}

func TestAlter_RefusesByName(t *testing.T) {
	a := newAltered(t, "2")
	a.land()
	for change, want := range map[string]string{
		addText("name", "STRING"):                                 "column name exists already",
		addText("NAME", "STRING"):                                 "differs in case only",
		addText("", "STRING"):                                     "a column needs a name",
		addText("ns", "TIMESTAMP_NANOS"):                          "needs table format version 3",
		addText("ts_day", "INT32"):                                "a partition field is named ts_day already",
		addText("s.a", "INT32"):                                   "two columns would have the path s.a",
		addText("x", "INT32", `"after":"nope"`):                   "no column nope",
		addText("x", "INT32", `"parent":["name"]`):                "only a struct takes fields",
		addText("x", "INT32", `"parent":["nope"]`):                "no column nope",
		addText("x", "INT32", `"initialDefault":{"integer":"1"}`): "a default needs table format version 3",
		`{"addColumn":{"field":{"name":"x","required":true,"type":{"kind":"TYPE_KIND_INT32"}}}}`: "cannot be added as NOT NULL",
		`{"dropColumn":{"path":["nope"]}}`:                                                                    "no column nope",
		`{"dropColumn":{"path":["ts"]}}`:                                                                      "source of partition field ts_day", // C27
		`{"dropColumn":{"path":["name"]}}`:                                                                    "sort order uses column name",
		`{"dropColumn":{"path":["l","element"]}}`:                                                             "element of a list",
		`{"renameColumn":{"path":["id"],"name":"name"}}`:                                                      "there is a column name already",
		`{"renameColumn":{"path":["id"],"name":"Name"}}`:                                                      "differs in case only",
		`{"renameColumn":{"path":["nope"],"name":"x"}}`:                                                       "no column nope",
		`{"changeColumn":{"path":["id"],"type":{"kind":"TYPE_KIND_STRING"}}}`:                                 "int cannot become string",
		`{"changeColumn":{"path":["name"],"type":{"kind":"TYPE_KIND_INT64"}}}`:                                "string cannot become long",
		`{"changeColumn":{"path":["d"],"type":{"kind":"TYPE_KIND_DECIMAL","precision":12,"scale":3}}}`:        "cannot become decimal(12, 3)",
		`{"changeColumn":{"path":["d"],"type":{"kind":"TYPE_KIND_DECIMAL","precision":8,"scale":2}}}`:         "cannot become decimal(8, 2)",
		`{"changeColumn":{"path":["s"],"type":{"kind":"TYPE_KIND_INT64"}}}`:                                   "cannot be changed as a whole",
		`{"changeColumn":{"path":["name"],"required":true}}`:                                                  "rows that are there may hold NULL",
		`{"changeColumn":{"path":["name"],"writeDefault":{"string":"x"}}}`:                                    "a default needs table format version 3",
		`{"addPartitionField":{"column":"ts","transform":"TRANSFORM_KIND_DAY"}}`:                              "is there already",
		`{"addPartitionField":{"column":"name","transform":"TRANSFORM_KIND_YEAR"}}`:                           "year cannot be applied to type string",
		`{"addPartitionField":{"column":"l","transform":"TRANSFORM_KIND_IDENTITY"}}`:                          "identity cannot be applied",
		`{"addPartitionField":{"column":"l.element","transform":"TRANSFORM_KIND_IDENTITY"}}`:                  "inside a list or map",
		`{"addPartitionField":{"column":"name","transform":"TRANSFORM_KIND_BUCKET","param":4,"name":"id"}}`:   "is a column of the table",
		`{"addPartitionField":{"column":"id","transform":"TRANSFORM_KIND_BUCKET","param":4,"name":"ts_day"}}`: `named "ts_day" already`,
		`{"dropPartitionField":{"name":"nope"}}`:                                                              "not partitioned by nope; its partition fields are ts_day",
		`{"setSort":{"sort":[{"column":"nope"}]}}`:                                                            "no column nope",
		`{"setProperties":{"properties":{"signet.landed.test":"x"}}}`:                                         "reserved",
		`{"setProperties":{"properties":{"current-snapshot-id":"1"}}}`:                                        "reserved by Iceberg",
		`{"setProperties":{"properties":{"write.format.default":"orc"}}}`:                                     "parquet only",
		`{"setProperties":{"properties":{"location":"file:///x"}}}`:                                           "stays where it is",
		`{"setProperties":{"properties":{"format-version":"1"}}}`:                                             "no way back",
		`{"setProperties":{"properties":{"format-version":"4"}}}`:                                             "versions 1 to 3",
		`{"unsetProperties":{"names":["signet.landed.test"]}}`:                                                "Signet's record",
		`{"unsetProperties":{"names":["nope"]}}`:                                                              "no property nope",
		`{"setRef":{"name":"b","snapshot":"7"}}`:                                                              "no snapshot 7",
		`{"setRef":{"name":"main"}}`:                                                                          "branch main exists already",
		`{"setRef":{"name":"main","tag":true,"orReplace":true}}`:                                              "main is a branch",
		`{"setRef":{"name":"b","from":"nope"}}`:                                                               "no branch or tag nope",
		`{"setRef":{"name":"b","orReplace":true,"mustExist":true}}`:                                           "no branch or tag b",
		`{"setRef":{"name":"g","tag":true,"minSnapshotsToKeep":1}}`:                                           "only branches retain",
		`{"dropRef":{"name":"main"}}`:                                                                         "main is the table",
		`{"dropRef":{"name":"nope"}}`:                                                                         "no branch or tag nope",
		`{"setSnapshot":{"snapshot":"7"}}`:                                                                    "no snapshot 7",
		`{"setSnapshot":{"beforeMillis":"1"}}`:                                                                "no snapshot that is older",
		`{"cherryPick":{"wapId":"nope"}}`:                                                                     `no snapshot with the wap.id "nope"`,
		`{"expireSnapshots":{"retainLast":0}}`:                                                                "retain_last must be at least 1",
	} {
		before := a.table().MetadataLocation()
		_, err := a.send(change)
		refused(t, err, sdk.Permanent, want)
		require.Equal(t, before, a.table().MetadataLocation(), change)
	}
	_, err := a.send()
	refused(t, err, sdk.Permanent, "nothing to change")
	_, err = a.c.AlterTable(t.Context(), &sinkv1.AlterTableRequest{Table: &sinkv1.TableRef{Catalog: testCatalog, Namespace: []string{"n"}, Name: a.name}, Changes: changes(t, addText("one", "INT32"), addText("name", "INT32"))})
	refused(t, err, sdk.Permanent, "column name exists already")
	_, ok := a.table().Schema().FindFieldByName("one")
	require.False(t, ok, "all changes or none")
}

func (a *altered) specText() string {
	spec := a.table().Spec()
	var out []string
	for _, f := range spec.Fields() {
		out = append(out, fmt.Sprintf("%d:%s=%s", f.FieldID, f.Name, f.Transform))
	}
	return strings.Join(out, " ")
}

func TestAlter_PartitionFields(t *testing.T) {
	a := newAltered(t, "2")
	require.Equal(t, "1000:ts_day=day", a.specText())
	first := a.table().Spec()
	id := first.ID()
	a.must(`{"addPartitionField":{"column":"id","transform":"TRANSFORM_KIND_BUCKET","param":4}}`, `{"addPartitionField":{"column":"s.b","transform":"TRANSFORM_KIND_TRUNCATE","param":2,"name":"pre"}}`)
	require.Equal(t, "1000:ts_day=day 1001:id_bucket_4=bucket[4] 1002:pre=truncate[2]", a.specText())
	a.must(`{"dropPartitionField":{"name":"id_bucket_4"}}`, `{"dropPartitionField":{"term":{"column":"s.b","transform":"TRANSFORM_KIND_TRUNCATE","param":2}}}`)
	require.Equal(t, "1000:ts_day=day", a.specText())
	again := a.table().Spec()
	require.Equal(t, id, again.ID(), "a former spec is used again")
	a.must(`{"replacePartitionField":{"drop":{"term":{"column":"ts","transform":"TRANSFORM_KIND_DAY"}},"add":{"column":"ts","transform":"TRANSFORM_KIND_MONTH"}}}`)
	require.Equal(t, "1003:ts_month=month", a.specText())
	a.must(`{"addPartitionField":{"column":"id","transform":"TRANSFORM_KIND_BUCKET","param":4}}`)
	require.Equal(t, "1003:ts_month=month 1001:id_bucket_4=bucket[4]", a.specText(), "a field that was there has its id again")
	a.must(`{"dropPartitionField":{"name":"ts_month"}}`, `{"dropColumn":{"path":["ts"]}}`)
	require.Equal(t, "1001:id_bucket_4=bucket[4]", a.specText())
	j := newJob(t, a.testHost, a.c)
	require.Equal(t, int32(1001), j.spec.GetPartition()[0].GetFieldId())
}

func TestAlter_PartitionFieldsOfVersion1(t *testing.T) {
	a := newAltered(t, "1")
	a.must(`{"dropPartitionField":{"name":"ts_day"}}`, `{"addPartitionField":{"column":"id","transform":"TRANSFORM_KIND_IDENTITY"}}`)
	require.Equal(t, "1000:ts_day=void 1001:id=identity", a.specText(), "its place is its id")
	a.must(`{"setProperties":{"properties":{"format-version":"2"}}}`)
	require.Equal(t, 2, a.table().Metadata().Version())
	a.must(`{"addPartitionField":{"column":"ts","transform":"TRANSFORM_KIND_DAY"}}`)
	require.Equal(t, "1000:ts_day_1000=void 1001:id=identity 1002:ts_day=day", a.specText())
}

func TestAlter_SortOrderAndProperties(t *testing.T) {
	a := newAltered(t, "2")
	a.must(`{"setSort":{"sort":[{"column":"id","descending":true},{"column":"s.b","transform":"TRANSFORM_KIND_TRUNCATE","param":3,"nullsFirst":true}]}}`,
		`{"setProperties":{"properties":{"write.distribution-mode":"range","owner":"you"}}}`)
	order := a.table().SortOrder()
	require.Equal(t, 2, order.OrderID())
	require.Equal(t, 2, order.Len())
	require.Equal(t, "you", a.table().Properties()["owner"])
	a.must(`{"setSort":{}}`, `{"dropColumn":{"path":["name"]}}`, `{"unsetProperties":{"names":["owner"]}}`)
	require.Equal(t, 0, a.table().Metadata().DefaultSortOrder())
	require.NotContains(t, a.table().Properties(), "owner")
}

func TestAlter_Version3AndDefaults(t *testing.T) {
	a := newAltered(t, "2")
	a.land()
	a.must(`{"setProperties":{"properties":{"format-version":"3"}}}`,
		`{"addColumn":{"field":{"name":"n","required":true,"type":{"kind":"TYPE_KIND_INT32"},"writeDefault":{"integer":"7"}},"initialDefault":{"integer":"7"}}}`,
		`{"addColumn":{"field":{"name":"day","type":{"kind":"TYPE_KIND_DATE"},"writeDefault":{"string":"2026-01-02"}},"initialDefault":{"string":"2026-01-02"}}}`,
		`{"addColumn":{"field":{"name":"at","type":{"kind":"TYPE_KIND_TIMESTAMPTZ_MICROS"},"writeDefault":{"string":"2026-01-02 03:04:05+01"}},"initialDefault":{"string":"2026-01-02 03:04:05+01"}}}`,
		`{"addColumn":{"field":{"name":"price","type":{"kind":"TYPE_KIND_DECIMAL","precision":9,"scale":2},"writeDefault":{"decimal":{"unscaled":"/2o=","scale":2}}}}}`)
	require.Equal(t, 3, a.table().Metadata().Version())
	raw, err := json.Marshal(a.table().Schema())
	require.NoError(t, err)
	for _, want := range []string{
		`"name":"n","required":true,"initial-default":7,"write-default":7`, `"initial-default":"2026-01-02"`, `"initial-default":"2026-01-02T02:04:05`,
		`"write-default":"-1.50"`,
	} {
		require.Contains(t, string(raw), want)
	}
	a.must(`{"changeColumn":{"path":["n"],"writeDefault":{"integer":"8"}}}`, `{"changeColumn":{"path":["day"],"dropDefault":true}}`)
	raw, err = json.Marshal(a.table().Schema())
	require.NoError(t, err)
	require.Contains(t, string(raw), `"initial-default":7,"write-default":8`)
	require.NotContains(t, string(raw), `"write-default":"2026-01-02"`)
	for change, want := range map[string]string{
		`{"changeColumn":{"path":["n"],"writeDefault":{"integer":"3000000000"}}}`:                      "3000000000 is not a value of type int",
		`{"changeColumn":{"path":["n"],"writeDefault":{"string":"x"}}}`:                                "'x' is not a value of type int",
		`{"changeColumn":{"path":["day"],"writeDefault":{"string":"soon"}}}`:                           "'soon' is not a value of type date",
		`{"changeColumn":{"path":["price"],"writeDefault":{"decimal":{"unscaled":"Aw==","scale":3}}}}`: "0.003 is not a value of type decimal(9, 2)",
		`{"changeColumn":{"path":["s"],"writeDefault":{"integer":"1"}}}`:                               "nested column",
	} {
		_, err := a.send(change)
		refused(t, err, sdk.Permanent, want)
	}
}

func TestAlter_RequiredColumnsOfAnEmptyTable(t *testing.T) {
	a := newAltered(t, "2")
	a.must(`{"addColumn":{"field":{"name":"x","required":true,"type":{"kind":"TYPE_KIND_INT32"}}}}`, `{"changeColumn":{"path":["name"],"required":true}}`)
	require.Contains(t, a.schemaText(), "name: required string")

	a = newAltered(t, "2")
	a.before = func([]byte, []byte) error { // rows come in between
		a.before = nil
		a.land()
		return nil
	}
	_, err := a.send(`{"changeColumn":{"path":["name"],"required":true}}`)
	refused(t, err, sdk.Permanent, "rows that are there may hold NULL")
}

func TestAlter_References(t *testing.T) {
	a := newAltered(t, "2")
	_, err := a.send(`{"setRef":{"name":"b"}}`)
	refused(t, err, sdk.Permanent, "no snapshot yet")
	one := a.land()
	a.must(`{"setRef":{"name":"g","tag":true,"maxRefAgeMillis":"1000"}}`, `{"setRef":{"name":"b","minSnapshotsToKeep":3,"maxSnapshotAgeMillis":"5"}}`)
	two := a.land()
	refs := map[string]icetable.SnapshotRef{}
	read := func() {
		clear(refs)
		for name, r := range a.table().Metadata().Refs() {
			refs[name] = r
		}
	}
	read()
	require.Equal(t, one, versionOf(refs["g"].SnapshotID))
	require.EqualValues(t, 1000, *refs["g"].MaxRefAgeMs)
	require.EqualValues(t, 3, *refs["b"].MinSnapshotsToKeep)

	resp := a.must(`{"setRef":{"name":"b","from":"main","fastForward":true}}`)
	require.Equal(t, map[string]string{"branch_updated": "b", "previous_ref": one, "updated_ref": two}, resp.GetValues())
	read()
	require.Equal(t, two, versionOf(refs["b"].SnapshotID))
	require.EqualValues(t, 3, *refs["b"].MinSnapshotsToKeep, "what it keeps stays")
	a.must(`{"setRef":{"name":"b","orReplace":true,"snapshot":"` + one + `"}}`)
	_, err = a.send(`{"setRef":{"name":"main","from":"b","fastForward":true}}`)
	refused(t, err, sdk.Permanent, "no ancestor")

	resp = a.must(`{"setSnapshot":{"snapshot":"` + one + `","ancestor":true}}`)
	require.Equal(t, map[string]string{"previous_snapshot_id": two, "current_snapshot_id": one}, resp.GetValues())
	require.Equal(t, one, versionOf(a.table().CurrentSnapshot().SnapshotID))
	_, err = a.send(`{"setSnapshot":{"snapshot":"` + two + `","ancestor":true}}`)
	refused(t, err, sdk.Permanent, "no ancestor")
	a.must(`{"setSnapshot":{"snapshot":"` + two + `"}}`)
	a.must(`{"setSnapshot":{"ref":"g"}}`)
	require.Equal(t, one, versionOf(a.table().CurrentSnapshot().SnapshotID))
	a.must(`{"dropRef":{"name":"b"}}`, `{"dropRef":{"name":"g","tag":true}}`)
	read()
	require.Len(t, refs, 1)
}

// A request whose answer is lost has landed, or is sent again, or was overtaken: never made twice, never reported wrongly.
func TestAlter_LostAnswers(t *testing.T) {
	lost := func() error { return errors.New("cut") }
	once := func(h *testHost, f func() error) func() error {
		return func() error { h.after = nil; return f() }
	}
	t.Run("it landed", func(t *testing.T) {
		a := newAltered(t, "2")
		a.after = once(a.testHost, lost)
		require.False(t, a.must(addText("x", "INT32")).GetUnchanged())
		require.Equal(t, 1, a.requests)
		require.Equal(t, 1, strings.Count(a.schemaText(), ": x: "))
	})
	t.Run("it did not arrive", func(t *testing.T) {
		a := newAltered(t, "2")
		a.before = func([]byte, []byte) error { a.before = nil; return lost() }
		a.must(addText("x", "INT32"))
		require.Equal(t, 2, a.requests)
	})
	t.Run("it landed, and somebody went on from there", func(t *testing.T) {
		a := newAltered(t, "2")
		a.after = once(a.testHost, func() error {
			a.must(`{"renameColumn":{"path":["name"],"name":"title"}}`)
			return lost()
		})
		require.True(t, a.must(addText("x", "INT32")).GetUnchanged())
		require.Equal(t, 1, strings.Count(a.schemaText(), ": x: "))
	})
	t.Run("nobody answers", func(t *testing.T) {
		a := newAltered(t, "2")
		a.before = func([]byte, []byte) error { return lost() }
		_, err := a.send(addText("x", "INT32"))
		refused(t, err, sdk.Unknown, "no definite answer")
	})
}

func TestAlter_ConflictsArePlannedAnew(t *testing.T) {
	a := newAltered(t, "2")
	a.before = func([]byte, []byte) error {
		a.before = nil
		a.must(addText("other", "INT32"))
		return nil
	}
	a.must(addText("mine", "INT32"))
	text := a.schemaText()
	require.Contains(t, text, "other: optional int")
	require.Contains(t, text, "mine: optional int")
	a.before = func([]byte, []byte) error { return sdk.Refuse(sdk.Conflict, "moved") }
	_, err := a.c.AlterTable(t.Context(), &sinkv1.AlterTableRequest{Table: a.ref(), Changes: changes(t, addText("x", "INT32")), MaxAttempts: 3})
	refused(t, err, sdk.Conflict, "gave up after 3 attempts")
}

// After a crash the statement comes again, with word that it may have been made.
func TestAlter_Again(t *testing.T) {
	a := newAltered(t, "2")
	a.land()
	for _, change := range [][]string{
		{addText("x", "INT32")},
		{`{"renameColumn":{"path":["x"],"name":"y"}}`},
		{`{"dropColumn":{"path":["y"]}}`},
		{`{"addPartitionField":{"column":"id","transform":"TRANSFORM_KIND_BUCKET","param":4}}`},
		{`{"dropPartitionField":{"name":"id_bucket_4"}}`},
		{`{"unsetProperties":{"names":["owner"]}}`},
		{`{"setRef":{"name":"b"}}`},
		{`{"dropRef":{"name":"b"}}`},
	} {
		a.must(change...)
		_, err := a.send(change...)
		require.Error(t, err, change)
		resp, err := a.c.AlterTable(t.Context(), &sinkv1.AlterTableRequest{Table: a.ref(), Changes: changes(t, change...), Again: true})
		require.NoError(t, err, change)
		require.True(t, resp.GetUnchanged(), change)
	}
	_, err := a.c.AlterTable(t.Context(), &sinkv1.AlterTableRequest{Table: a.ref(), Changes: changes(t, addText("name", "INT32")), Again: true})
	refused(t, err, sdk.Permanent, "exists already") // of another type
}
