package splice

import (
	"fmt"
	"math/big"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
)

// leafElement is how a leaf is described in the new file, if it is stored as the table's type is written.
func leafElement(e *footer.Element, t *planv1.Type, path string) (footer.Element, string) {
	out := footer.Element{Physical: e.Physical, TypeLength: e.TypeLength, Repetition: e.Repetition, Converted: footer.NoConverted}
	if e.Physical != footer.FixedLenByteArray {
		out.TypeLength = 0
	}
	if !fits(e, t, &out) {
		return out, fmt.Sprintf("column %q is stored as %s, and the table's type is not written so", path, describe(e))
	}
	return out, ""
}

func describe(e *footer.Element) string {
	text := e.Physical.String()
	if e.Physical == footer.FixedLenByteArray {
		text += fmt.Sprintf("(%d)", e.TypeLength)
	}
	switch l := e.Logical; l.Kind {
	case footer.NoLogical:
		if e.Converted != footer.NoConverted {
			text += fmt.Sprintf(" with converted type %d", e.Converted)
		}
	case footer.DecimalLogical:
		text += fmt.Sprintf(" DECIMAL(%d,%d)", l.Precision, l.Scale)
	case footer.Integer:
		text += fmt.Sprintf(" INT(%d, signed %v)", l.Bits, l.Signed)
	case footer.TimeLogical, footer.Timestamp:
		text += fmt.Sprintf(" %s(%s, UTC %v)", map[footer.LogicalKind]string{footer.TimeLogical: "TIME", footer.Timestamp: "TIMESTAMP"}[l.Kind],
			[]string{"unknown unit", "millis", "micros", "nanos"}[l.Unit], l.UTC)
	default:
		text += fmt.Sprintf(" with logical type %d", l.Kind)
	}
	return text
}

// fits sets the annotations of out. Integers of the table's own widths get none: they say nothing, and a column that is widened later is then read by
// engines that refuse INT_32 for a long.
func fits(e *footer.Element, t *planv1.Type, out *footer.Element) bool {
	bare := e.Converted == footer.NoConverted && e.Logical.Kind == footer.NoLogical
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		return e.Physical == footer.Boolean && bare
	case planv1.TypeKind_TYPE_KIND_INT8:
		return integerFits(e, 8, footer.Int8Converted, out)
	case planv1.TypeKind_TYPE_KIND_INT16:
		return integerFits(e, 16, footer.Int16Converted, out)
	case planv1.TypeKind_TYPE_KIND_INT32:
		return e.Physical == footer.Int32 && (bare || signed(e, 32, footer.Int32Converted))
	case planv1.TypeKind_TYPE_KIND_INT64:
		return e.Physical == footer.Int64 && (bare || signed(e, 64, footer.Int64Converted))
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return e.Physical == footer.Float && bare
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return e.Physical == footer.Double && bare
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		return decimalFits(e, t, out)
	case planv1.TypeKind_TYPE_KIND_DATE:
		out.Converted, out.Logical.Kind = footer.DateConverted, footer.DateLogical
		return e.Physical == footer.Int32 && (e.Logical.Kind == footer.DateLogical || e.Logical.Kind == footer.NoLogical && e.Converted == footer.DateConverted)
	case planv1.TypeKind_TYPE_KIND_STRING:
		out.Converted, out.Logical.Kind = footer.UTF8, footer.StringLogical
		return e.Physical == footer.ByteArray && (e.Logical.Kind == footer.StringLogical || e.Logical.Kind == footer.NoLogical && e.Converted == footer.UTF8)
	case planv1.TypeKind_TYPE_KIND_UUID:
		out.Logical.Kind = footer.UUIDLogical
		return e.Physical == footer.FixedLenByteArray && e.TypeLength == 16 && e.Logical.Kind == footer.UUIDLogical
	case planv1.TypeKind_TYPE_KIND_FIXED:
		return e.Physical == footer.FixedLenByteArray && e.TypeLength == t.GetLength() && t.GetLength() > 0 && bare
	case planv1.TypeKind_TYPE_KIND_BINARY:
		return e.Physical == footer.ByteArray && bare
	}
	return timeFits(e, t.GetKind(), out)
}

func signed(e *footer.Element, bits int8, converted footer.Converted) bool {
	switch e.Logical.Kind {
	case footer.Integer:
		return e.Logical.Bits == bits && e.Logical.Signed
	case footer.NoLogical:
		return e.Converted == converted
	}
	return false
}

func integerFits(e *footer.Element, bits int8, converted footer.Converted, out *footer.Element) bool {
	out.Converted, out.Logical = converted, footer.Logical{Kind: footer.Integer, Bits: bits, Signed: true}
	return e.Physical == footer.Int32 && signed(e, bits, converted)
}

// timeFits wants the logical type: the old annotation does not say whether a time is UTC.
func timeFits(e *footer.Element, k planv1.TypeKind, out *footer.Element) bool {
	l := e.Logical
	out.Logical = l
	if e.Physical != footer.Int64 {
		return false
	}
	switch k {
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return l.Kind == footer.TimeLogical && l.Unit == footer.Micros && !l.UTC
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return l.Kind == footer.Timestamp && l.Unit == footer.Micros && !l.UTC
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		out.Converted = footer.TimestampMicros
		return l.Kind == footer.Timestamp && l.Unit == footer.Micros && l.UTC
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return l.Kind == footer.Timestamp && l.Unit == footer.Nanos && !l.UTC
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return l.Kind == footer.Timestamp && l.Unit == footer.Nanos && l.UTC
	}
	return false
}

// decimalFits wants the width that the specification of Iceberg gives a precision. The one of fixed length may be longer than it must be: DuckDB writes 16
// bytes whatever the precision is, which every reader takes.
func decimalFits(e *footer.Element, t *planv1.Type, out *footer.Element) bool {
	p, s := e.Precision, e.Scale
	switch {
	case e.Logical.Kind == footer.DecimalLogical:
		p, s = e.Logical.Precision, e.Logical.Scale
	case e.Logical.Kind != footer.NoLogical || e.Converted != footer.DecimalOld:
		return false
	}
	out.Converted, out.Precision, out.Scale = footer.DecimalOld, p, s
	out.Logical = footer.Logical{Kind: footer.DecimalLogical, Precision: p, Scale: s}
	if p != t.GetPrecision() || s != t.GetScale() {
		return false
	}
	switch {
	case p <= 9:
		return e.Physical == footer.Int32
	case p <= 18:
		return e.Physical == footer.Int64
	}
	return e.Physical == footer.FixedLenByteArray && (e.TypeLength == decimalBytes(p) || e.TypeLength == 16)
}

// decimalBytes is the fewest bytes that hold every decimal of a precision.
func decimalBytes(precision int32) int32 {
	largest := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return int32(largest.Sub(largest, big.NewInt(1)).BitLen()/8 + 1)
}
