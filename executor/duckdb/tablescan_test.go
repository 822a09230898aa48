package duckdb

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func typ(kind planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: kind} }

func fld(id int32, name string, t *planv1.Type) *planv1.Field {
	return &planv1.Field{Id: id, Name: name, Type: t}
}

func structT(fields ...*planv1.Field) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRUCT, Fields: fields}
}

func listT(elem *planv1.Field) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{elem}}
}

func mapT(k, v *planv1.Field) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_MAP, Fields: []*planv1.Field{k, v}}
}

func decT(p, s int32) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: p, Scale: s}
}

var (
	i32 = typ(planv1.TypeKind_TYPE_KIND_INT32)
	i64 = typ(planv1.TypeKind_TYPE_KIND_INT64)
	f64 = typ(planv1.TypeKind_TYPE_KIND_FLOAT64)
	str = typ(planv1.TypeKind_TYPE_KIND_STRING)
)

// The table's columns come by field id, whatever the file calls them and wherever it has them.
func TestTableScan_ReadsByFieldID(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		`COPY (SELECT 1::INT a, 'x' b, {'p': 1::INT, 'q': 's'} s, [1::INT, 2] l, MAP {'k': {'v': 1::INT}} m, 1.5::FLOAT f, 1.25::DECIMAL(5,2) d)
			TO '$DIR/old.parquet' (FIELD_IDS {a:1, b:2, s:{__duckdb_field_id:3, p:4, q:5}, l:{__duckdb_field_id:6, element:7},
			m:{__duckdb_field_id:8, key:9, value:{__duckdb_field_id:10, v:11}}, f:12, d:13})`,
		// renamed b, reordered columns and struct fields, widened types, new struct field, dropped l and m, a column without an id
		`COPY (SELECT 'y' b2, {'q2': 't', 'z': 9::INT} s, 2::BIGINT a, [{'e1': 1}] ls, 2.25::DOUBLE f, 7.5::DECIMAL(10,2) d, 77 AS l)
			TO '$DIR/new.parquet' (FIELD_IDS {a:1, b2:2, s:{__duckdb_field_id:3, z:14, q2:5}, f:12, d:13, l:99})`)
	schema := []*planv1.Field{
		fld(1, "a", i64), fld(2, `b"2`, str),
		fld(3, "s", structT(fld(14, "z", i64), fld(5, "q2", str), fld(4, "p", i64), fld(15, "fresh", str))),
		fld(6, "l", listT(fld(7, "element", i64))),
		fld(8, "m", mapT(fld(9, "key", str), fld(10, "value", structT(fld(11, "w", i64))))),
		fld(12, "f", f64), fld(13, "d", decT(10, 2)), fld(20, "added", i32),
	}
	inst := bind(t, table("v", "lake.demo.t", schema, pins(t, dir+"/old.parquet", dir+"/new.parquet")))
	require.Equal(t, []string{
		`{'a': 1, 'b"2': x, 's': {'z': NULL, 'q2': s, 'p': 1, 'fresh': NULL}, 'l': [1, 2], 'm': {k={'w': 1}}, 'f': 1.5, 'd': 1.25, 'added': NULL}`,
		`{'a': 2, 'b"2': y, 's': {'z': 9, 'q2': t, 'p': NULL, 'fresh': NULL}, 'l': NULL, 'm': NULL, 'f': 2.25, 'd': 7.50, 'added': NULL}`,
	}, text(t, inst, "SELECT * FROM v ORDER BY a"))
	cols, err := inst.Describe(context.Background(), "SELECT * FROM v")
	require.NoError(t, err)
	require.Equal(t, `STRUCT("z" BIGINT, "q2" VARCHAR, "p" BIGINT, "fresh" VARCHAR)`, cols[2].EngineType)
}

func TestTableScan_NestedNullsStayNull(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, `COPY (SELECT * FROM (VALUES (1, NULL, NULL, NULL), (2, {'a': NULL}, [NULL, {'a': 5}], MAP {'k': NULL::INT}), (3, {'a': 1}, [], MAP {}))
		t(i, s, l, m)) TO '$DIR/f.parquet' (FIELD_IDS {i:1, s:{__duckdb_field_id:2, a:3}, l:{__duckdb_field_id:4, element:{__duckdb_field_id:5, a:6}},
		m:{__duckdb_field_id:7, key:8, value:9}})`)
	schema := []*planv1.Field{
		fld(1, "i", i32), fld(2, "s", structT(fld(3, "A", i64))),
		fld(4, "l", listT(fld(5, "element", structT(fld(6, "b", i64), fld(10, "c", str))))),
		fld(7, "m", mapT(fld(8, "key", str), fld(9, "value", i64))),
	}
	inst := bind(t, table("v", "t", schema, pins(t, dir+"/f.parquet")))
	require.Equal(t, []string{
		"{'i': 1, 's': NULL, 'l': NULL, 'm': NULL}",
		"{'i': 2, 's': {'A': NULL}, 'l': [NULL, {'b': 5, 'c': NULL}], 'm': {k=NULL}}",
		"{'i': 3, 's': {'A': 1}, 'l': [], 'm': {}}",
	}, text(t, inst, "SELECT * FROM v ORDER BY i"))
}
