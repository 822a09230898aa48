package duckdb

import (
	"os"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// scanned is a scan of files by names.
func scanned(view string, fields []*planv1.Field, f ...*planv1.PinnedFile) *planv1.Source {
	src := table(view, "lake.s.t", fields, f)
	src.GetTable().ByName = true
	return src
}

func TestTableScan_ByName(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `COPY (SELECT 1::INT AS a, {'x': 2, 'Y': 'z'} AS s, [{'e': 3}] AS l, MAP {'k': {'v': 4}} AS m, 9 AS gone)
		TO '$DIR/ids.parquet' (FIELD_IDS {a: 5, s: {__duckdb_field_id: 1, x: 2, Y: 3}})`, // which mean nothing
		`COPY (SELECT 11 AS "A", {'y': 'w', 'x': 12} AS "S") TO '$DIR/case.parquet'`)
	fields := []*planv1.Field{
		fld(1, "a", i64), fld(2, "s", structT(fld(3, "x", i32), fld(4, "Y", str), fld(5, "new", i32))), fld(6, "l", listT(fld(7, "element", structT(fld(8, "e", i64))))),
		fld(9, "m", mapT(fld(10, "key", str), fld(11, "value", structT(fld(12, "v", i32), fld(13, "w", str))))),
	}
	require.Equal(t, []string{
		"{'a': 1, 's': {'x': 2, 'Y': z, 'new': NULL}, 'l': [{'e': 3}], 'm': {k={'v': 4, 'w': NULL}}}",
		"{'a': 11, 's': {'x': 12, 'Y': w, 'new': NULL}, 'l': NULL, 'm': NULL}",
	}, text(t, bind(t, scanned("v", fields, pins(t, dir+"/ids.parquet", dir+"/case.parquet")...)), "FROM v ORDER BY a"))
}

// A name that the file has as it is wins over those that differ in case; two that both differ may be either.
func TestTableScan_ByNameCaseTwins(t *testing.T) { // X3
	dir := t.TempDir()
	col := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	writeArrow(t, dir+"/f.parquet", `{"aB": 1, "AB": 2}`, nil, nil, col("aB"), col("AB"))
	for name, want := range map[string]string{"aB": "1", "AB": "2"} {
		require.Equal(t, []string{"{'" + name + "': " + want + "}"}, text(t, bind(t, scanned("v", []*planv1.Field{fld(1, name, i64)}, pins(t, dir+"/f.parquet")...)), "FROM v"))
	}
	requireUser(t, bindError(t, scanned("v", []*planv1.Field{fld(1, "ab", i64)}, pins(t, dir+"/f.parquet")...)), "f.parquet", `"aB"`, `"AB"`, `"ab"`)
}

// Partition columns are what the log says, also where a file has a column of the name.
func TestTableScan_ByNameConstants(t *testing.T) {
	dir := t.TempDir() + "/p=3"
	require.NoError(t, os.Mkdir(dir, 0o755))
	write(t, dir, "COPY (SELECT 1 AS x, 2 AS p) TO '$DIR/with.parquet'", "COPY (SELECT 5 AS x) TO '$DIR/without.parquet'")
	f := pins(t, dir+"/with.parquet", dir+"/without.parquet")
	f[0].Constants, f[1].Constants = []*planv1.Value{{Kind: &planv1.Value_Integer{Integer: 7}}}, []*planv1.Value{{}}
	src := scanned("v", []*planv1.Field{fld(1, "x", i32), fld(2, "p", i32)}, f...)
	src.GetTable().ConstantIds = []int32{2}
	require.Equal(t, []string{"{'x': 1, 'p': 7}", "{'x': 5, 'p': NULL}"}, text(t, bind(t, src), "FROM v ORDER BY x"))
}

// What a file may hold of a column whose type has been widened since.
func TestTableScan_WidenedTypes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `COPY (SELECT 1::TINYINT AS b, -2::SMALLINT AS s, 3::INT AS i, 4::BIGINT AS l, 1.5::FLOAT AS f, DATE '1969-12-31' AS d, 12.34::DECIMAL(4,2) AS n) TO '$DIR/f.parquet'`)
	f := pins(t, dir+"/f.parquet")
	for _, c := range []struct {
		column string
		typ    *planv1.Type
		want   string
	}{
		{"b", typ(planv1.TypeKind_TYPE_KIND_INT16), "1"},
		{"s", i32, "-2"},
		{"i", i64, "3"},
		{"f", f64, "1.5"},
		{"i", f64, "3.0"},
		{"s", f64, "-2.0"},
		{"d", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), "'1969-12-31 00:00:00'"},
		{"n", decT(10, 2), "12.34"},
		{"n", decT(10, 5), "12.34000"},
		{"b", decT(10, 0), "1"},
		{"i", decT(12, 2), "3.00"},
		{"l", decT(20, 0), "4"},
	} {
		inst := bind(t, scanned("v", []*planv1.Field{fld(1, c.column, c.typ)}, f...))
		require.Equal(t, []string{"{'" + c.column + "': " + c.want + "}"}, text(t, inst, "FROM v"), c)
	}
	for column, typ := range map[string]*planv1.Type{"i": decT(9, 0), "l": decT(20, 2), "n": decT(4, 3), "d": typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS)} {
		requireUser(t, bindError(t, scanned("v", []*planv1.Field{fld(1, column, typ)}, f...)), "f.parquet", column)
	}
}

// Timestamps as the writers of Delta tables have stored them.
func TestTableScan_ByNameTimestamps(t *testing.T) {
	dir := t.TempDir()
	utc, ntz := typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS), typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)
	for name, c := range map[string]struct {
		unit  arrow.TimeUnit
		zone  string
		int96 bool
		utc   bool // it can be read as an instant
		ntz   bool // and without a zone
	}{
		"micros":       {arrow.Microsecond, "UTC", false, true, false},
		"millis":       {arrow.Millisecond, "UTC", false, true, false},
		"int96":        {arrow.Nanosecond, "UTC", true, true, true},
		"plain micros": {arrow.Microsecond, "", false, true, true}, // Delta's readers take them for UTC
		"plain millis": {arrow.Millisecond, "", false, true, true},
	} {
		path := dir + "/" + name + ".parquet"
		value := "1969-12-31T23:59:59.999"
		if c.zone != "" {
			value += "Z"
		}
		writeArrow(t, path, `{"ts": "`+value+`"}`, []parquet.WriterProperty{parquet.WithVersion(parquet.V2_LATEST)}, []pqarrow.WriterOption{pqarrow.WithDeprecatedInt96Timestamps(c.int96)},
			arrow.Field{Name: "ts", Type: &arrow.TimestampType{Unit: c.unit, TimeZone: c.zone}, Nullable: true})
		for _, as := range []struct {
			typ  *planv1.Type
			want string
			ok   bool
		}{{utc, "'1969-12-31 23:59:59.999+00'", c.utc}, {ntz, "'1969-12-31 23:59:59.999'", c.ntz}} {
			src := scanned("v", []*planv1.Field{fld(1, "ts", as.typ)}, pins(t, path)...)
			if !as.ok {
				requireUser(t, bindError(t, src), name)
				continue
			}
			require.Equal(t, []string{"{'ts': " + as.want + "}"}, text(t, bind(t, src), "FROM v"), name)
		}
	}
}

// legacyFile is one row of a list and a map as Hive and old Sparks have stored them, and decimals in each of their layouts.
func legacyFile(t *testing.T, path string) {
	t.Helper()
	leaf := func(name string, rep parquet.Repetition, p parquet.Type, length int, lt schema.LogicalType) schema.Node {
		if lt == nil {
			lt = schema.NoLogicalType{}
		}
		return schema.Must(schema.NewPrimitiveNodeLogical(name, rep, lt, p, length, -1))
	}
	group := func(name string, rep parquet.Repetition, converted schema.ConvertedType, fields ...schema.Node) schema.Node {
		return schema.Must(schema.NewGroupNodeConverted(name, rep, fields, converted, -1))
	}
	opt, req, rep := parquet.Repetitions.Optional, parquet.Repetitions.Required, parquet.Repetitions.Repeated
	none := schema.ConvertedTypes.None
	dec := func(p, s int32) schema.LogicalType { return schema.NewDecimalLogicalType(p, s) }
	root, err := schema.NewGroupNode("spark_schema", req, schema.FieldList{
		group("two", opt, schema.ConvertedTypes.List, leaf("array", rep, parquet.Types.Int32, 0, nil)),
		group("structs", opt, schema.ConvertedTypes.List, group("array", rep, none, leaf("a", opt, parquet.Types.Int32, 0, nil), leaf("b", opt, parquet.Types.Int32, 0, nil))),
		group("one", opt, schema.ConvertedTypes.List, group("array", rep, none, leaf("a", opt, parquet.Types.Int32, 0, nil))),
		group("bag", opt, schema.ConvertedTypes.List, group("bag", rep, none, leaf("array_element", opt, parquet.Types.Int32, 0, nil))),
		group("map", opt, schema.ConvertedTypes.Map, group("map", rep, schema.ConvertedTypes.MapKeyValue, leaf("key", req, parquet.Types.Int32, 0, nil), leaf("value", opt, parquet.Types.Int32, 0, nil))),
		leaf("d32", opt, parquet.Types.Int32, 0, dec(9, 2)), leaf("d64", opt, parquet.Types.Int64, 0, dec(9, 2)),
		leaf("fixed", opt, parquet.Types.FixedLenByteArray, 4, dec(9, 2)), leaf("binary", opt, parquet.Types.ByteArray, 0, dec(9, 2)),
	}, -1)
	require.NoError(t, err)
	out, err := os.Create(path)
	require.NoError(t, err)
	w, err := file.NewParquetWriterWithError(out, root)
	require.NoError(t, err)
	g, err := w.AppendRowGroupChecked()
	require.NoError(t, err)
	one := func(def, rep []int16, values ...int32) {
		c, err := g.NextColumn()
		require.NoError(t, err)
		switch c := c.(type) {
		case *file.Int32ColumnChunkWriter:
			_, err = c.WriteBatch(values, def, rep)
		case *file.Int64ColumnChunkWriter:
			_, err = c.WriteBatch([]int64{int64(values[0])}, def, rep)
		case *file.FixedLenByteArrayColumnChunkWriter:
			_, err = c.WriteBatch([]parquet.FixedLenByteArray{{0xff, 0xff, 0xff, byte(values[0])}}, def, rep)
		case *file.ByteArrayColumnChunkWriter:
			_, err = c.WriteBatch([]parquet.ByteArray{{byte(values[0])}}, def, rep)
		}
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	one([]int16{2, 2}, []int16{0, 1}, 1, 2)
	one([]int16{3}, []int16{0}, 3)
	one([]int16{3}, []int16{0}, 4)
	one([]int16{3}, []int16{0}, 5)
	one([]int16{3, 2}, []int16{0, 1}, 6)
	one([]int16{2}, []int16{0}, 7)
	one([]int16{3}, []int16{0}, 8)
	for range 4 {
		one([]int16{1}, nil, -2)
	}
	require.NoError(t, g.Close())
	require.NoError(t, w.Close())
}

func TestTableScan_LegacyLayouts(t *testing.T) {
	path := t.TempDir() + "/legacy.parquet"
	legacyFile(t, path)
	list := func(id int32, name string, of *planv1.Type) *planv1.Field {
		return fld(id, name, listT(fld(id+1, "element", of)))
	}
	fields := []*planv1.Field{
		list(1, "two", i64), list(3, "structs", structT(fld(5, "b", i32), fld(6, "a", i32))), list(7, "one", structT(fld(9, "a", i32))), list(10, "bag", i32),
		fld(12, "map", mapT(fld(13, "key", i32), fld(14, "value", i32))), fld(15, "d32", decT(9, 2)), fld(16, "d64", decT(9, 2)), fld(17, "fixed", decT(9, 2)), fld(18, "binary", decT(9, 2)),
	}
	require.Equal(t, []string{
		"{'two': [1, 2], 'structs': [{'b': 4, 'a': 3}], 'one': [{'a': 5}], 'bag': [6, NULL], 'map': {7=8}, 'd32': -0.02, 'd64': -0.02, 'fixed': -0.02, 'binary': -0.02}",
	}, text(t, bind(t, scanned("v", fields, pins(t, path)...)), "FROM v"))
}

// Delta keeps small deletion vectors in its log, and others several to a file.
func TestTableScan_DeltaDeletionVectors(t *testing.T) {
	dir := t.TempDir()
	f := dataFiles(t, dir, 2)
	first, second := vectorBlob(t, 0, 3), vectorBlob(t, 1, 2, 9)
	raw := append([]byte{1}, first...) // the file begins with the version of its format
	raw = append(raw, second...)
	require.NoError(t, os.WriteFile(dir+"/deletion_vector_x.bin", raw, 0o600))
	vector := func(offset, size, rows int) *planv1.DeleteFile {
		return &planv1.DeleteFile{
			Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, Path: dir + "/deletion_vector_x.bin", ContentOffset: int64(offset), ContentSize: int64(size), RecordCount: int64(rows),
		}
	}
	inline := func(blob []byte, rows int64) *planv1.DeleteFile {
		return &planv1.DeleteFile{Content: planv1.FileContent_FILE_CONTENT_DELETION_VECTOR, Inline: blob, RecordCount: rows}
	}
	f[0].Deletes, f[1].Deletes = []*planv1.DeleteFile{vector(1, len(first), 2)}, []*planv1.DeleteFile{vector(1+len(first), len(second), 3)}
	require.Equal(t, "{'ids': 1 2 4 5 6 7 8 9 10 13 14 15 16 17 18}", ids(t, bind(t, scanned("v", idAndName, f...))))
	f[1].Deletes = []*planv1.DeleteFile{inline(second, 3)}
	require.Equal(t, "{'ids': 1 2 4 5 6 7 8 9 10 13 14 15 16 17 18}", ids(t, bind(t, scanned("v", idAndName, f...))))

	flipped := append([]byte{}, second...)
	flipped[len(flipped)-1] ^= 1
	for name, d := range map[string]*planv1.DeleteFile{
		"deletion_vector_x.bin": vector(2, len(first), 2), "in a file of": vector(1, len(raw), 2), "a blob of 3 bytes": inline(second[:3], 3), "checksum": inline(flipped, 3),
		"names a length": inline(second[:len(second)-1], 3), "the table says 4": inline(second, 4), "the table's log": inline(flipped, 3),
	} {
		f[1].Deletes = []*planv1.DeleteFile{d}
		requireUser(t, bindError(t, scanned("v", idAndName, f...)), name, "f1.parquet", "damaged")
	}
}
