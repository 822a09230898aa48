package skip_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/internal/skip"
	"github.com/signet-io/signet/sinks/delta/log"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/stats"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

// Field ids: n 1, p 2, s 3, s.inner 4, list 5, list.element 6, f 7, t 8, req 9, u 10, u.v 11.
var table = func() *schema.Schema {
	k := func(k schema.Kind) schema.Type { return schema.Type{Kind: k} }
	return &schema.Schema{Fields: []schema.Field{
		{Name: "n", Type: k(schema.Long), Nullable: true},
		{Name: "p", Type: k(schema.String), Nullable: true},
		{Name: "s", Type: schema.Type{Kind: schema.Struct, Fields: []schema.Field{{Name: "inner", Type: k(schema.Date)}}}, Nullable: true},
		{Name: "list", Type: schema.Type{Kind: schema.Array, Element: &schema.Type{Kind: schema.Long}}, Nullable: true},
		{Name: "f", Type: k(schema.Double), Nullable: true},
		{Name: "t", Type: k(schema.String), Nullable: true},
		{Name: "req", Type: k(schema.Long)},
		{Name: "u", Type: schema.Type{Kind: schema.Struct, Fields: []schema.Field{{Name: "v", Type: k(schema.Long), Nullable: true}}}, Nullable: true},
	}}
}()

func convert(t schema.Type, v *planv1.Value) (value.Value, error) {
	var out value.Value
	switch k := v.GetKind().(type) {
	case *planv1.Value_Integer:
		out = value.OfInt(k.Integer)
	case *planv1.Value_String_:
		out = value.OfString(k.String_)
	case *planv1.Value_Float64:
		out = value.OfFloat64(k.Float64)
	}
	return out, value.Check(t, out)
}

func i(v int64) *planv1.Value  { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: v}} }
func s(v string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: v}} }
func f(v float64) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Float64{Float64: v}}
}

const (
	eq         = planv1.CompareOp_COMPARE_OP_EQ
	ne         = planv1.CompareOp_COMPARE_OP_NE
	lt         = planv1.CompareOp_COMPARE_OP_LT
	le         = planv1.CompareOp_COMPARE_OP_LE
	gt         = planv1.CompareOp_COMPARE_OP_GT
	ge         = planv1.CompareOp_COMPARE_OP_GE
	in         = planv1.CompareOp_COMPARE_OP_IN
	startsWith = planv1.CompareOp_COMPARE_OP_STARTS_WITH
)

func cmp(id int32, op planv1.CompareOp, values ...*planv1.Value) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Comparison{Comparison: &planv1.Comparison{FieldId: id, Op: op, Values: values}}}
}

func null(id int32) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_IsNull{IsNull: &planv1.IsNull{FieldId: id}}}
}

func not(p *planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Not{Not: p}}
}

func and(p ...*planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_All{All: &planv1.Predicates{Terms: p}}}
}

func or(p ...*planv1.Predicate) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Any{Any: &planv1.Predicates{Terms: p}}}
}

func constant(b bool) *planv1.Predicate {
	return &planv1.Predicate{Kind: &planv1.Predicate_Constant{Constant: b}}
}

func filter(t testing.TB, p *planv1.Predicate) *skip.Filter {
	t.Helper()
	columns, err := partition.Of(table, []string{"p"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := skip.New(table, columns, p, convert)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func add(p, text string) *log.Add {
	out := &log.Add{Path: "f", PartitionValues: map[string]*string{"p": nil}}
	if p != "" {
		out.PartitionValues["p"] = &p
	}
	if text != "" {
		out.Stats = &text
	}
	return out
}

func TestFiles(t *testing.T) {
	whole := add("x", `{"numRecords":10,"minValues":{"n":3,"s":{"inner":"2024-01-01"},"f":-1.5,"t":"abc","req":1},"maxValues":{"n":7,"s":{"inner":"2024-01-31"},"f":2.5,"t":"abd","req":9},`+
		`"nullCount":{"n":0,"s":{"inner":2},"list":0,"f":0,"t":0,"req":0,"u":{"v":0}}}`)
	none, nulls := add("", ""), add("y", `{"numRecords":10,"nullCount":{"n":10,"t":3}}`)
	broken := add("x", `{"numRecords":10,"minValues":{"n":3},"maxValues":{"n":7},`)
	day := func(d int64) *planv1.Value { return i(19723 + d) }
	const no, maybe, yes = 0, 1, 2
	for _, c := range []struct {
		p                          *planv1.Predicate
		whole, none, nulls, broken int
	}{
		{nil, yes, yes, yes, yes},
		{constant(false), no, no, no, no},
		{cmp(1, eq, i(5)), maybe, maybe, no, maybe},
		{cmp(1, eq, i(8)), no, maybe, no, maybe},
		{cmp(1, ne, i(8)), yes, maybe, no, maybe},
		{cmp(1, lt, i(3)), no, maybe, no, maybe},
		{cmp(1, le, i(3)), maybe, maybe, no, maybe},
		{cmp(1, gt, i(7)), no, maybe, no, maybe},
		{cmp(1, ge, i(3)), yes, maybe, no, maybe},
		{cmp(1, in, i(1), i(9)), no, maybe, no, maybe},
		{cmp(1, in, i(1), i(5)), maybe, maybe, no, maybe},
		{cmp(1, in), no, no, no, no},
		{null(1), no, maybe, yes, maybe},
		{not(null(1)), yes, maybe, no, maybe},
		{not(cmp(1, eq, i(8))), yes, maybe, no, maybe},
		{cmp(2, eq, s("x")), yes, no, no, yes},
		{cmp(2, ne, s("x")), no, no, yes, no},
		{cmp(2, startsWith, s("")), yes, no, yes, yes},
		{null(2), no, yes, no, no},
		{and(cmp(2, eq, s("x")), cmp(1, ge, i(3))), yes, no, no, maybe},
		{and(cmp(2, eq, s("x")), cmp(1, gt, i(3))), maybe, no, no, maybe},
		{or(cmp(2, eq, s("x")), cmp(1, gt, i(7))), yes, maybe, no, yes},
		{or(null(2), null(1)), no, yes, yes, maybe},
		{and(), yes, yes, yes, yes},
		{or(), no, no, no, no},
		{null(3), maybe, maybe, maybe, maybe},
		{null(4), maybe, maybe, maybe, maybe},
		{cmp(4, lt, day(0)), no, maybe, maybe, maybe},
		{cmp(4, le, day(30)), maybe, maybe, maybe, maybe}, // NULLs
		{cmp(4, gt, i(1<<40)), no, maybe, maybe, maybe},   // beyond the year 9999
		{not(null(11)), maybe, maybe, maybe, maybe},       // in a struct that may be NULL
		{null(5), maybe, maybe, maybe, maybe},             // counts of arrays are of elements
		{cmp(7, gt, f(1000)), maybe, maybe, maybe, maybe}, // NaN
		{cmp(7, lt, f(-2)), no, maybe, maybe, maybe},
		{cmp(7, ge, f(-1.5)), yes, maybe, maybe, maybe},
		{cmp(8, startsWith, s("ab")), yes, maybe, maybe, maybe},
		{cmp(8, startsWith, s("abc")), maybe, maybe, maybe, maybe},
		{cmp(8, startsWith, s("abcd")), maybe, maybe, maybe, maybe},
		{cmp(8, startsWith, s("abe")), no, maybe, maybe, maybe},
		{cmp(8, startsWith, s("abb")), no, maybe, maybe, maybe},
		{null(9), no, no, no, no},
	} {
		fl := filter(t, c.p)
		for name, of := range map[string]struct {
			add  *log.Add
			want int
		}{"whole": {whole, c.whole}, "none": {none, c.none}, "nulls": {nulls, c.nulls}, "broken": {broken, c.broken}} {
			got := no
			if fl.Inclusive(of.add) {
				got = maybe
			}
			if fl.Strict(of.add) {
				got++
			}
			if got != of.want {
				t.Errorf("%s of %s: %d, want %d", fl.SQL(), name, got, of.want)
			}
		}
	}
}

func TestSQL(t *testing.T) {
	p := or(and(cmp(2, eq, s("it's")), not(null(1))), cmp(1, in, i(1), i(2)), cmp(4, ge, i(0)), cmp(8, startsWith, s("a")), constant(true))
	want := "(p = 'it''s' AND NOT (n IS NULL)) OR n IN (1, 2) OR s.inner >= DATE '1970-01-01' OR startswith(t, 'a') OR TRUE"
	if got := filter(t, p).SQL(); got != want {
		t.Error(got)
	}
}

func TestPredicatesThatDoNotFit(t *testing.T) {
	deep := constant(true)
	for range 600 {
		deep = not(deep)
	}
	columns := partition.Columns{Names: []string{"p"}, Types: []schema.Type{{Kind: schema.String}}}
	for _, p := range []*planv1.Predicate{
		cmp(0, eq, i(1)), cmp(12, eq, i(1)), cmp(-1, eq, i(1)), null(6), cmp(6, eq, i(1)), cmp(3, eq, i(1)), cmp(5, eq, i(1)), cmp(1, eq), cmp(1, eq, i(1), i(2)), cmp(1, eq, s("x")),
		cmp(1, eq, &planv1.Value{}), cmp(1, startsWith, i(1)), cmp(1, planv1.CompareOp_COMPARE_OP_UNSPECIFIED, i(1)), cmp(1, 99, i(1)), deep, and(cmp(1, eq)), not(or(null(6))),
	} {
		if _, err := skip.New(table, columns, p, convert); !errors.Is(err, skip.ErrPredicate) {
			t.Errorf("%.100v: %v", p, err)
		}
	}
}

// Whatever rows a file has: a file with a row for which the predicate is true is read, and one that is taken to match as a whole does.
func TestNoRowIsLost(t *testing.T) {
	columns, err := partition.Of(table, []string{"p"})
	if err != nil {
		t.Fatal(err)
	}
	layout := stats.Some(table, []string{"p"}, [][]string{{"n"}, {"t"}})
	rapid.Check(t, func(t *rapid.T) {
		p := drawPredicate(t, 3)
		fl, err := skip.New(table, columns, p, convert)
		if err != nil {
			t.Fatal(err)
		}
		part := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "partition")
		file := stats.File{Records: int64(rapid.IntRange(1, 4).Draw(t, "rows")), Columns: make([]stats.Column, 2)}
		anyTrue, allTrue := false, true
		for range file.Records {
			row := map[int32]value.Value{2: {}}
			if part != "" {
				row[2] = value.OfString(part)
			}
			if rapid.Bool().Draw(t, "n") {
				row[1] = value.OfInt(rapid.Int64Range(0, 4).Draw(t, "n"))
			}
			if rapid.Bool().Draw(t, "t") {
				row[8] = value.OfString(rapid.StringMatching(`[ab]{0,2}`).Draw(t, "t"))
			}
			for at, id := range []int32{1, 8} {
				c, v := &file.Columns[at], row[id]
				if v.IsNull() {
					c.Nulls++
					continue
				}
				if c.Min.IsNull() || value.Compare(v, c.Min) < 0 {
					c.Min = v
				}
				if c.Max.IsNull() || value.Compare(v, c.Max) > 0 {
					c.Max = v
				}
			}
			holds := truth(p, row)
			anyTrue, allTrue = anyTrue || holds == 1, allTrue && holds == 1
		}
		text, err := layout.JSON(&file)
		if err != nil {
			t.Fatal(err)
		}
		a := add(part, text)
		if anyTrue && !fl.Inclusive(a) || fl.Strict(a) && !allTrue {
			t.Fatalf("%s of %s in %q: any %v all %v, inclusive %v strict %v", fl.SQL(), text, part, anyTrue, allTrue, fl.Inclusive(a), fl.Strict(a))
		}
	})
}

func drawPredicate(t *rapid.T, depth int) *planv1.Predicate {
	kinds := 3
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return null(rapid.SampledFrom([]int32{1, 2, 8}).Draw(t, "id"))
	case 1:
		return cmp(1, rapid.SampledFrom([]planv1.CompareOp{eq, ne, lt, le, gt, ge}).Draw(t, "op"), i(rapid.Int64Range(0, 4).Draw(t, "v")))
	case 2:
		id := rapid.SampledFrom([]int32{2, 8}).Draw(t, "id")
		text := rapid.StringMatching(`[abx]{0,2}`)
		if rapid.Bool().Draw(t, "in") {
			return cmp(id, in, s(text.Draw(t, "v")), s(text.Draw(t, "v")))
		}
		return cmp(id, rapid.SampledFrom([]planv1.CompareOp{eq, ne, lt, ge, startsWith}).Draw(t, "op"), s(text.Draw(t, "v")))
	case 3:
		return not(drawPredicate(t, depth-1))
	case 4:
		return and(drawPredicate(t, depth-1), drawPredicate(t, depth-1))
	}
	return or(drawPredicate(t, depth-1), drawPredicate(t, depth-1))
}

// truth is the value of a predicate for a row: 1, 0, or -1 for NULL.
func truth(p *planv1.Predicate, row map[int32]value.Value) int {
	is := map[bool]int{true: 1}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_IsNull:
		return is[row[k.IsNull.GetFieldId()].IsNull()]
	case *planv1.Predicate_Not:
		return []int{-1, 1, 0}[truth(k.Not, row)+1]
	case *planv1.Predicate_All:
		out := 1
		for _, q := range k.All.GetTerms() {
			if v := truth(q, row); v == 0 || v == -1 && out == 1 {
				out = v
			}
			if out == 0 {
				break
			}
		}
		return out
	case *planv1.Predicate_Any:
		out := 0
		for _, q := range k.Any.GetTerms() {
			if v := truth(q, row); v == 1 || v == -1 && out == 0 {
				out = v
			}
			if out == 1 {
				break
			}
		}
		return out
	case *planv1.Predicate_Comparison:
		v := row[k.Comparison.GetFieldId()]
		if v.IsNull() {
			return -1
		}
		found := false
		for _, constant := range k.Comparison.GetValues() {
			var c value.Value
			switch x := constant.GetKind().(type) {
			case *planv1.Value_Integer:
				c = value.OfInt(x.Integer)
			case *planv1.Value_String_:
				c = value.OfString(x.String_)
			}
			sign := value.Compare(v, c)
			switch k.Comparison.GetOp() {
			case eq, in:
				found = found || sign == 0
			case ne:
				found = sign != 0
			case lt:
				found = sign < 0
			case le:
				found = sign <= 0
			case gt:
				found = sign > 0
			case ge:
				found = sign >= 0
			case startsWith:
				found = strings.HasPrefix(v.Text(), c.Text())
			}
		}
		return is[found]
	}
	panic(fmt.Sprintf("%v", p))
}

// A file that was written when its column was narrower: its digits are those of the narrower type.
func TestWidenedColumns(t *testing.T) {
	a := add("x", `{"numRecords":1,"minValues":{"f":0.7},"maxValues":{"f":0.7},"nullCount":{"f":0}}`)
	was := float64(float32(0.7)) // below 0.7
	if !filter(t, cmp(7, lt, f(0.7))).Inclusive(a) || !filter(t, cmp(7, eq, f(was))).Inclusive(a) {
		t.Error("a file with a float's digits is left out")
	}
	money := &schema.Schema{Fields: []schema.Field{{Name: "m", Type: schema.Type{Kind: schema.Decimal, Precision: 10, Scale: 3}, Nullable: true}}}
	is := func(_ schema.Type, v *planv1.Value) (value.Value, error) {
		return value.OfDecimal(big.NewInt(v.GetInteger()), 3), nil
	}
	b := add("", `{"numRecords":1,"minValues":{"m":1.5},"maxValues":{"m":1.5},"nullCount":{"m":0}}`)
	for thousandths, want := range map[int64]bool{1500: true, 1499: false, 1501: false} {
		fl, err := skip.New(money, partition.Columns{}, cmp(1, eq, i(thousandths)), is)
		if err != nil || fl.Inclusive(b) != want {
			t.Errorf("%d: %v", thousandths, err)
		}
	}
}
