package transform

import (
	"fmt"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Key is one derived column.
type Key struct {
	SQL  string // of a type that DuckDB can order, compare and print exactly
	Void bool   // always NULL: need not be derived at all
	kind planv1.TransformKind
	src  *planv1.Type
}

// New is the transform of the expression col, whose DuckDB type stores src exactly.
func New(kind planv1.TransformKind, param int32, src *planv1.Type, col string) (Key, error) {
	k := Key{kind: kind, src: src}
	var err error
	switch kind {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY:
		k.SQL, err = identity(src, col)
	case planv1.TransformKind_TRANSFORM_KIND_BUCKET:
		k.SQL, err = bucket(param, src, col)
	case planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		k.SQL, err = truncate(param, src, col)
	case planv1.TransformKind_TRANSFORM_KIND_YEAR, planv1.TransformKind_TRANSFORM_KIND_MONTH, planv1.TransformKind_TRANSFORM_KIND_DAY,
		planv1.TransformKind_TRANSFORM_KIND_HOUR:
		k.SQL, err = temporal(kind, src, col)
	case planv1.TransformKind_TRANSFORM_KIND_VOID:
		k.SQL, k.Void = "NULL::INTEGER", true
	default:
		err = fmt.Errorf("transform %s is not known", kind)
	}
	return k, err
}

func unsupported(what string, src *planv1.Type) error {
	return fmt.Errorf("%s does not apply to type %s", what, src.GetKind())
}

// identity keeps times as integers and bytes as hex digits, whose text is exact and whose order is the values'.
func identity(src *planv1.Type, col string) (string, error) {
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN, planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32,
		planv1.TypeKind_TYPE_KIND_INT64, planv1.TypeKind_TYPE_KIND_STRING, planv1.TypeKind_TYPE_KIND_DECIMAL, planv1.TypeKind_TYPE_KIND_UUID:
		return col, nil
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		return "(" + col + " + 0::FLOAT)", nil // -0.0 and 0.0 are one partition
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		return "(" + col + " + 0::DOUBLE)", nil
	case planv1.TypeKind_TYPE_KIND_FIXED, planv1.TypeKind_TYPE_KIND_BINARY:
		return "hex(" + col + ")", nil
	}
	if e, ok := units(src, col); ok {
		return e, nil
	}
	return "", unsupported("identity", src)
}

// units is a date or time as the integer that the formats store.
func units(src *planv1.Type, col string) (string, bool) {
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		return "(" + col + " - DATE '1970-01-01')", true
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return "epoch_us(" + col + ")", true
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return "epoch_ns(" + col + ")", true
	}
	return "", false
}

func bucket(n int32, src *planv1.Type, col string) (string, error) {
	if n < 1 {
		return "", fmt.Errorf("bucket[%d]: want at least one bucket", n)
	}
	var hash string
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8, planv1.TypeKind_TYPE_KIND_INT16, planv1.TypeKind_TYPE_KIND_INT32, planv1.TypeKind_TYPE_KIND_INT64:
		hash = hashLong + "(CAST(" + col + " AS BIGINT))"
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		hash = hashDecimal + "(CAST(" + unscaled(src, col) + " AS VARCHAR))"
	case planv1.TypeKind_TYPE_KIND_STRING:
		hash = hashText + "(" + col + ")"
	case planv1.TypeKind_TYPE_KIND_UUID:
		hash = hashUUID + "(CAST(" + col + " AS VARCHAR))"
	case planv1.TypeKind_TYPE_KIND_FIXED, planv1.TypeKind_TYPE_KIND_BINARY:
		hash = hashBytes + "(" + col + ")"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		// The specification hashes microseconds, so that a column may change its unit (V9).
		hash = hashLong + "(" + floorDiv("epoch_ns("+col+")", 1000) + ")"
	default:
		u, ok := units(src, col)
		if !ok {
			return "", unsupported("bucket", src)
		}
		hash = hashLong + "(CAST(" + u + " AS BIGINT))"
	}
	return fmt.Sprintf("(%s %% %d)", hash, n), nil
}

// floorDiv divides toward negative infinity; DuckDB's own // truncates.
func floorDiv(e string, n int64) string {
	return fmt.Sprintf("((%s - %s) // %d)", e, floorMod(e, n), n)
}

func floorMod(e string, n int64) string { return fmt.Sprintf("(((%s %% %d) + %d) %% %d)", e, n, n, n) }

func truncate(w int32, src *planv1.Type, col string) (string, error) {
	if w < 1 {
		return "", fmt.Errorf("truncate[%d]: want a positive width", w)
	}
	n := int64(w)
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_INT8:
		return "CAST(" + truncateInt("CAST("+col+" AS BIGINT)", n) + " AS TINYINT)", nil
	case planv1.TypeKind_TYPE_KIND_INT16:
		return "CAST(" + truncateInt("CAST("+col+" AS BIGINT)", n) + " AS SMALLINT)", nil
	case planv1.TypeKind_TYPE_KIND_INT32:
		return "CAST(" + truncateInt("CAST("+col+" AS BIGINT)", n) + " AS INTEGER)", nil
	case planv1.TypeKind_TYPE_KIND_INT64:
		return truncateInt(col, n), nil // DuckDB checks the subtraction for overflow
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		// The unscaled integer; the cast fails where the result needs a digit too many.
		return fmt.Sprintf("CAST(%s AS DECIMAL(%d,0))", truncateInt(unscaled(src, col), n), src.GetPrecision()), nil
	case planv1.TypeKind_TYPE_KIND_STRING:
		return fmt.Sprintf("left(%s, %d)", col, n), nil // counts code points
	case planv1.TypeKind_TYPE_KIND_BINARY:
		return fmt.Sprintf("left(hex(%s), %d)", col, 2*n), nil
	}
	return "", unsupported("truncate", src)
}

func truncateInt(e string, n int64) string { return fmt.Sprintf("(%s - %s)", e, floorMod(e, n)) }

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
}

// unscaled is a decimal's integer, exactly: its text without the point. Arithmetic would overflow at 38 digits.
func unscaled(src *planv1.Type, col string) string {
	p, s := src.GetPrecision(), src.GetScale()
	if s == 0 {
		return "CAST(" + col + " AS HUGEINT)"
	}
	if p+s+1 <= 38 {
		// Widened first: DuckDB keeps the product of two decimals of at most 18 digits in 18 digits.
		return fmt.Sprintf("CAST(CAST(%s AS DECIMAL(38,%d)) * 1%s::DECIMAL(%d,0) AS HUGEINT)", col, s, zeros(int(s)), s+1)
	}
	return "CAST(replace(CAST(" + col + " AS VARCHAR), '.', '') AS HUGEINT)"
}

func temporal(kind planv1.TransformKind, src *planv1.Type, col string) (string, error) {
	day := col
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		if kind == planv1.TransformKind_TRANSFORM_KIND_HOUR {
			return "", unsupported("hour", src)
		}
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS,
		planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		if kind == planv1.TransformKind_TRANSFORM_KIND_HOUR {
			return floorDiv("epoch_us("+utc(src, col)+")", 3_600_000_000), nil
		}
		day = "CAST(" + utc(src, col) + " AS DATE)"
	default:
		return "", unsupported("a date transform", src)
	}
	switch kind {
	case planv1.TransformKind_TRANSFORM_KIND_YEAR:
		return "(year(" + day + ") - 1970)", nil
	case planv1.TransformKind_TRANSFORM_KIND_MONTH:
		return "((year(" + day + ") - 1970) * 12 + month(" + day + ") - 1)", nil
	default:
		return "(" + day + " - DATE '1970-01-01')", nil
	}
}

// utc is a timestamp without a zone, whatever the session's zone is.
func utc(src *planv1.Type, col string) string {
	switch src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return "make_timestamp(epoch_us(" + col + "))"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return "make_timestamp(" + floorDiv("epoch_ns("+col+")", 1000) + ")"
	}
	return col
}
