package write_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// matrix has every type, at the top and nested, with values at its edges.
var matrix = []struct {
	t        string
	values   []string // SQL; NULL is added
	physical parquet.Type
	lower    string // of the values, as show prints
	upper    string
}{
	{"boolean", []string{"true", "false"}, parquet.Types.Boolean, "false", "true"},
	{"int", []string{"-2147483648", "0", "2147483647"}, parquet.Types.Int32, "-2147483648", "2147483647"},
	{"long", []string{"-9223372036854775808", "9223372036854775807"}, parquet.Types.Int64, "-9223372036854775808", "9223372036854775807"},
	{"float", []string{"'-inf'::FLOAT", "0.1::FLOAT", "'inf'::FLOAT"}, parquet.Types.Float, "-Inf", "+Inf"},
	{"double", []string{"-1.7976931348623157e308::DOUBLE", "5e-324::DOUBLE", "'nan'::DOUBLE"}, parquet.Types.Double, "-1.7976931348623157e+308", "5e-324"},
	{"decimal(9,2)", []string{"-9999999.99", "0.01", "9999999.99"}, parquet.Types.Int32, "-999999999e-2", "999999999e-2"},
	{"decimal(18,0)", []string{"-999999999999999999", "999999999999999999"}, parquet.Types.Int64, "-999999999999999999e-0", "999999999999999999e-0"},
	{
		"decimal(38,10)",
		[]string{"-9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"},
		parquet.Types.FixedLenByteArray,
		"-99999999999999999999999999999999999999e-10", "99999999999999999999999999999999999999e-10",
	},
	{"date", []string{"DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '9999-12-31'"}, parquet.Types.Int32, "-719162", "2932896"},
	{"time", []string{"TIME '00:00:00'", "TIME '23:59:59.999999'"}, parquet.Types.Int64, "0", "86399999999"},
	{
		"timestamp",
		[]string{"TIMESTAMP '0001-01-01'", "TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP '9999-12-31 23:59:59.999999'"},
		parquet.Types.Int64, "-62135596800000000", "253402300799999999",
	},
	{
		"timestamptz",
		[]string{"TIMESTAMPTZ '0001-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-01 01:00:00+02'", "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"},
		parquet.Types.Int64, "-62135596800000000", "253402300799999999",
	},
	{"string", []string{"''", "'null'", "'日本😎'"}, parquet.Types.ByteArray, `""`, `"日本😎"`},
	{
		"uuid",
		[]string{"UUID '00000000-0000-0000-0000-000000000000'", "UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'", "UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"},
		parquet.Types.FixedLenByteArray, "00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff",
	},
	{"fixed(4)", []string{`'\x00\x00\x00\x00'::BLOB`, `'\xFF\xFF\xFF\xFF'::BLOB`, `'abcd'::BLOB`}, parquet.Types.FixedLenByteArray, "00000000", "ffffffff"},
	{"binary", []string{`''::BLOB`, `'\xFF'::BLOB`, `'\x00'::BLOB`}, parquet.Types.ByteArray, "", "ff"},
}

func show(v *planv1.Value) string {
	switch k := v.GetKind().(type) {
	case nil:
		return "NULL"
	case *planv1.Value_Boolean:
		return fmt.Sprint(k.Boolean)
	case *planv1.Value_Integer:
		return fmt.Sprint(k.Integer)
	case *planv1.Value_Float32:
		return fmt.Sprint(k.Float32)
	case *planv1.Value_Float64:
		return fmt.Sprint(k.Float64)
	case *planv1.Value_String_:
		return fmt.Sprintf("%q", k.String_)
	case *planv1.Value_Binary:
		return fmt.Sprintf("%x", k.Binary)
	case *planv1.Value_Decimal:
		return fmt.Sprintf("%se-%d", signed(k.Decimal.GetUnscaled()), k.Decimal.GetScale())
	}
	return "?"
}

// matrixTable has, for every type, a column and its like inside a struct, a list and a map.
func matrixTable(t *testing.T) (tb *table, sql string) {
	var fields []*planv1.Field
	var rows []string
	id := int32(0)
	next := func() int32 { id++; return id }
	for n, m := range matrix {
		top := field(next(), fmt.Sprintf("c%d", n), m.t)
		s := structOf(next(), fmt.Sprintf("s%d", n), field(next(), "x", m.t), field(next(), "n", "int"))
		l := listOf(next(), fmt.Sprintf("l%d", n), field(next(), "", m.t))
		mp := mapOf(next(), fmt.Sprintf("m%d", n), field(next(), "", "string"), field(next(), "", m.t))
		fields = append(fields, top, s, l, mp)
	}
	for row := range 4 {
		var cols []string
		for _, m := range matrix {
			v := "NULL"
			if row < len(m.values) {
				v = m.values[row]
			}
			cols = append(cols, v, "{'n': 1, 'x': "+v+"}", "["+v+", NULL]", "MAP {'k': "+v+"}")
		}
		rows = append(rows, "("+strings.Join(cols, ", ")+")")
	}
	return newTable(t, fields...), "VALUES " + strings.Join(rows, ", ")
}

func TestRun_TypeMatrix(t *testing.T) {
	tb, sql := matrixTable(t)
	files := tb.mustRun(t, sql)
	require.Len(t, files, 1)
	f := files[0]
	require.Equal(t, int64(4), f.GetRecordCount())

	r, err := file.OpenParquetFile(path(f.GetPath()), false)
	require.NoError(t, err)
	defer r.Close()
	byID := map[int32]int{}
	for i := range r.MetaData().Schema.NumColumns() {
		byID[r.MetaData().Schema.Column(i).SchemaNode().FieldID()] = i
	}
	for n, m := range matrix {
		t.Run(m.t, func(t *testing.T) {
			base := int32(n*9 + 1)
			for _, id := range []int32{base, base + 2, base + 5, base + 8} {
				col, ok := byID[id]
				require.True(t, ok, "field id %d is in the file", id)
				require.Equal(t, m.physical, r.MetaData().Schema.Column(col).PhysicalType(), "field id %d", id)
			}
			cm := metrics(t, f, base)
			require.Equal(t, int64(4), cm.GetValueCount())
			require.Equal(t, int64(4-len(m.values)), cm.GetNullCount())
			require.Positive(t, cm.GetSizeBytes())
			if m.t == "uuid" { // readers order them differently
				require.Nil(t, cm.GetLower())
				require.Nil(t, cm.GetUpper())
			} else {
				require.Equal(t, m.lower, show(cm.GetLower().GetValue()))
				require.Equal(t, m.upper, show(cm.GetUpper().GetValue()))
				require.True(t, cm.GetLower().GetExact() && cm.GetUpper().GetExact())
				require.Equal(t, m.lower, show(metrics(t, f, base+2).GetLower().GetValue()), "bounds inside a struct")
			}
			require.Nil(t, metrics(t, f, base+5).GetLower(), "no bounds below a list")
			require.Nil(t, metrics(t, f, base+8).GetLower(), "no bounds below a map")
			if m.t == "double" {
				require.Equal(t, int64(1), cm.GetNanCount()) // V5
				require.NotNil(t, cm.NanCount)
				require.Equal(t, int64(1), metrics(t, f, base+2).GetNanCount())
			}
			for row := range m.values {
				where := fmt.Sprintf("SELECT count(*) FROM read_parquet('%s') WHERE c%d IS NOT DISTINCT FROM %s AND s%d.x IS NOT DISTINCT FROM %s "+
					"AND l%d[1] IS NOT DISTINCT FROM %s AND l%d[2] IS NULL AND m%d['k'] IS NOT DISTINCT FROM %s",
					path(f.GetPath()), n, m.values[row], n, m.values[row], n, m.values[row], n, n, m.values[row])
				require.Equal(t, []string{"1"}, query(t, where), m.values[row])
			}
		})
	}
}
