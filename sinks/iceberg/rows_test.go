package iceberg

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icebergo "github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/iceberg/internal/meta"
	"github.com/signet-io/signet/sinks/iceberg/internal/value"
)

// A row is one value per top-level column. These helpers play the executor: they route rows to partitions, write Parquet and measure columns. Transforms
// are iceberg-go's, so that they are not what is tested.
type row []*planv1.Value

var (
	null  = &planv1.Value{}
	vInt  = func(n int64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}} }
	vStr  = func(s string) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_String_{String_: s}} }
	vBin  = func(b ...byte) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}} }
	vBool = func(b bool) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: b}} }
	vF32  = func(f float32) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float32{Float32: f}} }
	vF64  = func(f float64) *planv1.Value { return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}} }
)

func vDec(text string, scale int32) *planv1.Value {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic(text)
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(n), Scale: scale}}}
}

func vUUID(s string) *planv1.Value { u := uuid.MustParse(s); return vBin(u[:]...) }

// partition is the tuple of a row.
func partition(t testing.TB, spec *planv1.WriteSpec, r row) []*planv1.Value {
	t.Helper()
	var out []*planv1.Value
	for _, p := range spec.GetPartition() {
		i := slices.IndexFunc(spec.GetSchema().GetFields(), func(f *planv1.Field) bool { return f.GetId() == p.GetSourceId() })
		out = append(out, transformed(t, meta.Transform{Kind: p.GetTransform(), Param: p.GetParam()}, spec.GetSchema().GetFields()[i].GetType(), p.GetResultType(), r[i]))
	}
	return out
}

func transformed(t testing.TB, tr meta.Transform, source, result *planv1.Type, v *planv1.Value) *planv1.Value {
	t.Helper()
	ice, err := icebergo.ParseTransform(tr.String())
	require.NoError(t, err)
	in := icebergo.Optional[icebergo.Literal]{}
	if !value.IsNull(v) {
		in.Valid, in.Val = true, literal(t, source, v)
	}
	out := ice.Apply(in)
	if !out.Valid {
		return null
	}
	switch x := out.Val.(type) {
	case icebergo.Int32Literal:
		return vInt(int64(x))
	case icebergo.Int64Literal:
		return vInt(int64(x))
	case icebergo.DateLiteral:
		return vInt(int64(x))
	case icebergo.TimeLiteral:
		return vInt(int64(x))
	case icebergo.TimestampLiteral:
		return vInt(int64(x))
	case icebergo.StringLiteral:
		return vStr(string(x))
	case icebergo.BinaryLiteral:
		return vBin(x...)
	case icebergo.DecimalLiteral:
		return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: meta.TwosComplement(x.Val.BigInt()), Scale: result.GetScale()}}}
	}
	return v // identity of the rest
}

func literal(t testing.TB, typ *planv1.Type, v *planv1.Value) icebergo.Literal {
	t.Helper()
	switch typ.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return icebergo.BoolLiteral(v.GetBoolean())
	case planv1.TypeKind_TYPE_KIND_INT32:
		return icebergo.Int32Literal(v.GetInteger())
	case planv1.TypeKind_TYPE_KIND_INT64:
		return icebergo.Int64Literal(v.GetInteger())
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return icebergo.Float32Literal(v.GetFloat32())
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return icebergo.Float64Literal(v.GetFloat64())
	case planv1.TypeKind_TYPE_KIND_DATE:
		return icebergo.DateLiteral(v.GetInteger())
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return icebergo.TimeLiteral(v.GetInteger())
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return icebergo.TimestampLiteral(v.GetInteger())
	case planv1.TypeKind_TYPE_KIND_STRING:
		return icebergo.StringLiteral(v.GetString_())
	case planv1.TypeKind_TYPE_KIND_UUID:
		return icebergo.UUIDLiteral(uuid.UUID(v.GetBinary()))
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return icebergo.FixedLiteral(v.GetBinary())
	case planv1.TypeKind_TYPE_KIND_BINARY:
		return icebergo.BinaryLiteral(v.GetBinary())
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		n := meta.FromTwosComplement(v.GetDecimal().GetUnscaled())
		return icebergo.DecimalLiteral{Val: decimal128.FromBigInt(n), Scale: int(typ.GetScale())}
	}
	t.Fatalf("no literal of %v", typ)
	return nil
}

// write writes the rows as real files, one per partition, and returns their records.
func (j *job) write(rows ...row) []*planv1.DataFile {
	j.t.Helper()
	var keys []string
	groups := map[string][]row{}
	tuples := map[string][]*planv1.Value{}
	for _, r := range rows {
		tuple := partition(j.t, j.spec, r)
		key := fmt.Sprint(tuple)
		if _, ok := groups[key]; !ok {
			keys = append(keys, key)
		}
		groups[key], tuples[key] = append(groups[key], r), tuple
	}
	var out []*planv1.DataFile
	for _, k := range keys {
		out = append(out, j.file(groups[k], tuples[k]))
	}
	return out
}

func (j *job) file(rows []row, tuple []*planv1.Value) *planv1.DataFile {
	j.t.Helper()
	attempt := uuid.NewString()
	uri := fmt.Sprintf("%s/%s/0/0/%s/0-0-%s-0.parquet", j.spec.GetDataLocation(), j.id, attempt, attempt)
	raw := parquetOf(j.t, j.spec.GetSchema().GetFields(), rows)
	path := j.h.path(uri)
	require.NoError(j.t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(j.t, os.WriteFile(path, raw, 0o600))
	f := &planv1.DataFile{
		Path: uri, Format: planv1.FileFormat_FILE_FORMAT_PARQUET, RecordCount: int64(len(rows)), SizeBytes: int64(len(raw)), Partition: tuple,
		SplitOffsets: []int64{4}, SortOrderId: j.spec.GetSortOrderId(),
	}
	for i, col := range j.spec.GetSchema().GetFields() {
		if !meta.IsNested(col.GetType()) {
			f.Columns = append(f.Columns, measure(col, rows, i))
		}
	}
	return f
}

func measure(col *planv1.Field, rows []row, i int) *planv1.ColumnMetrics {
	n, nulls, nans, size := int64(len(rows)), int64(0), int64(0), int64(50)
	m := &planv1.ColumnMetrics{FieldId: col.GetId(), ValueCount: &n, NullCount: &nulls, SizeBytes: &size}
	if k := col.GetType().GetKind(); k == planv1.TypeKind_TYPE_KIND_FLOAT32 || k == planv1.TypeKind_TYPE_KIND_FLOAT64 {
		m.NanCount = &nans
	}
	for _, r := range rows {
		v := r[i]
		switch {
		case value.IsNull(v):
			nulls++
		case value.IsNaN(v):
			nans++
		default:
			if m.GetLower() == nil || value.Compare(v, m.GetLower().GetValue()) < 0 {
				m.Lower = &planv1.Bound{Value: v, Exact: true}
			}
			if m.GetUpper() == nil || value.Compare(v, m.GetUpper().GetValue()) > 0 {
				m.Upper = &planv1.Bound{Value: v, Exact: true}
			}
		}
	}
	return m
}

func arrowType(t testing.TB, typ *planv1.Type) arrow.DataType {
	t.Helper()
	switch typ.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return arrow.FixedWidthTypes.Boolean
	case planv1.TypeKind_TYPE_KIND_INT32:
		return arrow.PrimitiveTypes.Int32
	case planv1.TypeKind_TYPE_KIND_INT64:
		return arrow.PrimitiveTypes.Int64
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return arrow.PrimitiveTypes.Float32
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return arrow.PrimitiveTypes.Float64
	case planv1.TypeKind_TYPE_KIND_DATE:
		return arrow.FixedWidthTypes.Date32
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return arrow.FixedWidthTypes.Time64us
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case planv1.TypeKind_TYPE_KIND_STRING:
		return arrow.BinaryTypes.String
	case planv1.TypeKind_TYPE_KIND_BINARY:
		return arrow.BinaryTypes.Binary
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return &arrow.FixedSizeBinaryType{ByteWidth: int(typ.GetLength())}
	case planv1.TypeKind_TYPE_KIND_UUID:
		return extensions.NewUUIDType()
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return &arrow.Decimal128Type{Precision: typ.GetPrecision(), Scale: typ.GetScale()}
	}
	t.Fatalf("no Arrow type for %v", typ)
	return nil
}

func fieldID(id int32) arrow.Metadata {
	return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(int(id))})
}

func parquetOf(t testing.TB, cols []*planv1.Field, rows []row) []byte {
	t.Helper()
	var fields []arrow.Field
	for _, c := range cols {
		fields = append(fields, arrow.Field{Name: c.GetName(), Type: arrowType(t, c.GetType()), Nullable: true, Metadata: fieldID(c.GetId())})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, r := range rows {
		for i, c := range cols {
			appendCell(t, b.Field(i), c.GetType(), r[i])
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func appendCell(t testing.TB, b array.Builder, typ *planv1.Type, v *planv1.Value) {
	t.Helper()
	if value.IsNull(v) {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.GetBoolean())
	case *array.Int32Builder:
		b.Append(int32(v.GetInteger()))
	case *array.Int64Builder:
		b.Append(v.GetInteger())
	case *array.Float32Builder:
		b.Append(v.GetFloat32())
	case *array.Float64Builder:
		b.Append(v.GetFloat64())
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.GetInteger()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.GetInteger()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.GetInteger()))
	case *array.StringBuilder:
		b.Append(v.GetString_())
	case *array.BinaryBuilder:
		b.Append(v.GetBinary())
	case *array.FixedSizeBinaryBuilder:
		b.Append(v.GetBinary())
	case *extensions.UUIDBuilder:
		b.Append(uuid.UUID(v.GetBinary()))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(meta.FromTwosComplement(v.GetDecimal().GetUnscaled())))
	default:
		t.Fatalf("no builder for %v", typ)
	}
}
