package splice

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
)

// Range is what statistics say about the values of a leaf.
type Range struct {
	Low, High           *planv1.Value // nil: not known, or there are no values
	LowExact, HighExact bool
	Nulls               int64 // -1: not known
}

// trusted says whether a writer's statistics are right. Those on the list below are not: PARQUET-251 (binary columns), PARQUET-686 (unsigned order),
// ARROW-8991 (decimals). Files that do not say who wrote them may be of such a writer.
func trusted(createdBy string) bool {
	app, rest, _ := strings.Cut(createdBy, " version ")
	app = strings.ToLower(strings.TrimSpace(app))
	switch app {
	case "", "parquet-cpp", "unknown":
		return false
	case "parquet-mr":
		return atLeast(rest, 1, 10)
	case "parquet-cpp-arrow":
		return atLeast(rest, 4, 0)
	case "impala":
		return atLeast(rest, 3, 0)
	}
	return true
}

// atLeast compares the version that a text begins with. One that cannot be read is too old.
func atLeast(text string, major, minor int) bool {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	b, err := strconv.Atoi(strings.TrimRight(parts[1], "-abcdefghijklmnopqrstuvwxyz ()"))
	return err == nil && (a > major || a == major && b >= minor)
}

// rangeOf reads the statistics of a chunk; nil: there are none that can be used.
func (in *Input) rangeOf(c *footer.Chunk, l *Leaf) *Range {
	s := c.Stats
	if s == nil || !in.trusted {
		return nil
	}
	r := &Range{Nulls: s.Nulls}
	if s.Nulls < 0 || s.Nulls > c.Values {
		r.Nulls = -1
	}
	if ordered := in.meta.Ordered; ordered == nil || !ordered[l.source] { // the format says that the order is undefined then
		return r
	}
	if s.HasMin && s.HasMax {
		low, lok := valueOf(l, s.Min)
		high, hok := valueOf(l, s.Max)
		if lok && hok && Compare(low, high) <= 0 {
			r.Low, r.High = low, high
			r.LowExact, r.HighExact = s.MinExact != footer.No, s.MaxExact != footer.No
			if k := l.Field.GetType().GetKind(); k == planv1.TypeKind_TYPE_KIND_STRING || k == planv1.TypeKind_TYPE_KIND_BINARY {
				r.LowExact, r.HighExact = s.MinExact == footer.Yes, s.MaxExact == footer.Yes // writers have cut long ones without saying so
			}
		}
	}
	return r
}

// valueOf reads a plain-encoded value. NaN is no bound.
func valueOf(l *Leaf, b []byte) (*planv1.Value, bool) {
	switch l.element.Physical {
	case footer.Boolean:
		if len(b) != 1 {
			return nil, false
		}
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: b[0] != 0}}, true
	case footer.Int32:
		if len(b) != 4 {
			return nil, false
		}
		return integerValue(l, int64(int32(binary.LittleEndian.Uint32(b)))), true
	case footer.Int64:
		if len(b) != 8 {
			return nil, false
		}
		return integerValue(l, int64(binary.LittleEndian.Uint64(b))), true
	case footer.Float:
		if len(b) != 4 {
			return nil, false
		}
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}}, f == f
	case footer.Double:
		if len(b) != 8 {
			return nil, false
		}
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, f == f
	case footer.FixedLenByteArray:
		if len(b) != int(l.element.TypeLength) {
			return nil, false
		}
	}
	switch l.Field.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return decimalValue(signedInt(b), l.Field.GetType().GetScale()), true
	case planv1.TypeKind_TYPE_KIND_STRING:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: string(b)}}, true
	}
	return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, true
}

func integerValue(l *Leaf, n int64) *planv1.Value {
	if t := l.Field.GetType(); t.GetKind() == planv1.TypeKind_TYPE_KIND_DECIMAL {
		return decimalValue(big.NewInt(n), t.GetScale())
	}
	return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}
}

func decimalValue(n *big.Int, scale int32) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: shortest(n), Scale: scale}}}
}

// signedInt reads big-endian two's complement.
func signedInt(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// shortest writes big-endian two's complement in as few bytes as there can be.
func shortest(n *big.Int) []byte {
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		size = new(big.Int).Not(n).BitLen()/8 + 1
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return n.FillBytes(make([]byte, size))
}

// Compare orders two values of one type as the formats do: text and bytes by their unsigned bytes.
func Compare(a, b *planv1.Value) int {
	switch x := a.GetKind().(type) {
	case *planv1.Value_Boolean:
		return cmp.Compare(boolInt(x.Boolean), boolInt(b.GetBoolean()))
	case *planv1.Value_Integer:
		return cmp.Compare(x.Integer, b.GetInteger())
	case *planv1.Value_Float32:
		return cmp.Compare(x.Float32, b.GetFloat32())
	case *planv1.Value_Float64:
		return cmp.Compare(x.Float64, b.GetFloat64())
	case *planv1.Value_String_:
		return strings.Compare(x.String_, b.GetString_())
	case *planv1.Value_Decimal:
		return signedInt(x.Decimal.GetUnscaled()).Cmp(signedInt(b.GetDecimal().GetUnscaled()))
	default:
		return bytes.Compare(a.GetBinary(), b.GetBinary())
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
