package filter

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

var null = &planv1.Value{}

func typ(k planv1.TypeKind) *planv1.Type { return &planv1.Type{Kind: k} }

func str(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }

func dbl(f float64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}} }

func dec(n int64) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: value.Shorten(bigBytes(n)), Scale: 2}}}
}

func bigBytes(n int64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(n >> (56 - 8*i))
	}
	return b
}

func cmp(op planv1.CompareOp, vs ...*planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: 1, Op: op, Values: vs}}}
}

func isNull() *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: 1}}}
}

func all(p ...*planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_All{All: &planv1.Predicates{Terms: p}}}
}

func anyOf(p ...*planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: p}}}
}

func not(p *planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Not{Not: p}}
}

const (
	eq = planv1.CompareOp_COMPARE_OP_EQ
	ne = planv1.CompareOp_COMPARE_OP_NE
	lt = planv1.CompareOp_COMPARE_OP_LT
	le = planv1.CompareOp_COMPARE_OP_LE
	gt = planv1.CompareOp_COMPARE_OP_GT
	ge = planv1.CompareOp_COMPARE_OP_GE
	in = planv1.CompareOp_COMPARE_OP_IN
	sw = planv1.CompareOp_COMPARE_OP_STARTS_WITH
)

func schemaOf(t testing.TB, ty *planv1.Type) *meta.Schema {
	t.Helper()
	s, err := meta.NewSchema(0, []*planv1.Field{{Id: 1, Name: "c", Type: ty}})
	require.NoError(t, err)
	return s
}

func specOf(transform string) *meta.Spec {
	if transform == "" {
		return &meta.Spec{}
	}
	return &meta.Spec{Fields: []meta.SpecField{{ID: 1000, SourceID: 1, Name: "p", Transform: meta.ParseTransform(transform), Text: transform}}}
}

func TestFilter_Decides(t *testing.T) {
	i64, s, f64 := typ(planv1.TypeKind_TYPE_KIND_INT64), typ(planv1.TypeKind_TYPE_KIND_STRING), typ(planv1.TypeKind_TYPE_KIND_FLOAT64)
	ts := typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)
	full := func(vs ...*planv1.Value) rows { return rows{values: vs, bounds: true, counts: true} }
	at := func(p *planv1.Value, vs ...*planv1.Value) rows { return rows{values: vs, partition: p} }
	const day = 86_400_000_000
	for _, c := range []struct {
		name              string
		typ               *planv1.Type
		transform         string
		pred              *planv1.Predicate
		file              rows
		inclusive, strict bool
	}{
		{"nothing is asked", i64, "", nil, full(integer(1)), true, true},
		{"bounds below", i64, "", cmp(gt, integer(10)), full(ints(1, 10)...), false, false},
		{"bounds above", i64, "", cmp(gt, integer(10)), full(ints(11, 12)...), true, true},
		{"a NULL is never true", i64, "", cmp(gt, integer(10)), full(integer(11), null), true, false},
		{"and its negation neither", i64, "", not(cmp(gt, integer(10))), full(integer(1), null), true, false},
		{"all NULL", i64, "", cmp(ne, integer(1)), full(null, null), false, false},
		{"IS NULL of all NULL", i64, "", isNull(), full(null, null), true, true},
		{"IS NULL without any", i64, "", isNull(), full(integer(1)), false, false},
		{"IS NOT NULL without counts", i64, "", not(isNull()), rows{values: ints(1), bounds: true}, true, false},
		{"no metrics", i64, "", cmp(eq, integer(1)), rows{values: ints(1)}, true, false},
		{"empty file", i64, "", cmp(eq, integer(1)), rows{}, false, true},
		{"one value", i64, "", cmp(eq, integer(5)), full(ints(5, 5)...), true, true},
		{"one value in a list", i64, "", cmp(in, integer(4), integer(5)), full(ints(5, 5)...), true, true},
		{"between", i64, "", all(cmp(ge, integer(1)), cmp(le, integer(9))), full(ints(1, 9)...), true, true},
		{"two ends", i64, "", anyOf(cmp(lt, integer(1)), cmp(gt, integer(9))), full(ints(1, 9)...), false, false},
		{"NaN may be there", f64, "", cmp(gt, dbl(100)), full(dbl(1), dbl(math.NaN())), true, false},
		{"NaN is not", f64, "", cmp(gt, dbl(100)), full(dbl(1)), false, false},
		{"negative zero", f64, "", cmp(eq, dbl(0)), full(dbl(math.Copysign(0, -1))), true, true},
		{"prefix", s, "", cmp(sw, str("ab")), full(str("aba"), str("abz")), true, true},
		{"prefix outside", s, "", cmp(sw, str("ac")), full(str("aba"), str("abz")), false, false},
		{"prefix of a longer literal", s, "", cmp(sw, str("abcdef")), full(str("abc"), str("abd")), true, false},
		{"identity", i64, "identity", cmp(eq, integer(3)), at(integer(3), integer(3)), true, true},
		{"other identity", i64, "identity", cmp(eq, integer(3)), at(integer(4), integer(4)), false, false},
		{"NULL partition", i64, "identity", isNull(), at(null, null), true, true},
		{"empty string partition", s, "identity", cmp(eq, str("")), at(str(""), str("")), true, true},
		{"same bucket", i64, "bucket[16]", cmp(eq, integer(34)), at(integer(3), integer(34)), true, false},
		{"other bucket", i64, "bucket[16]", cmp(eq, integer(34)), at(integer(4), integer(1)), false, false},
		{"bucket and not equal", i64, "bucket[16]", cmp(ne, integer(34)), at(integer(4), integer(1)), true, true},
		{"whole day", ts, "day", all(cmp(ge, integer(3*day)), cmp(lt, integer(4*day))), at(integer(3), integer(3*day)), true, true},
		{"half a day", ts, "day", cmp(ge, integer(3*day+day/2)), at(integer(3), integer(3*day)), true, false},
		{"day after", ts, "day", cmp(ge, integer(4*day)), at(integer(3), integer(3*day)), false, false},
		{"before 1970 as early writers had it", ts, "day", cmp(lt, integer(0)), at(integer(0), integer(-1)), true, false},
		{"truncated string", s, "truncate[2]", cmp(sw, str("ab")), at(str("ab"), str("abc")), true, true},
		{"truncated string beyond", s, "truncate[2]", cmp(gt, str("ac")), at(str("ab"), str("abz")), false, false},
		{"short string is whole", s, "truncate[2]", cmp(eq, str("a")), at(str("a"), str("a")), true, true},
		{"truncated number", i64, "truncate[10]", cmp(lt, integer(20)), at(integer(10), integer(19)), true, true},
		{"truncated number of overflow", i64, "truncate[10]", cmp(lt, integer(0)), at(integer(math.MaxInt64-1), integer(math.MinInt64)), true, false},
		{"void", i64, "void", cmp(eq, integer(1)), at(null, integer(1)), true, false},
		{"unknown transform", i64, "zorder[3]", cmp(eq, integer(1)), at(integer(9), integer(1)), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := New(schemaOf(t, c.typ), c.pred)
			require.NoError(t, err)
			b := f.Bind(specOf(c.transform))
			require.Equal(t, c.inclusive, b.Inclusive(c.file), "inclusive")
			require.Equal(t, c.strict, b.Strict(c.file), "strict")
		})
	}
}

func TestFilter_Manifests(t *testing.T) {
	i64, s := typ(planv1.TypeKind_TYPE_KIND_INT64), typ(planv1.TypeKind_TYPE_KIND_STRING)
	no := false
	long := func(n int64) []byte { return value.Append(nil, i64, integer(n)) }
	between := func(lo, hi []byte, null bool) *icefile.Manifest {
		return &icefile.Manifest{Partitions: []icefile.FieldSummary{{ContainsNull: null, ContainsNaN: &no, Lower: lo, Upper: hi}}}
	}
	for _, c := range []struct {
		name string
		typ  *planv1.Type
		tr   string
		pred *planv1.Predicate
		m    *icefile.Manifest
		want bool
	}{
		{"no summaries", i64, "identity", cmp(eq, integer(1)), &icefile.Manifest{}, true},
		{"inside", i64, "identity", cmp(eq, integer(5)), between(long(1), long(9), false), true},
		{"outside", i64, "identity", cmp(eq, integer(10)), between(long(1), long(9), false), false},
		{"int bounds of a column that is long now", i64, "identity", cmp(eq, integer(10)), between(long(1)[:4], long(9)[:4], false), false},
		{"NULL inside", i64, "identity", isNull(), between(long(1), long(9), true), true},
		{"NULL outside", i64, "identity", isNull(), between(long(1), long(9), false), false},
		{"empty string without bounds", s, "identity", cmp(eq, str("")), between(nil, nil, false), true},
		{"damaged bounds", i64, "identity", cmp(eq, integer(10)), between([]byte{1}, []byte{2}, false), true},
		{"one bucket", i64, "bucket[16]", cmp(eq, integer(34)), between(long(4)[:4], long(4)[:4], false), false},
		{"several buckets", i64, "bucket[16]", cmp(eq, integer(34)), between(long(4)[:4], long(5)[:4], false), true},
		{"overflowed truncation", i64, "truncate[10]", cmp(lt, integer(-5)), between(long(0), long(math.MaxInt64-1), false), true},
		{"truncation", i64, "truncate[10]", cmp(gt, integer(19)), between(long(0), long(10), false), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := New(schemaOf(t, c.typ), c.pred)
			require.NoError(t, err)
			require.Equal(t, c.want, f.Bind(specOf(c.tr)).Manifest(c.m))
		})
	}
}

func TestNew_RefusesWhatDoesNotFit(t *testing.T) {
	s, err := meta.NewSchema(0, []*planv1.Field{
		{Id: 1, Name: "n", Type: typ(planv1.TypeKind_TYPE_KIND_INT32)},
		{Id: 2, Name: "l", Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Id: 3, Name: "element", Type: typ(planv1.TypeKind_TYPE_KIND_INT32)}}}},
	})
	require.NoError(t, err)
	of := func(id int32, op planv1.CompareOp, vs ...*planv1.Value) *planv1.Predicate {
		return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: id, Op: op, Values: vs}}}
	}
	deep := isNull()
	for range maxDepth + 1 {
		deep = not(deep)
	}
	for want, p := range map[string]*planv1.Predicate{
		"no column has the field id 9":       of(9, eq, integer(1)),
		"column l.element has no single":     of(3, eq, integer(1)),
		"column l has no single value":       of(2, eq, integer(1)),
		"column n: comparison with 2 values": of(1, eq, integer(1), integer(2)),
		"integer 3000000000 for int":         of(1, eq, integer(3_000_000_000)),
		"string of 1 bytes for int":          not(of(1, eq, str("x"))),
		"NULL for int":                       of(1, in, null),
		"is no string and has no prefix":     of(1, sw, integer(1)),
		"comparison of no kind":              all(of(1, 0, integer(1))),
		"nested deeper than":                 deep,
	} {
		_, err := New(s, p)
		require.ErrorIs(t, err, ErrPredicate)
		require.ErrorContains(t, err, want)
	}
}

func TestDataFile_TellsOfItsColumns(t *testing.T) {
	i64 := typ(planv1.TypeKind_TYPE_KIND_INT64)
	n, none := int64(2), int64(0)
	f := DataFile(&planv1.DataFile{
		RecordCount: 2, Partition: ints(7),
		Columns: []*planv1.ColumnMetrics{{FieldId: 1, ValueCount: &n, NullCount: &none, Lower: &planv1.Bound{Value: integer(1)}, Upper: &planv1.Bound{Value: integer(3)}}},
	}, []*planv1.PartitionField{{FieldId: 1000, SourceId: 1}})
	p, err := New(schemaOf(t, i64), cmp(lt, integer(4)))
	require.NoError(t, err)
	require.True(t, p.Bind(specOf("")).Strict(f))
	require.False(t, p.Bind(specOf("identity")).Inclusive(f), "its partition says 7")
	require.Equal(t, []int32{1}, p.Fields())
	require.False(t, p.Trivial())
	always, err := New(schemaOf(t, i64), anyOf(all(), isNull()))
	require.NoError(t, err)
	require.False(t, always.Trivial(), "it names a column")
	require.True(t, mustNew(t, i64, all()).Trivial())
	require.Equal(t, "101", fmt.Sprintf("%03b", mustNew(t, i64, cmp(eq, integer(1))).Bind(specOf("")).Outcomes(rows{values: ints(1), bounds: true})))
}

func mustNew(t testing.TB, ty *planv1.Type, p *planv1.Predicate) *Filter {
	t.Helper()
	f, err := New(schemaOf(t, ty), p)
	require.NoError(t, err)
	return f
}
