package transform

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Parse reads the text that DuckDB returns for a key that is not NULL.
func (k Key) Parse(text string) (*planv1.Value, error) {
	switch k.kind {
	case planv1.TransformKind_TRANSFORM_KIND_IDENTITY, planv1.TransformKind_TRANSFORM_KIND_TRUNCATE:
		return k.parseSource(text)
	default:
		return parseInteger(text)
	}
}

func (k Key) parseSource(text string) (*planv1.Value, error) {
	switch k.src.GetKind() {
	case planv1.TypeKind_TYPE_KIND_BOOLEAN:
		b, err := strconv.ParseBool(text)
		return &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: b}}, err
	case planv1.TypeKind_TYPE_KIND_STRING:
		return &planv1.Value{Kind: &planv1.Value_String_{String_: text}}, nil
	case planv1.TypeKind_TYPE_KIND_FLOAT32:
		f, err := parseFloat(text, 32)
		return &planv1.Value{Kind: &planv1.Value_Float32{Float32: float32(f)}}, err
	case planv1.TypeKind_TYPE_KIND_FLOAT64:
		f, err := parseFloat(text, 64)
		return &planv1.Value{Kind: &planv1.Value_Float64{Float64: f}}, err
	case planv1.TypeKind_TYPE_KIND_FIXED, planv1.TypeKind_TYPE_KIND_BINARY:
		b, err := hex.DecodeString(text)
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err
	case planv1.TypeKind_TYPE_KIND_UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err == nil && len(b) != 16 {
			err = fmt.Errorf("%q is no UUID", text)
		}
		return &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}, err
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		if k.kind == planv1.TransformKind_TRANSFORM_KIND_TRUNCATE {
			return decimalOf(text, k.src.GetScale()) // the key is the unscaled integer
		}
		return ParseDecimal(text, k.src.GetScale())
	default:
		return parseInteger(text)
	}
}

// parseFloat: DuckDB prints the sign of a NaN, which Go refuses.
func parseFloat(text string, bits int) (float64, error) {
	if text == "-nan" {
		text = "nan"
	}
	return strconv.ParseFloat(text, bits)
}

func parseInteger(text string) (*planv1.Value, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}, err
}

// ParseDecimal reads DuckDB's text of a DECIMAL with the given scale, exactly.
func ParseDecimal(text string, scale int32) (*planv1.Value, error) {
	whole, frac, _ := strings.Cut(text, ".")
	if len(frac) > int(scale) {
		return nil, fmt.Errorf("%q has more than %d decimal places", text, scale)
	}
	return decimalOf(whole+frac+zeros(int(scale)-len(frac)), scale)
}

func decimalOf(digits string, scale int32) (*planv1.Value, error) {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return nil, fmt.Errorf("%q is no number", digits)
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(n), Scale: scale}}}, nil
}
