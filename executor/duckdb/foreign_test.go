package duckdb

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func withID(f arrow.Field, id int) arrow.Field {
	f.Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(id)})
	return f
}

// writeArrow writes one row given as JSON, with another writer than DuckDB.
func writeArrow(t *testing.T, path, row string, props []parquet.WriterProperty, arrowProps []pqarrow.WriterOption, fields ...arrow.Field) {
	t.Helper()
	schema := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	require.NoError(t, b.UnmarshalJSON([]byte(row)))
	rec := b.NewRecordBatch()
	defer rec.Release()
	out, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, out, parquet.NewWriterProperties(props...), pqarrow.NewArrowWriterProperties(arrowProps...))
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
}

// A column was dropped and another of a name that differs only in case was added: the file may have either, or both.
func TestTableScan_CaseTwinsInTheFile(t *testing.T) { // X3
	dir := t.TempDir()
	i64 := arrow.PrimitiveTypes.Int64
	writeArrow(t, dir+"/f.parquet", `{"a": 1, "A": 2, "b": 3}`, nil, nil,
		withID(arrow.Field{Name: "a", Type: i64, Nullable: true}, 1), withID(arrow.Field{Name: "A", Type: i64, Nullable: true}, 2), withID(arrow.Field{Name: "b", Type: i64, Nullable: true}, 3))
	for id, want := range map[int32]string{1: "{'a': 1}", 2: "{'a': 2}", 3: "{'a': 3}", 4: "{'a': NULL}"} {
		inst := bind(t, table("v", "t", []*planv1.Field{fld(id, "a", typ(planv1.TypeKind_TYPE_KIND_INT64))}, pins(t, dir+"/f.parquet")))
		require.Equal(t, []string{want}, text(t, inst, "FROM v"))
	}
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/f.parquet"))), `"a"`, `"A"`, "f.parquet")
	both := []*planv1.Field{fld(1, "a", str), fld(2, "A", str)}
	requireUser(t, bindError(t, table("v", "lake.demo.t", both, pins(t, dir+"/f.parquet"))), "lake.demo.t", `"a"`, `"A"`)
}

func TestTableScan_CaseTwinsInAStruct(t *testing.T) {
	dir := t.TempDir()
	s := arrow.StructOf(withID(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, 2), withID(arrow.Field{Name: "X", Type: arrow.BinaryTypes.String, Nullable: true}, 3))
	writeArrow(t, dir+"/f.parquet", `{"s": {"x": 1, "X": "two"}}`, nil, nil, withID(arrow.Field{Name: "s", Type: s, Nullable: true}, 1))
	src := table("v", "t", []*planv1.Field{fld(1, "s", structT(fld(3, "x", str)))}, pins(t, dir+"/f.parquet"))
	if err := bindError(t, src); err != nil { // DuckDB may refuse the file; reading the wrong twin is what must not happen
		t.Log(err)
		return
	}
	require.Equal(t, []string{"{'s': {'x': two}}"}, text(t, bind(t, src), "FROM v"))
}

func TestTableScan_OtherWritersTypes(t *testing.T) {
	dir := t.TempDir()
	ts := arrow.Field{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, Nullable: true}
	writeArrow(t, dir+"/int96.parquet", `{"ts": "2024-02-29T10:00:00Z"}`, nil, []pqarrow.WriterOption{pqarrow.WithDeprecatedInt96Timestamps(true)}, withID(ts, 1))
	inst := bind(t, table("v", "t", []*planv1.Field{fld(1, "ts", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS))}, pins(t, dir+"/int96.parquet")))
	require.Equal(t, []string{"{'ts': '2024-02-29 10:00:00+00'}"}, text(t, inst, "FROM v"))

	writeArrow(t, dir+"/uuid.parquet", `{"u": "b5YZ/4uG0BG0LQDAT8lk/w=="}`, nil, nil, withID(arrow.Field{Name: "u", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Nullable: true}, 1))
	inst = bind(t, table("v", "t", []*planv1.Field{fld(1, "u", typ(planv1.TypeKind_TYPE_KIND_UUID))}, pins(t, dir+"/uuid.parquet")))
	require.Equal(t, []string{"{'u': 6f9619ff-8b86-d011-b42d-00c04fc964ff}"}, text(t, inst, "FROM v"))

	writeArrow(t, dir+"/ms.parquet", `{"ts": "2024-02-29T10:00:00"}`, nil, nil, withID(arrow.Field{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Millisecond}, Nullable: true}, 1))
	inst = bind(t, table("v", "t", []*planv1.Field{fld(1, "ts", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS))}, pins(t, dir+"/ms.parquet")))
	require.Equal(t, []string{"{'ts': '2024-02-29 10:00:00'}"}, text(t, inst, "FROM v"))

	writeArrow(t, dir+"/list.parquet", `{"l": [{"a": 1}, null]}`, []parquet.WriterProperty{parquet.WithVersion(parquet.V2_LATEST)}, nil,
		withID(arrow.Field{Name: "l", Nullable: true, Type: arrow.ListOfField(withID(arrow.Field{
			Name: "item", Nullable: true,
			Type: arrow.StructOf(withID(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8, Nullable: true}, 3)),
		}, 2))}, 1))
	inst = bind(t, table("v", "t", []*planv1.Field{fld(1, "l", listT(fld(2, "element", structT(fld(4, "new", str), fld(3, "b", typ(planv1.TypeKind_TYPE_KIND_INT64))))))},
		pins(t, dir+"/list.parquet")))
	require.Equal(t, []string{"{'l': [{'new': NULL, 'b': 1}, NULL]}"}, text(t, inst, "FROM v"))
}

// Only what loses nothing is converted; the rest is refused with the file and the column.
func TestTableScan_RefusesNarrowing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `COPY (SELECT 1::BIGINT l, 1.5::DOUBLE d, 1.25::DECIMAL(10,2) AS de, 'x' s, TIMESTAMP '2020-01-01' ts, {'x': 1} st, [1] li, MAP {'k': 1} m, 1::UBIGINT u)
		TO '$DIR/f.parquet' (FIELD_IDS {l:1, d:2, de:3, s:4, ts:5, st:{__duckdb_field_id:6, x:7}, li:{__duckdb_field_id:8, element:9}, m:{__duckdb_field_id:10, key:11, value:12}, u:13})`)
	for want, f := range map[string]*planv1.Field{
		"BIGINT": fld(1, "c", i32), "DOUBLE": fld(2, "c", typ(planv1.TypeKind_TYPE_KIND_FLOAT32)), "DECIMAL(10,2)": fld(3, "c", decT(10, 3)),
		"VARCHAR": fld(4, "c", typ(planv1.TypeKind_TYPE_KIND_BINARY)), "TIMESTAMP": fld(5, "c", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS)),
		"a group": fld(6, "c", str), "UBIGINT": fld(13, "c", i64),
	} {
		requireUser(t, bindError(t, table("v", "t", []*planv1.Field{f}, pins(t, dir+"/f.parquet"))), "f.parquet", `"c"`, want)
	}
	for path, f := range map[string]*planv1.Field{
		"c.x": fld(6, "c", structT(fld(7, "x", typ(planv1.TypeKind_TYPE_KIND_INT16)))), "c.element": fld(8, "c", listT(fld(9, "element", str))),
		"c.value": fld(10, "c", mapT(fld(11, "key", str), fld(12, "value", str))), "c": fld(8, "c", structT(fld(9, "x", i32))),
	} {
		requireUser(t, bindError(t, table("v", "t", []*planv1.Field{f}, pins(t, dir+"/f.parquet"))), "f.parquet", strconv.Quote(path))
	}
}

func TestTableScan_ConstantsAndRanges(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "COPY (SELECT i::INT AS a FROM range(10) t(i)) TO '$DIR/1.parquet' (FIELD_IDS {a: 1})", "COPY (SELECT i::INT AS a FROM range(100, 103) t(i)) TO '$DIR/2.parquet' (FIELD_IDS {a: 1})")
	f1, f1b, f2, f3 := pin(t, dir+"/1.parquet"), pin(t, dir+"/1.parquet"), pin(t, dir+"/2.parquet"), pin(t, dir+"/2.parquet")
	day := func(d int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: d}} }
	text1 := func(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
	f1.Constants, f1b.Constants = []*planv1.Value{day(-1), text1("it's")}, []*planv1.Value{day(-1), text1("it's")}
	f2.Constants, f3.Constants = []*planv1.Value{{}, text1("")}, []*planv1.Value{{}, text1("")}
	f1.FirstRow, f1.EndRow, f1b.FirstRow, f1b.EndRow = 2, 4, 9, 10
	f2.EndRow, f3.FirstRow, f3.EndRow = 1, 2, 3
	src := table("v", "t", []*planv1.Field{fld(1, "a", i64), fld(2, "d", typ(planv1.TypeKind_TYPE_KIND_DATE)), fld(3, "p", str)}, []*planv1.PinnedFile{f1, f2, f1b, f3})
	src.GetTable().ConstantIds = []int32{2, 3}
	require.Equal(t, []string{
		"{'a': 2, 'd': 1969-12-31, 'p': 'it\\'s'}", "{'a': 3, 'd': 1969-12-31, 'p': 'it\\'s'}", "{'a': 9, 'd': 1969-12-31, 'p': 'it\\'s'}",
		"{'a': 100, 'd': NULL, 'p': ''}", "{'a': 102, 'd': NULL, 'p': ''}",
	}, text(t, bind(t, src), "FROM v ORDER BY a"))
}

func TestLiteralOf_RoundTrips(t *testing.T) {
	inst := locked(t)
	micros := time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC).UnixMicro()
	for _, c := range []struct {
		v    *planv1.Value
		t    *planv1.Type
		want string
	}{
		{&planv1.Value{}, i32, "NULL"},
		{&planv1.Value{Kind: &planv1.Value_Boolean{Boolean: true}}, typ(planv1.TypeKind_TYPE_KIND_BOOLEAN), "true"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: -9223372036854775808}}, i64, "-9223372036854775808"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: micros}}, typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), "1969-12-31 23:59:59.999999"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: micros}}, typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS), "1969-12-31 23:59:59.999999+00"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: micros*1000 + 1}}, typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS), "1969-12-31 23:59:59.999999001"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: 86399999999}}, typ(planv1.TypeKind_TYPE_KIND_TIME_MICROS), "23:59:59.999999"},
		{&planv1.Value{Kind: &planv1.Value_Integer{Integer: -719162}}, typ(planv1.TypeKind_TYPE_KIND_DATE), "0001-01-01"},
		{&planv1.Value{Kind: &planv1.Value_Float64{Float64: 0.1}}, f64, "0.1"},
		{&planv1.Value{Kind: &planv1.Value_Float32{Float32: 0.1}}, typ(planv1.TypeKind_TYPE_KIND_FLOAT32), "0.1"},
		{&planv1.Value{Kind: &planv1.Value_String_{String_: "a'b"}}, str, "a'b"},
		{&planv1.Value{Kind: &planv1.Value_Binary{Binary: []byte{0, 0xff, 'x'}}}, typ(planv1.TypeKind_TYPE_KIND_BINARY), `\x00\xFFx`},
		{&planv1.Value{Kind: &planv1.Value_Binary{Binary: []byte("0123456789abcdef")}}, typ(planv1.TypeKind_TYPE_KIND_UUID), "30313233-3435-3637-3839-616263646566"},
		{&planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: []byte{0xff}, Scale: 2}}}, decT(9, 2), "-0.01"},
		{&planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: []byte{0x01, 0x00}, Scale: 1}}}, decT(38, 1), "25.6"},
		{&planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Scale: 2}}}, decT(9, 2), "0.00"},
	} {
		lit, err := LiteralOf(c.v, c.t)
		require.NoError(t, err)
		name, err := SQLType(c.t)
		require.NoError(t, err)
		var got *string
		require.NoError(t, inst.Conn().QueryRowContext(t.Context(), "SELECT CAST(CAST("+lit+" AS "+name+") AS VARCHAR)").Scan(&got), lit)
		if c.want == "NULL" {
			require.Nil(t, got)
			continue
		}
		require.Equal(t, c.want, *got, lit)
	}
}

func TestFiles_WideDecimals(t *testing.T) { // DuckDB reads them as DOUBLE
	dir := t.TempDir()
	wide := &arrow.Decimal256Type{Precision: 40, Scale: 2}
	writeArrow(t, dir+"/wide.parquet", `{"a": 1, "d": "12345678901234567890123456789012345678.25"}`, nil, nil,
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}, withID(arrow.Field{Name: "d", Type: wide, Nullable: true}, 1))
	writeArrow(t, dir+"/nested.parquet", `{"s": [{"d": "1.25"}]}`, nil, nil,
		arrow.Field{Name: "s", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "d", Type: wide}))})
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/wide.parquet"))), "wide.parquet", `"d"`, "38 digits")
	requireUser(t, bindError(t, files("v", "read_parquet", pins(t, dir+"/nested.parquet"))), "nested.parquet", `.d"`, "38 digits")
	double := []*planv1.Field{fld(1, "d", typ(planv1.TypeKind_TYPE_KIND_FLOAT64))}
	requireUser(t, bindError(t, table("v", "t", double, pins(t, dir+"/wide.parquet"))), `"d"`)
	decimal38 := []*planv1.Field{fld(1, "d", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38, Scale: 2})}
	requireUser(t, bindError(t, table("v", "t", decimal38, pins(t, dir+"/wide.parquet"))), `"d"`)
}

func TestCheckInt96(t *testing.T) { // DuckDB cuts nanoseconds
	dir := t.TempDir()
	ts := withID(arrow.Field{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}, Nullable: true}, 1)
	id := withID(arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, 2)
	int96 := []pqarrow.WriterOption{pqarrow.WithDeprecatedInt96Timestamps(true)}
	nested := arrow.Field{Name: "l", Type: arrow.ListOf(arrow.StructOf(ts)), Nullable: true}
	writeArrow(t, dir+"/fine.parquet", `{"id": 1, "ts": "1970-01-01T00:00:00.000001001"}`, nil, int96, ts, id)
	writeArrow(t, dir+"/before.parquet", `{"id": 1, "ts": "1969-12-31T23:59:59.999999999"}`, nil, int96, ts, id)
	writeArrow(t, dir+"/micros.parquet", `{"id": 1, "ts": "1970-01-01T00:00:00.000001"}`, nil, int96, ts, id)
	writeArrow(t, dir+"/null.parquet", `{"id": 1, "ts": null}`, nil, int96, ts, id)
	writeArrow(t, dir+"/nested.parquet", `{"l": [{"ts": null}, {"ts": "1970-01-01T00:00:00.000001001"}]}`, nil, int96, nested)
	check := func(src *planv1.Source, query string) error {
		return bind(t, src).CheckInt96(context.Background(), query)
	}
	for _, name := range []string{"fine", "before"} {
		src := files("v", "read_parquet", pins(t, dir+"/micros.parquet", dir+"/"+name+".parquet"))
		requireUser(t, check(src, "SELECT ts FROM v"), name+".parquet", `"ts"`, "microsecond")
		requireUser(t, check(src, "SELECT id FROM v WHERE ts > '1970-01-01'"), name+".parquet")
		require.NoError(t, check(src, "SELECT id FROM v"))
		requireUser(t, check(table("v", "t", []*planv1.Field{fld(1, "at", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS))}, pins(t, dir+"/"+name+".parquet")), "FROM v"), name+".parquet")
	}
	require.NoError(t, check(files("v", "read_parquet", pins(t, dir+"/micros.parquet", dir+"/null.parquet")), "FROM v"))
	requireUser(t, check(files("v", "read_parquet", pins(t, dir+"/nested.parquet")), "FROM v"), "nested.parquet", "microsecond")
	emptied := table("v", "t", []*planv1.Field{fld(1, "ts", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS))}, nil)
	require.NoError(t, check(emptied, "FROM v"), "a table without files")
}
