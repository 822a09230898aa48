package sinktest

import (
	"math"
	"math/big"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// columnType is a type with the values by which sinks are tested: the ends of its range, and what formats tend to confuse.
type columnType struct {
	name   string
	typ    *planv1.Type
	values []*planv1.Value
	nan    *planv1.Value // of floating-point types
}

// TypeNames are the names that Options.Without takes.
func TypeNames() []string {
	var names []string
	for _, t := range columnTypes() {
		names = append(names, t.name)
	}
	return append(names, "list", "struct", "map")
}

// KnownType reports whether Options.Without takes a name.
func KnownType(name string) bool {
	for _, n := range TypeNames() {
		if n == name {
			return true
		}
	}
	return false
}

func integers(values ...int64) []*planv1.Value {
	var out []*planv1.Value
	for _, v := range values {
		out = append(out, &planv1.Value{Kind: &planv1.Value_Integer{Integer: v}})
	}
	return out
}

func texts(values ...string) []*planv1.Value {
	var out []*planv1.Value
	for _, v := range values {
		out = append(out, &planv1.Value{Kind: &planv1.Value_String_{String_: v}})
	}
	return out
}

func binaries(values ...string) []*planv1.Value {
	var out []*planv1.Value
	for _, v := range values {
		out = append(out, &planv1.Value{Kind: &planv1.Value_Binary{Binary: []byte(v)}})
	}
	return out
}

func doubles(values ...float64) []*planv1.Value {
	var out []*planv1.Value
	for _, v := range values {
		out = append(out, &planv1.Value{Kind: &planv1.Value_Float64{Float64: v}})
	}
	return out
}

func singles(values ...float32) []*planv1.Value {
	var out []*planv1.Value
	for _, v := range values {
		out = append(out, &planv1.Value{Kind: &planv1.Value_Float32{Float32: v}})
	}
	return out
}

// decimals are given as unscaled digits.
func decimals(scale int32, unscaled ...string) []*planv1.Value {
	var out []*planv1.Value
	for _, u := range unscaled {
		n, _ := new(big.Int).SetString(u, 10)
		out = append(out, &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(n), Scale: scale}}})
	}
	return out
}

// twosComplement is the shortest big-endian form.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	size := new(big.Int).Not(n).BitLen()/8 + 1
	b := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size))).Bytes() //nolint:gosec // a few bytes
	return b
}

// Timestamps from the year 1 to 9999, in microseconds.
const (
	firstMicros = -62135596800000000
	lastMicros  = 253402300799999999
)

func columnTypes() []columnType {
	micros := integers(firstMicros, -1, 0, 1, lastMicros)
	nanos := integers(-1, 0, 1700000000123456789)
	return []columnType{
		{"boolean", typ(planv1.TypeKind_TYPE_KIND_BOOLEAN), []*planv1.Value{{Kind: &planv1.Value_Boolean{Boolean: false}}, {Kind: &planv1.Value_Boolean{Boolean: true}}}, nil},
		{"int8", typ(planv1.TypeKind_TYPE_KIND_INT8), integers(math.MinInt8, 0, math.MaxInt8), nil},
		{"int16", typ(planv1.TypeKind_TYPE_KIND_INT16), integers(math.MinInt16, 0, math.MaxInt16), nil},
		{"int32", typ(planv1.TypeKind_TYPE_KIND_INT32), integers(math.MinInt32, 0, math.MaxInt32), nil},
		{"int64", typ(planv1.TypeKind_TYPE_KIND_INT64), integers(math.MinInt64, -1, 0, math.MaxInt64), nil},
		{"float32", typ(planv1.TypeKind_TYPE_KIND_FLOAT32), singles(float32(math.Inf(-1)), -1.5, 0, math.MaxFloat32, float32(math.Inf(1))), singles(float32(math.NaN()))[0]},
		{"float64", typ(planv1.TypeKind_TYPE_KIND_FLOAT64), doubles(math.Inf(-1), -0.1, 0, math.SmallestNonzeroFloat64, math.MaxFloat64, math.Inf(1)), doubles(math.NaN())[0]},
		{"decimal", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 9, Scale: 2}, decimals(2, "-999999999", "-1", "0", "1", "128", "999999999"), nil},
		{"decimal38", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: 38, Scale: 10}, decimals(10, "-99999999999999999999999999999999999999", "0", "99999999999999999999999999999999999999"), nil},
		{"date", typ(planv1.TypeKind_TYPE_KIND_DATE), integers(-719162, -25567, -1, 0, 2932896), nil},
		{"time", typ(planv1.TypeKind_TYPE_KIND_TIME_MICROS), integers(0, 1, 86399999999), nil},
		{"timestamp", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS), micros, nil},
		{"timestamptz", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS), micros, nil},
		{"timestamp_ns", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS), nanos, nil},
		{"timestamptz_ns", typ(planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS), nanos, nil},
		{"string", typ(planv1.TypeKind_TYPE_KIND_STRING), texts("", " ", "a", "é", "日本語", "😀", "a/b", "50%", "%2F", "a=b", "..", "null", "it's \"so\" \\", "a\nb", "#?&+:"), nil},
		{"uuid", typ(planv1.TypeKind_TYPE_KIND_UUID), binaries("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), nil},
		{"fixed", &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FIXED, Length: 4}, binaries("\x00\x00\x00\x00", "\xff/%\x80"), nil},
		{"binary", typ(planv1.TypeKind_TYPE_KIND_BINARY), binaries("", "\x00", "/%=", "\xff\xfe"), nil},
	}
}
