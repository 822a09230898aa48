package iceberg

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

const (
	kBool  = planv1.TypeKind_TYPE_KIND_BOOLEAN
	kInt   = planv1.TypeKind_TYPE_KIND_INT32
	kLong  = planv1.TypeKind_TYPE_KIND_INT64
	kFloat = planv1.TypeKind_TYPE_KIND_FLOAT32
	kDbl   = planv1.TypeKind_TYPE_KIND_FLOAT64
	kDec   = planv1.TypeKind_TYPE_KIND_DECIMAL
	kDate  = planv1.TypeKind_TYPE_KIND_DATE
	kTime  = planv1.TypeKind_TYPE_KIND_TIME_MICROS
	kTS    = planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS
	kTSTZ  = planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS
	kStr   = planv1.TypeKind_TYPE_KIND_STRING
	kUUID  = planv1.TypeKind_TYPE_KIND_UUID
	kFixed = planv1.TypeKind_TYPE_KIND_FIXED
	kBin   = planv1.TypeKind_TYPE_KIND_BINARY

	tIdentity = planv1.TransformKind_TRANSFORM_KIND_IDENTITY
	tBucket   = planv1.TransformKind_TRANSFORM_KIND_BUCKET
	tTruncate = planv1.TransformKind_TRANSFORM_KIND_TRUNCATE
	tYear     = planv1.TransformKind_TRANSFORM_KIND_YEAR
	tMonth    = planv1.TransformKind_TRANSFORM_KIND_MONTH
	tDay      = planv1.TransformKind_TRANSFORM_KIND_DAY
	tHour     = planv1.TransformKind_TRANSFORM_KIND_HOUR
	tVoid     = planv1.TransformKind_TRANSFORM_KIND_VOID
)

func decimal(name string, p, s int32) *planv1.Field {
	return &planv1.Field{Name: name, Type: &planv1.Type{Kind: kDec, Precision: p, Scale: s}}
}

// allTypes is a column of every primitive type of format version 2.
func allTypes() []*planv1.Field {
	return []*planv1.Field{
		required(field("id", kLong)), field("bo", kBool), field("i", kInt), field("l", kLong), field("f", kFloat), field("d", kDbl),
		decimal("dec9", 9, 2), decimal("dec18", 18, 0), decimal("dec38", 38, 10), field("dt", kDate), field("tm", kTime), field("ts", kTS), field("tz", kTSTZ),
		field("s", kStr), field("u", kUUID),
		{Name: "fx", Type: &planv1.Type{Kind: kFixed, Length: 4}},
		field("b", kBin),
	}
}

// allRows hold the values at which other implementations went wrong (V1, V2, V5, V10, V11, V13).
func allRows() []row {
	const (
		u1 = "00000000-0000-0000-0000-000000000001"
		u2 = "f79c3e09-677c-4bbd-a479-512f87f77acf"
	)
	second, day := int64(1_000_000), int64(86_400_000_000)
	return []row{
		{vInt(1), vBool(true), vInt(0), vInt(0), vF32(0), vF64(0), vDec("0", 2), vDec("0", 0), vDec("0", 10), vInt(0), vInt(0), vInt(0), vInt(0), vStr("a"), vUUID(u1), vBin(0, 0, 0, 0), vBin(0)},
		{vInt(2), vBool(false), vInt(-1), vInt(-1), vF32(-1.5), vF64(-1.5), vDec("-1", 2), vDec("-1", 0), vDec("-1", 10), vInt(-1), vInt(1), vInt(-1), vInt(-1), vStr(""), vUUID(u2), vBin(255, 255, 255, 255), vBin()},
		{vInt(3), null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null},
		{
			vInt(4), vBool(true), vInt(math.MaxInt32), vInt(math.MaxInt64), vF32(float32(math.NaN())), vF64(math.NaN()), vDec("999999999", 2), vDec("999999999999999999", 0),
			vDec("99999999999999999999999999999999999999", 10), vInt(19782), vInt(day - 1), vInt(19782*day + 3600*second), vInt(19782*day + 3600*second), vStr("null"), vUUID(u2), vBin(1, 2, 3, 4), vBin(255, 255, 255),
		},
		{
			vInt(5), vBool(false), vInt(-1000), vInt(math.MinInt64 + 1000), vF32(float32(math.Inf(1))), vF64(math.Inf(-1)), vDec("-999999999", 2), vDec("-999999999999999999", 0),
			vDec("-99999999999999999999999999999999999999", 10), vInt(-719162), vInt(43_200_000_000), vInt(-1 * second), vInt(-3600 * second), vStr("11/12/13"), vUUID(u1), vBin(9, 9, 9, 9), vBin(0, 0),
		},
		{
			vInt(6), vBool(true), vInt(15), vInt(15), vF32(3.25), vF64(3.25), vDec("123456", 2), vDec("1000", 0), vDec("12345678901234567890", 10), vInt(-365), vInt(5), vInt(-365 * day), vInt(-365*day - 1),
			vStr("\ud7ff\ud7ff\U0010ffff end"), vUUID(u1), vBin(1, 2, 3, 5), vBin([]byte("a binary value longer than sixteen bytes")...),
		},
		{
			vInt(7), vBool(false), vInt(16), vInt(17), vF32(float32(math.Copysign(0, -1))), vF64(math.Copysign(0, -1)), vDec("-123456", 2), vDec("-1000", 0), vDec("-12345678901234567890", 10), vInt(11016), vInt(7), vInt(11016 * day), vInt(11016*day + 5),
			vStr("😎 data#1=%20 a string longer than sixteen code points"), vUUID(u2), vBin(1, 2, 3, 6), vBin([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")...),
		},
	}
}

func clause(col string, tr planv1.TransformKind, param ...int32) *sinkv1.PartitionClause {
	c := &sinkv1.PartitionClause{Column: col, Transform: tr}
	if len(param) > 0 {
		c.Param = param[0]
	}
	return c
}

// partitionings is every transform on every type that takes it.
func partitionings() map[string][]*sinkv1.PartitionClause {
	out := map[string][]*sinkv1.PartitionClause{
		"plain":   nil,
		"void_s":  {clause("s", tVoid)},
		"several": {clause("ts", tMonth), clause("s", tIdentity), clause("l", tBucket, 3), clause("dec9", tTruncate, 50)},
		// Two named Avro types of one name.
		"twice": {clause("dec9", tIdentity), clause("dec9", tTruncate, 10), clause("u", tIdentity), clause("fx", tIdentity)},
	}
	for _, f := range allTypes()[1:] {
		out["identity_"+f.GetName()] = []*sinkv1.PartitionClause{clause(f.GetName(), tIdentity)}
	}
	for _, c := range strings.Split("i l dec9 dec18 dec38 dt tm ts tz s u fx b", " ") {
		out["bucket_"+c] = []*sinkv1.PartitionClause{clause(c, tBucket, 4)}
	}
	for _, c := range strings.Split("i l dec9 dec18 dec38 s b", " ") {
		out["truncate_"+c] = []*sinkv1.PartitionClause{clause(c, tTruncate, 10)}
	}
	for _, c := range strings.Split("dt ts tz", " ") {
		out["year_"+c] = []*sinkv1.PartitionClause{clause(c, tYear)}
		out["month_"+c] = []*sinkv1.PartitionClause{clause(c, tMonth)}
		out["day_"+c] = []*sinkv1.PartitionClause{clause(c, tDay)}
		if c != "dt" {
			out["hour_"+c] = []*sinkv1.PartitionClause{clause(c, tHour)}
		}
	}
	return out
}

// TestMatrix_EveryTypeAndTransform commits every transform on every type, and reads the rows back with iceberg-go. With SIGNET_TEST_WAREHOUSE it leaves the
// tables for other implementations, and beside them the rows that they must find.
func TestMatrix_EveryTypeAndTransform(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		for name, parts := range partitionings() {
			t.Run(fmt.Sprintf("v%s_%s", version, name), func(t *testing.T) {
				h := newHost(t, fmt.Sprintf("v%s_%s", version, name))
				c := h.client(New())
				createTable(t, h, c, &sinkv1.TableDefinition{
					Schema: &planv1.Schema{Fields: allTypes()}, Partition: parts, Properties: map[string]string{"format-version": version},
				})
				j := newJob(t, h, c)
				files := j.write(allRows()...)
				half := len(files) / 2
				j.land(files[:half], files[half:])
				readBack(t, h, int64(len(allRows())))
				leaveExpected(t, h, parquetOf(t, j.spec.GetSchema().GetFields(), allRows()))
			})
		}
	}
}

// readBack counts rows with iceberg-go's reader.
func readBack(t *testing.T, h *testHost, rows int64) {
	t.Helper()
	tbl, err := h.table().Scan().ToArrowTable(t.Context())
	require.NoError(t, err)
	defer tbl.Release()
	require.Equal(t, rows, tbl.NumRows())
}

// TestNames_OddPartitionColumns: names that Avro forbids, and values that paths forbid (V2, V3, V8).
func TestNames_OddPartitionColumns(t *testing.T) {
	h := newHost(t, "names")
	c := h.client(New())
	names := []string{"a key", "😎", "a.b", "9x", "a/b", "data#1", "größe", `q"q`, "a_x20key"}
	def := &sinkv1.TableDefinition{Schema: &planv1.Schema{Fields: []*planv1.Field{field("id", kLong)}}}
	for _, n := range names {
		def.Schema.Fields = append(def.Schema.Fields, field(n, kStr))
		def.Partition = append(def.Partition, clause(n, tIdentity))
	}
	createTable(t, h, c, def)
	j := newJob(t, h, c)
	var rows []row
	for i, v := range []*planv1.Value{vStr("11/12/13"), vStr("a=b&c%20 d"), vStr(""), null, vStr("null")} {
		r := row{vInt(int64(i))}
		for range names {
			r = append(r, v)
		}
		rows = append(rows, r)
	}
	j.land(j.write(rows...))
	readBack(t, h, 5)
	resp, _, err := scanAll(t, h, c, "")
	require.NoError(t, err)
	require.Len(t, resp.GetFiles(), 5)
	leaveExpected(t, h, parquetOf(t, j.spec.GetSchema().GetFields(), rows))
}

// leaveExpected puts the rows of a table beside the warehouse that other implementations will read.
func leaveExpected(t *testing.T, h *testHost, rows []byte) {
	t.Helper()
	if dir := os.Getenv("SIGNET_TEST_WAREHOUSE"); dir != "" {
		expected := filepath.Join(dir, "expected")
		require.NoError(t, os.MkdirAll(expected, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(expected, h.name+".parquet"), rows, 0o600))
	}
}
