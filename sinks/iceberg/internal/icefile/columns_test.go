package icefile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
)

// columnsLayout is a table with a column of each of these types, under all modes of metrics in turn.
func columnsLayout(t *testing.T) Layout {
	t.Helper()
	var fields []*planv1.Field
	for i, typ := range []*planv1.Type{
		prim(planv1.TypeKind_TYPE_KIND_INT64), prim(planv1.TypeKind_TYPE_KIND_INT32), prim(planv1.TypeKind_TYPE_KIND_DATE), prim(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS),
		prim(planv1.TypeKind_TYPE_KIND_TIME_MICROS), prim(planv1.TypeKind_TYPE_KIND_FLOAT64), prim(planv1.TypeKind_TYPE_KIND_FLOAT32), prim(planv1.TypeKind_TYPE_KIND_STRING),
		prim(planv1.TypeKind_TYPE_KIND_BOOLEAN), prim(planv1.TypeKind_TYPE_KIND_BINARY),
		{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2},
		{Kind: planv1.TypeKind_TYPE_KIND_LIST, Fields: []*planv1.Field{{Name: "element", Type: prim(planv1.TypeKind_TYPE_KIND_STRING)}}},
	} {
		for j := range 5 {
			fields = append(fields, &planv1.Field{Name: string(rune('a'+i)) + string(rune('0'+j)), Type: proto.CloneOf(typ), Required: j == 4})
		}
	}
	meta.AssignIDs(fields)
	schema, err := meta.NewSchema(0, fields)
	require.NoError(t, err)
	l := Layout{Version: 2, Schema: schema, Spec: &meta.Spec{}, Metrics: map[int32]*planv1.MetricsMode{}}
	modes := []*planv1.MetricsMode{
		nil,
		{Kind: planv1.MetricsKind_METRICS_KIND_NONE},
		{Kind: planv1.MetricsKind_METRICS_KIND_COUNTS},
		{Kind: planv1.MetricsKind_METRICS_KIND_FULL},
		{Kind: planv1.MetricsKind_METRICS_KIND_TRUNCATE, Length: 3},
	}
	n := 0
	schema.Walk(func(node *meta.Node) {
		if node.Leaf() {
			l.Metrics[node.Field.GetId()] = modes[n%len(modes)]
			n++
		}
	})
	return l
}

func anyBound(r *rand.Rand) *planv1.Bound {
	v := &planv1.Value{}
	switch r.IntN(9) {
	case 0:
		return nil
	case 1:
		return &planv1.Bound{}
	case 2:
		v.Kind = &planv1.Value_Boolean{Boolean: r.IntN(2) == 0}
	case 3, 4:
		v = num([]int64{0, 1, -1, 5, math.MaxInt32, math.MaxInt32 + 1, math.MinInt64, 1 << 40}[r.IntN(8)])
	case 5:
		v = dbl([]float64{0, math.Copysign(0, -1), 1.5, -1.5, math.NaN(), math.Inf(1)}[r.IntN(6)])
	case 6:
		v.Kind = &planv1.Value_Float32{Float32: []float32{0, 1.5, float32(math.NaN())}[r.IntN(3)]}
	case 7:
		v = str([]string{"", "a", "abc", "abcd", "ü€𝄞x", "\U0010ffff\U0010ffff\U0010ffff\U0010ffff", "ab\ud7ffq"}[r.IntN(7)])
	case 8:
		v.Kind = &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: []byte{byte(r.IntN(256))}, Scale: 2}}
	}
	return &planv1.Bound{Value: v, Exact: r.IntN(2) == 0}
}

// Metrics that go from one encoding to the other come out, and are refused, as those that are decoded between the two.
func TestWriter_LeanMetricsAreTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	l := columnsLayout(t)
	count := func() *int64 {
		return []*int64{nil, ptr(int64(0)), ptr(int64(2)), ptr(int64(10)), ptr(int64(-1))}[min(r.IntN(40), 4-r.IntN(2))%5]
	}
	decoded, err := newEncoder(l)
	require.NoError(t, err)
	lean, err := newEncoder(l)
	require.NoError(t, err)
	var taken, refused int
	for range 30_000 {
		f := &planv1.DataFile{Path: "p", Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: 10, SizeBytes: 1000}
		var columns [][]byte
		for range r.IntN(4) {
			m := &planv1.ColumnMetrics{
				FieldId: int32(r.IntN(74)), SizeBytes: count(), ValueCount: ptr(int64(10)), NullCount: ptr(int64(r.IntN(2))), NanCount: count(), //nolint:gosec // small
				Lower: anyBound(r), Upper: anyBound(r),
			}
			if r.IntN(4) > 0 {
				m.Upper = m.GetLower()
			}
			if r.IntN(8) == 0 {
				m.ValueCount, m.NullCount = count(), count()
			}
			f.Columns = append(f.Columns, m)
			b, err := proto.Marshal(m)
			require.NoError(t, err)
			columns = append(columns, b)
		}
		want, _, wantErr := decoded.entry(nil, f, nil)
		f.Columns = nil
		got, _, err := lean.entry(nil, f, columns)
		if wantErr != nil {
			refused++
			require.EqualError(t, err, wantErr.Error())
			continue
		}
		taken++
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Greater(t, min(taken, refused), 1000)
	for id, c := range decoded.columns {
		require.Equal(t, c.proven, lean.columns[id].proven, c.path)
	}
}

func TestWriter_RefusesDamagedMetrics(t *testing.T) {
	l := layout(t, 2, nil)
	w, err := NewWriter(l)
	require.NoError(t, err)
	f := dataFile(l, "p")
	f.Columns = nil
	require.ErrorIs(t, w.AddLean(f, [][]byte{{0xff}}), ErrRefused)
	require.NoError(t, w.AddLean(f, nil), "nothing of it is kept")
}

// BenchmarkLean is BenchmarkWriter with metrics that are still serialised, as the sink has them.
func BenchmarkLean(b *testing.B) {
	l := layout(b, 2, nil)
	f := dataFile(l, "file:///warehouse/t/data/job/0/0/attempt/0-0-attempt-1.parquet")
	var columns [][]byte
	for _, m := range f.GetColumns() {
		c, err := proto.Marshal(m)
		require.NoError(b, err)
		columns = append(columns, c)
	}
	f.Columns = nil
	e, err := newEncoder(l)
	require.NoError(b, err)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		if out, _, err = e.entry(out[:0], f, columns); err != nil {
			b.Fatal(err)
		}
	}
}
