package iceberg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icebergo "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// nestedColumns have lists, maps and structs inside each other (X2).
func nestedColumns() []*planv1.Field {
	pair := func() *planv1.Type {
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*planv1.Field{field("a", kInt), field("b", kStr)}}
	}
	list := func(e *planv1.Type) *planv1.Type {
		return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Type: e}}}
	}
	return []*planv1.Field{
		field("id", kLong),
		{Name: "s", Type: pair()},
		{Name: "l", Type: list(pair())},
		{Name: "m", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{{Type: &planv1.Type{Kind: kStr}}, {Type: pair()}}}},
		{Name: "ll", Type: list(list(&planv1.Type{Kind: kDbl}))},
		field("last", kStr),
	}
}

const nestedRows = `[
	{"id":1,"s":{"a":3,"b":"x"},"l":[{"a":4,"b":"y"},null,{"a":null,"b":"z"}],"m":[{"key":"k","value":{"a":5,"b":"w"}}],"ll":[[1.5],[],null],"last":"end"},
	{"id":2,"s":null,"l":null,"m":null,"ll":null,"last":null},
	{"id":3,"s":{"a":null,"b":null},"l":[],"m":[],"ll":[[]],"last":""}]`

func TestNested_TypesReadBack(t *testing.T) {
	h := newHost(t, "nested")
	c := h.client(New())
	j := newCreateJob(t, h, c, &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: nestedColumns()}})
	j.land([]*planv1.DataFile{j.nestedFile()})
	f, ok := h.table().Metadata().CurrentSchema().FindFieldByName("s.a")
	require.True(t, ok)
	require.Equal(t, 7, f.ID, "the top level is numbered first")
	tbl, err := h.table().Scan().ToArrowTable(t.Context())
	require.NoError(t, err)
	defer tbl.Release()
	require.EqualValues(t, 3, tbl.NumRows())
	text := fmt.Sprint(tbl)
	for _, want := range []string{"4 (null) (null)", `"y" (null) "z"`, "1.5", `"w"`} {
		require.True(t, strings.Contains(text, want), "%q in %s", want, text)
	}
	raw, err := os.ReadFile(h.path(j.lastPath))
	require.NoError(t, err)
	leaveExpected(t, h, raw)
}

// nestedFile writes nestedRows with the field ids of the write spec. Counts are those of an executor that measures leaves.
func (j *job) nestedFile() *planv1.DataFile {
	j.t.Helper()
	schema, err := meta.NewSchema(0, j.spec.GetSchema().GetFields())
	require.NoError(j.t, err)
	var ice icebergo.Schema
	require.NoError(j.t, json.Unmarshal(schema.JSON, &ice))
	arrowSchema, err := icetable.SchemaToArrowSchema(&ice, nil, true, false)
	require.NoError(j.t, err)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrowSchema, strings.NewReader(nestedRows))
	require.NoError(j.t, err)
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(j.t, err)
	require.NoError(j.t, w.Write(rec))
	require.NoError(j.t, w.Close())
	f := j.plainFile(0, rec.NumRows())
	f.SizeBytes, j.lastPath = int64(buf.Len()), f.GetPath()
	require.NoError(j.t, os.MkdirAll(filepath.Dir(j.h.path(f.GetPath())), 0o750))
	require.NoError(j.t, os.WriteFile(j.h.path(f.GetPath()), buf.Bytes(), 0o600))
	id := func(path string) int32 { return schema.Lookup(path).Field.GetId() }
	for path, n := range map[string][2]int64{"id": {3, 0}, "s.a": {3, 2}, "s.b": {3, 2}, "l.element.a": {5, 4}, "m.key": {3, 2}, "last": {3, 1}} {
		f.Columns = append(f.Columns, &planv1.ColumnMetrics{FieldId: id(path), ValueCount: &n[0], NullCount: &n[1]})
	}
	return f
}
