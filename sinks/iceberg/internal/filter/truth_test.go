package filter

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/icefile"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// rows is a File that tells the truth about its values, and as much of it as it is told to.
type rows struct {
	values    []*planv1.Value
	partition *planv1.Value // nil: not known
	bounds    bool
	counts    bool
	limit     int // of string bounds
}

func (r rows) Rows() int64 { return int64(len(r.values)) }

func (r rows) Partition(int32, *planv1.Type) (*planv1.Value, bool) {
	return r.partition, r.partition != nil
}

func (r rows) Metrics(id int32, t *planv1.Type) *planv1.ColumnMetrics {
	m := &planv1.ColumnMetrics{FieldId: id}
	var n, nulls, nans int64
	var lo, hi *planv1.Value
	for _, v := range r.values {
		n++
		switch {
		case value.IsNull(v):
			nulls++
		case value.IsNaN(v):
			nans++
		default:
			if lo == nil || value.Compare(v, lo) < 0 {
				lo = v
			}
			if hi == nil || value.Compare(v, hi) > 0 {
				hi = v
			}
		}
	}
	if r.counts {
		m.ValueCount, m.NullCount, m.NanCount = &n, &nulls, &nans
	}
	if r.bounds && lo != nil {
		if b, ok := value.Lower(t, lo, r.limit); ok {
			v, _ := value.Parse(t, b)
			m.Lower = &planv1.Bound{Value: v}
		}
		if b, ok := value.Upper(t, hi, r.limit); ok {
			v, _ := value.Parse(t, b)
			m.Upper = &planv1.Bound{Value: v}
		}
	}
	return m
}

// truth evaluates a predicate for one value, written apart from the package.
func truth(p *planv1.Predicate, v *planv1.Value) *bool {
	yes, no := true, false
	b := func(x bool) *bool {
		if x {
			return &yes
		}
		return &no
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		return b(k.Constant)
	case *planv1.Predicate_IsNull:
		return b(value.IsNull(v))
	case *planv1.Predicate_Not:
		if t := truth(k.Not, v); t != nil {
			return b(!*t)
		}
		return nil
	case *planv1.Predicate_All:
		out := &yes
		for _, t := range k.All.GetTerms() {
			switch x := truth(t, v); {
			case x != nil && !*x:
				return &no
			case x == nil:
				out = nil
			}
		}
		return out
	case *planv1.Predicate_Any:
		out := &no
		for _, t := range k.Any.GetTerms() {
			switch x := truth(t, v); {
			case x != nil && *x:
				return &yes
			case x == nil:
				out = nil
			}
		}
		return out
	}
	c := p.GetComparison()
	if value.IsNull(v) {
		return nil
	}
	switch c.GetOp() {
	case in:
		for _, w := range c.GetValues() {
			if sqlOrder(v, w) == 0 {
				return &yes
			}
		}
		return &no
	case sw:
		return b(strings.HasPrefix(v.GetString_(), c.GetValues()[0].GetString_()))
	}
	o := sqlOrder(v, c.GetValues()[0])
	return b(map[planv1.CompareOp]bool{eq: o == 0, ne: o != 0, lt: o < 0, le: o <= 0, gt: o > 0, ge: o >= 0}[c.GetOp()])
}

func sqlOrder(a, b *planv1.Value) int {
	switch x := a.GetKind().(type) {
	case *planv1.Value_Float64:
		y := b.GetFloat64()
		switch {
		case math.IsNaN(x.Float64) && math.IsNaN(y):
			return 0
		case math.IsNaN(x.Float64):
			return 1
		case math.IsNaN(y):
			return -1
		case x.Float64 == y:
			return 0
		case x.Float64 < y:
			return -1
		}
		return 1
	case *planv1.Value_Binary:
		return bytes.Compare(x.Binary, b.GetBinary())
	}
	return value.Compare(a, b)
}

type kind struct {
	name   string
	typ    *planv1.Type
	values []*planv1.Value
	parts  map[string]func(*planv1.Value) *planv1.Value // transforms, computed apart from the package
}

func ints(ns ...int64) []*planv1.Value {
	out := make([]*planv1.Value, len(ns))
	for i, n := range ns {
		out[i] = integer(n)
	}
	return out
}

func identity(v *planv1.Value) *planv1.Value { return v }

func bucketed(t *planv1.Type, n int32) func(*planv1.Value) *planv1.Value {
	return func(v *planv1.Value) *planv1.Value {
		h, ok := hash(t, v)
		if !ok {
			return nil
		}
		return integer(int64(h % n))
	}
}

func truncInt(w, size int64) func(*planv1.Value) *planv1.Value {
	return func(v *planv1.Value) *planv1.Value {
		n := v.GetInteger() - ((v.GetInteger()%w)+w)%w
		if size == 32 {
			n = int64(int32(n)) // as Java's ints overflow
		}
		return integer(n)
	}
}

func prefixOf(n int) func(*planv1.Value) *planv1.Value {
	return func(v *planv1.Value) *planv1.Value {
		r := []rune(v.GetString_())
		return str(string(r[:min(n, len(r))]))
	}
}

func kinds() []kind {
	i32, i64 := typ(planv1.TypeKind_TYPE_KIND_INT32), typ(planv1.TypeKind_TYPE_KIND_INT64)
	s, f := typ(planv1.TypeKind_TYPE_KIND_STRING), typ(planv1.TypeKind_TYPE_KIND_FLOAT64)
	d := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}
	date, ts := typ(planv1.TypeKind_TYPE_KIND_DATE), typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS)
	uid := typ(planv1.TypeKind_TYPE_KIND_UUID)
	hours := func(v *planv1.Value) *planv1.Value { return integer(floorDiv(v.GetInteger(), 3_600_000_000)) }
	days := func(v *planv1.Value) *planv1.Value { return integer(floorDiv(v.GetInteger(), 86_400_000_000)) }
	rounded := func(v *planv1.Value) *planv1.Value { return integer(v.GetInteger() / 86_400_000_000) } // as early writers did
	months := func(v *planv1.Value) *planv1.Value {
		y, m, _ := dateOf(v.GetInteger())
		return integer(int64((y-1970)*12 + m - 1))
	}
	years := func(v *planv1.Value) *planv1.Value {
		y, _, _ := dateOf(v.GetInteger())
		return integer(int64(y - 1970))
	}
	uuids := make([]*planv1.Value, 4)
	for i := range uuids {
		uuids[i] = &planv1.Value{Kind: &planv1.Value_Binary{Binary: append(make([]byte, 15), byte(i*80))}}
		uuids[i].GetBinary()[0] = byte(i * 70)
	}
	return []kind{
		{"int", i32, ints(math.MinInt32, math.MinInt32+3, -11, -10, -1, 0, 1, 7, 10, 11, math.MaxInt32-1, math.MaxInt32), map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "truncate[10]": truncInt(10, 32), "bucket[3]": bucketed(i32, 3)}},
		{"long", i64, ints(math.MinInt64, math.MinInt64+3, -10, -1, 0, 9, 10, math.MaxInt64), map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "truncate[10]": truncInt(10, 64), "bucket[3]": bucketed(i64, 3)}},
		{"string", s, []*planv1.Value{str(""), str("a"), str("ab"), str("abc"), str("abd"), str("abcé"), str("b"), str("\U0010ffff\U0010ffffz"), str("zz")}, map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "truncate[2]": prefixOf(2), "bucket[3]": bucketed(s, 3)}},
		{"double", f, []*planv1.Value{dbl(math.NaN()), dbl(math.Inf(-1)), dbl(-1), dbl(math.Copysign(0, -1)), dbl(0), dbl(1.5), dbl(math.Inf(1))}, map[string]func(*planv1.Value) *planv1.Value{"identity": value.PlusZero}},
		{"decimal", d, []*planv1.Value{dec(-1234), dec(-1), dec(0), dec(99), dec(100), dec(123456)}, map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "bucket[3]": bucketed(d, 3), "truncate[50]": func(v *planv1.Value) *planv1.Value {
			n := meta.FromTwosComplement(v.GetDecimal().GetUnscaled()).Int64()
			return dec(n - ((n%50)+50)%50)
		}}},
		{"date", date, ints(-400, -366, -365, -31, -1, 0, 1, 30, 31, 365, 366, 19000), map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "day": identity, "month": months, "year": years, "bucket[3]": bucketed(date, 3)}},
		{"timestamp", ts, ints(-90_000_000_001, -86_400_000_000, -3_600_000_001, -1, 0, 1, 3_600_000_000, 86_400_000_000, 1_700_000_000_000_000), map[string]func(*planv1.Value) *planv1.Value{"hour": hours, "day": days, "bucket[3]": bucketed(ts, 3), "day ": rounded}},
		{"uuid", uid, uuids, map[string]func(*planv1.Value) *planv1.Value{"identity": identity, "bucket[3]": bucketed(uid, 3)}},
	}
}

// dateOf counts days by hand, apart from package time.
func dateOf(days int64) (y, m, d int) {
	y, left := 1970, days
	leap := func(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }
	length := func(y int) int64 {
		if leap(y) {
			return 366
		}
		return 365
	}
	for left < 0 {
		y--
		left += length(y)
	}
	for left >= length(y) {
		left -= length(y)
		y++
	}
	months := []int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if leap(y) {
		months[1] = 29
	}
	m = 1
	for left >= months[m-1] {
		left -= months[m-1]
		m++
	}
	return y, m, int(left) + 1
}

func randomPredicate(r *rand.Rand, k kind, depth int) *planv1.Predicate {
	pick := func() *planv1.Value { return k.values[r.IntN(len(k.values))] }
	switch n := r.IntN(10); {
	case depth < 3 && n < 2:
		return all(randomPredicate(r, k, depth+1), randomPredicate(r, k, depth+1))
	case depth < 3 && n < 4:
		return anyOf(randomPredicate(r, k, depth+1), randomPredicate(r, k, depth+1))
	case depth < 3 && n < 5:
		return not(randomPredicate(r, k, depth+1))
	case n == 5:
		return isNull()
	case n == 6:
		return cmp(in, pick(), pick())
	case n == 7 && k.name == "string":
		return cmp(sw, pick())
	}
	return cmp([]planv1.CompareOp{eq, ne, lt, le, gt, ge}[r.IntN(6)], pick())
}

// Whatever is known of a file, no outcome that occurs is missing, so that nothing that matches is pruned and nothing that does not is taken whole.
func TestOutcomes_HoldWhatOccurs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sure, pruned, total := 0, 0, 0
	for _, k := range kinds() {
		schema := schemaOf(t, k.typ)
		for range 4000 {
			pred := randomPredicate(r, k, 0)
			f, err := New(schema, pred)
			require.NoError(t, err)
			file := rows{bounds: r.IntN(4) > 0, counts: r.IntN(4) > 0, limit: r.IntN(4)}
			for range 1 + r.IntN(3) {
				if v := k.values[r.IntN(len(k.values))]; r.IntN(6) == 0 {
					file.values = append(file.values, null)
				} else {
					file.values = append(file.values, v)
				}
			}
			transform := ""
			var partition func(*planv1.Value) *planv1.Value
			for name, p := range k.parts {
				if r.IntN(2) == 0 {
					transform, partition = strings.TrimSpace(name), p
				}
			}
			if partition != nil { // the rows of a file have one partition value
				var same []*planv1.Value
				file.partition = null
				if !value.IsNull(file.values[0]) {
					file.partition = partition(file.values[0])
				}
				for _, v := range file.values {
					p := null
					if !value.IsNull(v) {
						p = partition(v)
					}
					if p.String() == file.partition.String() {
						same = append(same, v)
					}
				}
				file.values = same
			}
			var occurs Outcomes
			for _, v := range file.values {
				switch x := truth(pred, v); {
				case x == nil:
					occurs |= Null
				case *x:
					occurs |= True
				default:
					occurs |= False
				}
			}
			b := f.Bind(specOf(transform))
			got := b.Outcomes(file)
			require.Equal(t, occurs, occurs&got, "%s, %s, %v over %v: %03b occur, %03b computed", k.name, transform, pred, file.values, occurs, got)
			require.Equal(t, got.has(True), b.Inclusive(file))
			require.Equal(t, got == True, b.Strict(file))
			if file.partition != nil {
				m := summaryOf(t, k.typ, transform, file.partition)
				require.True(t, b.Manifest(m) || !occurs.has(True), "%s, %s, %v: manifest of %v", k.name, transform, pred, file.partition)
			}
			total++
			if got == True {
				sure++
			}
			if !got.has(True) {
				pruned++
			}
		}
	}
	require.Greater(t, sure, total/20, "or the test tests nothing")
	require.Greater(t, pruned, total/20)
}

func summaryOf(t testing.TB, ty *planv1.Type, transform string, p *planv1.Value) *icefile.Manifest {
	t.Helper()
	result, err := meta.ParseTransform(transform).Result(ty)
	require.NoError(t, err)
	no := false
	s := icefile.FieldSummary{ContainsNaN: &no}
	switch {
	case value.IsNull(p):
		s.ContainsNull = true
	case value.IsNaN(p):
		yes := true
		s.ContainsNaN = &yes
	default:
		s.Lower, _ = value.Lower(result, p, 0)
		s.Upper, _ = value.Upper(result, p, 0)
	}
	return &icefile.Manifest{Partitions: []icefile.FieldSummary{s}}
}
