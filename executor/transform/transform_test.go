package transform_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/transform"
)

const (
	identity = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
	bucket   = planv1.TransformKind_TRANSFORM_KIND_BUCKET
	truncate = planv1.TransformKind_TRANSFORM_KIND_TRUNCATE
	year     = planv1.TransformKind_TRANSFORM_KIND_YEAR
	month    = planv1.TransformKind_TRANSFORM_KIND_MONTH
	day      = planv1.TransformKind_TRANSFORM_KIND_DAY
	hour     = planv1.TransformKind_TRANSFORM_KIND_HOUR
	void     = planv1.TransformKind_TRANSFORM_KIND_VOID
)

var (
	tBool   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_BOOLEAN}
	tInt    = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT32}
	tLong   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}
	tFloat  = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT32}
	tDouble = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_FLOAT64}
	tDate   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DATE}
	tTime   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIME_MICROS}
	tTS     = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS}
	tTZ     = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS}
	tNS     = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS}
	tString = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}
	tUUID   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_UUID}
	tBinary = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_BINARY}
	tList   = &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_LIST}
)

func decimalType(p, s int32) *planv1.Type {
	return &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_DECIMAL, Precision: p, Scale: s}
}

func open(t *testing.T) *sql.Conn {
	t.Helper()
	db, err := sql.Open("duckdb", "?threads=1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	// A zone far from UTC: no transform may depend on it.
	_, err = conn.ExecContext(t.Context(), "SET TimeZone='Pacific/Kiritimati'")
	require.NoError(t, err)
	require.NoError(t, transform.Register(t.Context(), conn))
	return conn
}

// apply evaluates the key as COPY does, over a column rather than a constant, and returns its parsed text; nil for NULL.
func apply(ctx context.Context, conn *sql.Conn, kind planv1.TransformKind, param int32, typ *planv1.Type, literal string) (*planv1.Value, error) {
	k, err := transform.New(kind, param, typ, "c")
	if err != nil {
		return nil, err
	}
	var text sql.NullString
	q := fmt.Sprintf("SELECT CAST(%s AS VARCHAR) FROM (SELECT unnest([%s]) AS c)", k.SQL, literal)
	if err := conn.QueryRowContext(ctx, q).Scan(&text); err != nil {
		return nil, err
	}
	if !text.Valid {
		return nil, nil
	}
	return k.Parse(text.String)
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
		return fmt.Sprintf("%se-%d", signed(k.Decimal.Unscaled), k.Decimal.Scale)
	}
	return "?"
}

func signed(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// The hash values are those of the Iceberg specification, appendix B; 2147483647 buckets show the hash itself.
func TestBucket_SpecificationHashes(t *testing.T) {
	conn := open(t)
	for _, c := range []struct {
		typ     *planv1.Type
		literal string
		hash    int32
	}{
		{tInt, "34", 2017239379},
		{tLong, "34::BIGINT", 2017239379},
		{decimalType(9, 2), "14.20::DECIMAL(9,2)", -500754589},
		{decimalType(38, 2), "14.20::DECIMAL(38,2)", -500754589},
		{tDate, "DATE '2017-11-16'", -653330422},
		{tTime, "TIME '22:31:08'", -662762989},
		{tTS, "TIMESTAMP '2017-11-16 22:31:08'", -2047944441},
		{tTS, "TIMESTAMP '2017-11-16 22:31:08.000001'", -1207196810},
		{tTZ, "TIMESTAMPTZ '2017-11-16 14:31:08-08:00'", -2047944441},
		{tTZ, "TIMESTAMPTZ '2017-11-16 14:31:08.000001-08:00'", -1207196810},
		{tNS, "TIMESTAMP_NS '2017-11-16 22:31:08.000001001'", -1207196810}, // V9
		{tString, "'iceberg'", 1210000089},
		{tUUID, "UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", 1488055340},
		{tBinary, `'\x00\x01\x02\x03'::BLOB`, -188683207},
	} {
		v, err := apply(t.Context(), conn, bucket, math.MaxInt32, c.typ, c.literal)
		require.NoError(t, err, c.literal)
		require.Equal(t, int64((c.hash&math.MaxInt32)%math.MaxInt32), v.GetInteger(), c.literal)
	}
}

func TestTransform_EqualsIcebergGo(t *testing.T) {
	conn := open(t)
	for _, n := range []int64{0, 1, -1, 9, -9, 10, -10, -11, 34, math.MaxInt32, math.MinInt32 + 100, -719162, 2932896} {
		for _, w := range []int32{1, 3, 10, 16, math.MaxInt32} {
			compare(t, conn, bucket, w, tInt, fmt.Sprintf("(%d)::INTEGER", n), iceberg.BucketTransform{NumBuckets: int(w)}, iceberg.Int32Literal(n))
			compare(t, conn, bucket, w, tDate, fmt.Sprintf("DATE '1970-01-01' + (%d)::INTEGER", n%3000000), iceberg.BucketTransform{NumBuckets: int(w)}, iceberg.DateLiteral(n%3000000))
			if w < 100 {
				compare(t, conn, truncate, w, tInt, fmt.Sprintf("(%d)::INTEGER", n), iceberg.TruncateTransform{Width: int(w)}, iceberg.Int32Literal(n))
			}
		}
	}
	for _, n := range []int64{0, 1, -1, 1 << 53, -(1 << 53), math.MaxInt64, math.MinInt64 + 100, -10, -11} {
		compare(t, conn, bucket, 16, tLong, fmt.Sprintf("(%d)::BIGINT", n), iceberg.BucketTransform{NumBuckets: 16}, iceberg.Int64Literal(n))
		compare(t, conn, truncate, 7, tLong, fmt.Sprintf("(%d)::BIGINT", n), iceberg.TruncateTransform{Width: 7}, iceberg.Int64Literal(n))
	}
	for _, us := range []int64{0, -1, 1, -1_000_000, -3_600_000_000, -3_600_000_001, 1510871468000001, -62135596800000000, 253402300799999999} {
		lit := fmt.Sprintf("make_timestamp((%d)::BIGINT)", us)
		tz := fmt.Sprintf("TIMESTAMPTZ 'epoch' + to_microseconds((%d)::BIGINT)", us)
		ts := iceberg.TimestampLiteral(us)
		for kind, tr := range map[planv1.TransformKind]iceberg.Transform{
			bucket: iceberg.BucketTransform{NumBuckets: 16}, year: iceberg.YearTransform{}, month: iceberg.MonthTransform{},
			day: iceberg.DayTransform{}, hour: iceberg.HourTransform{},
		} {
			compare(t, conn, kind, 16, tTS, lit, tr, ts)
			compare(t, conn, kind, 16, tTZ, tz, tr, ts)
		}
	}
	for _, d := range []int32{0, -1, 1, 365, -365, -366, -719162, 2932896, 11016} {
		lit := fmt.Sprintf("DATE '1970-01-01' + (%d)::INTEGER", d)
		for kind, tr := range map[planv1.TransformKind]iceberg.Transform{year: iceberg.YearTransform{}, month: iceberg.MonthTransform{}, day: iceberg.DayTransform{}} {
			compare(t, conn, kind, 0, tDate, lit, tr, iceberg.DateLiteral(d))
		}
	}
	for _, s := range []string{"", "a", "iceberg", "日本語テキスト", "😎😎😎x", "e\u0301e\u0301e\u0301", "a\x00b", strings.Repeat("x", 5000)} {
		lit := "decode('" + blobText(s) + "'::BLOB)"
		compare(t, conn, bucket, 16, tString, lit, iceberg.BucketTransform{NumBuckets: 16}, iceberg.StringLiteral(s))
		compare(t, conn, truncate, 3, tString, lit, iceberg.TruncateTransform{Width: 3}, iceberg.StringLiteral(s))
	}
	for _, b := range []string{"", "\x00", "\xff\x80abc", "abc"} {
		lit := "'" + blobText(b) + "'::BLOB"
		compare(t, conn, bucket, 16, tBinary, lit, iceberg.BucketTransform{NumBuckets: 16}, iceberg.BinaryLiteral(b))
		compare(t, conn, truncate, 2, tBinary, lit, iceberg.TruncateTransform{Width: 2}, iceberg.BinaryLiteral(b))
	}
	for range 5 {
		u := uuid.New()
		compare(t, conn, bucket, 16, tUUID, "UUID '"+u.String()+"'", iceberg.BucketTransform{NumBuckets: 16}, iceberg.UUIDLiteral(u))
	}
	for _, c := range []struct{ p, s int32 }{{4, 2}, {9, 2}, {18, 5}, {38, 0}, {38, 10}, {38, 38}} {
		for _, unscaled := range []string{"0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "-9999", "9999"} {
			n, _ := new(big.Int).SetString(unscaled, 10)
			if c.p == 4 && n.CmpAbs(big.NewInt(9000)) > 0 {
				continue
			}
			compareDecimal(t, conn, c.p, c.s, n)
		}
	}
	big38, _ := new(big.Int).SetString("12345678901234567890123456789012345678", 10)
	compareDecimal(t, conn, 38, 10, big38)
	compareDecimal(t, conn, 38, 38, new(big.Int).Neg(big38))
}

func compareDecimal(t *testing.T, conn *sql.Conn, p, s int32, n *big.Int) {
	t.Helper()
	d := iceberg.DecimalLiteral{Val: decimal128.FromBigInt(n), Scale: int(s)}
	lit := fmt.Sprintf("'%s'::DECIMAL(%d,%d)", decimal128.FromBigInt(n).ToString(s), p, s)
	compare(t, conn, bucket, 16, decimalType(p, s), lit, iceberg.BucketTransform{NumBuckets: 16}, d)
	compare(t, conn, truncate, 50, decimalType(p, s), lit, iceberg.TruncateTransform{Width: 50}, d)
	compare(t, conn, identity, 0, decimalType(p, s), lit, iceberg.IdentityTransform{}, d)
}

func blobText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02X`, s[i])
	}
	return b.String()
}

func compare(t *testing.T, conn *sql.Conn, kind planv1.TransformKind, param int32, typ *planv1.Type, literal string, tr iceberg.Transform, val iceberg.Literal) {
	t.Helper()
	have, err := apply(t.Context(), conn, kind, param, typ, literal)
	require.NoError(t, err, "%s of %s", tr, literal)
	want := tr.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: val})
	require.True(t, want.Valid)
	require.Equal(t, showLiteral(want.Val), show(have), "%s of %s", tr, literal)
}

func showLiteral(l iceberg.Literal) string {
	switch v := l.(type) {
	case iceberg.StringLiteral:
		return fmt.Sprintf("%q", string(v))
	case iceberg.BinaryLiteral:
		return fmt.Sprintf("%x", []byte(v))
	case iceberg.DecimalLiteral:
		return fmt.Sprintf("%se-%d", v.Val.BigInt(), v.Scale)
	case iceberg.DateLiteral:
		return fmt.Sprint(int32(v))
	}
	return fmt.Sprint(l.Any())
}

// V1
func TestHour_LastSecondBefore1970(t *testing.T) {
	v, err := apply(t.Context(), open(t), hour, 0, tTS, "TIMESTAMP '1969-12-31 23:59:59'")
	require.NoError(t, err)
	require.Equal(t, int64(-1), v.GetInteger())
}

// X4: the years at both ends of what the formats store.
func TestYear_Ends(t *testing.T) {
	conn := open(t)
	for literal, want := range map[string]int64{"TIMESTAMP '0001-01-01'": -1969, "TIMESTAMP '9999-12-31 23:59:59.999999'": 8029} {
		v, err := apply(t.Context(), conn, year, 0, tTS, literal)
		require.NoError(t, err)
		require.Equal(t, want, v.GetInteger(), literal)
	}
}

// A wrapped partition value hides its row from range filters, and an unbounded one cannot be stored.
func TestTruncate_LowEnd(t *testing.T) {
	conn := open(t)
	for _, c := range []struct {
		typ     *planv1.Type
		literal string
		width   int32
		ok      bool
	}{
		{tInt, "(-2147483648)::INTEGER", 16, true},
		{tInt, "(-2147483648)::INTEGER", 10, false},
		{tInt, "(-2147483640)::INTEGER", 10, true},
		{tInt, "2147483647::INTEGER", math.MaxInt32, true},
		{tLong, "(-9223372036854775808)::BIGINT", 1024, true},
		{tLong, "(-9223372036854775808)::BIGINT", 10, false},
		{tLong, "9223372036854775807::BIGINT", math.MaxInt32, true},
		{decimalType(4, 2), "(-99.99)::DECIMAL(4,2)", 10, false},
		{decimalType(4, 2), "(-99.90)::DECIMAL(4,2)", 10, true},
		{decimalType(38, 0), "(-99999999999999999999999999999999999999)::DECIMAL(38,0)", 10, false},
		{decimalType(38, 0), "99999999999999999999999999999999999999::DECIMAL(38,0)", 10, true},
	} {
		v, err := apply(t.Context(), conn, truncate, c.width, c.typ, c.literal)
		if !c.ok {
			require.Error(t, err, "%s to width %d gave %s", c.literal, c.width, show(v))
			continue
		}
		require.NoError(t, err, "%s to width %d", c.literal, c.width)
	}
}

// V10, V11, V13: every value comes back as itself.
func TestIdentity_ExactValues(t *testing.T) {
	conn := open(t)
	for _, c := range []struct {
		typ     *planv1.Type
		literal string
		want    string
	}{
		{tString, "NULL::VARCHAR", "NULL"},
		{tString, "''", `""`},
		{tString, "'NULL'", `"NULL"`},
		{tString, "'null'", `"null"`},
		{tString, "'__HIVE_DEFAULT_PARTITION__'", `"__HIVE_DEFAULT_PARTITION__"`},
		{tString, "'11/12/13'", `"11/12/13"`}, // V2
		{tString, "'a' || chr(0) || 'b'", `"a\x00b"`},
		{tBool, "true", "true"},
		{tBool, "false", "false"},
		{tFloat, "'nan'::FLOAT", "NaN"},
		{tFloat, "0.1::FLOAT", "0.1"},
		{tFloat, "16777217::FLOAT", "1.6777216e+07"},
		{tDouble, "'-nan'::DOUBLE", "NaN"},
		{tDouble, "'-inf'::DOUBLE", "-Inf"},
		{tDouble, "(-0.0)::DOUBLE", "0"},
		{tDouble, "0.1::DOUBLE + 0.2::DOUBLE", "0.30000000000000004"},
		{tDouble, "5e-324::DOUBLE", "5e-324"},
		{tDate, "DATE '1969-12-31'", "-1"},
		{tTime, "TIME '23:59:59.999999'", "86399999999"},
		{tTS, "TIMESTAMP '1969-12-31 23:59:59.999999'", "-1"},
		{tTZ, "TIMESTAMPTZ '1970-01-01 01:00:00+02'", "-3600000000"},
		{tNS, "TIMESTAMP_NS '1970-01-01 00:00:00.000000001'", "1"},
		{tUUID, "UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "f79c3e09677c4bbda4793f349cb785e7"},
		{tBinary, `'\x00\xFF'::BLOB`, "00ff"},
		{tBinary, `''::BLOB`, ""},
		{decimalType(9, 2), "(-0.05)::DECIMAL(9,2)", "-5e-2"},
		{decimalType(38, 38), "(-0.00000000000000000000000000000000000001)::DECIMAL(38,38)", "-1e-38"},
	} {
		v, err := apply(t.Context(), conn, identity, 0, c.typ, c.literal)
		require.NoError(t, err, c.literal)
		require.Equal(t, c.want, show(v), c.literal)
	}
}

func TestVoid_IsNull(t *testing.T) {
	k, err := transform.New(void, 0, tList, "c")
	require.NoError(t, err)
	require.True(t, k.Void)
}

func TestNew_Refusals(t *testing.T) {
	for _, c := range []struct {
		kind  planv1.TransformKind
		param int32
		typ   *planv1.Type
		want  string
	}{
		{identity, 0, tList, "identity does not apply"},
		{bucket, 0, tInt, "at least one bucket"},
		{bucket, 4, tDouble, "bucket does not apply"},
		{bucket, 4, tBool, "bucket does not apply"},
		{truncate, 0, tInt, "positive width"},
		{truncate, 4, tDate, "truncate does not apply"},
		{year, 0, tString, "does not apply"},
		{hour, 0, tDate, "hour does not apply"},
		{99, 0, tInt, "not known"},
	} {
		_, err := transform.New(c.kind, c.param, c.typ, "c")
		require.ErrorContains(t, err, c.want)
	}
}
