package sql

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// literal reads a constant: a string, a number, TRUE, FALSE, NULL, X'bytes', DATE '…' and the like, or an array of constants.
func (p *parser) constantValue() (Constant, error) {
	if p.depth++; p.depth > maxDepth {
		return Constant{}, p.fail("constants nest too deep", "")
	}
	defer func() { p.depth-- }()
	t := p.peek()
	out := Constant{Offset: t.Start}
	next := p.peekAt(1)
	switch {
	case t.Kind == KindString:
		p.pos++
		out.Value = stringValue(t.Value)
	case p.accept("NULL"):
	case p.accept("TRUE"), p.accept("FALSE"):
		out.Value = &planv1.Value{Kind: &planv1.Value_Boolean{Boolean: t.is("TRUE")}}
	case t.is("X") && next.Kind == KindString && next.Start == t.End:
		b, err := hex.DecodeString(next.Value)
		if err != nil {
			return out, p.fail("X'…' takes pairs of hexadecimal digits", "")
		}
		p.pos += 2
		out.Value = &planv1.Value{Kind: &planv1.Value_Binary{Binary: b}}
	case t.isAny("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "UUID") && next.Kind == KindString:
		p.pos += 2
		out.Value = stringValue(next.Value)
	case t.isAny("-", "+"), t.Kind == KindNumber:
		v, err := p.numberLiteral()
		out.Value = v
		return out, err
	case t.is("["), t.is("ARRAY"):
		return out, p.arrayConstant(&out)
	case t.is("MAP") && (next.is("(") || next.is("{")):
		return out, p.mapConstant(&out)
	default:
		return out, p.unexpected("a constant", "a string in single quotes, a number, TRUE, FALSE or NULL; expressions cannot stand here")
	}
	return out, nil
}

func stringValue(s string) *planv1.Value {
	return &planv1.Value{Kind: &planv1.Value_String_{String_: s}}
}

func (p *parser) arrayConstant(out *Constant) error {
	closing := "]"
	p.accept("ARRAY")
	if !p.accept("[") {
		if err := p.expect("(", "for example ARRAY[1, 2]"); err != nil {
			return err
		}
		closing = ")"
	}
	out.IsList = true
	for !p.accept(closing) {
		if len(out.Items) > 0 {
			if err := p.expect(",", "items are separated by commas"); err != nil {
				return err
			}
		}
		item, err := p.constantValue()
		if err != nil {
			return err
		}
		out.Items = append(out.Items, item)
	}
	return nil
}

// mapConstant reads MAP('key', 'value', …) or MAP {'key': 'value', …}.
func (p *parser) mapConstant(out *Constant) error {
	p.pos++
	closing, between := ")", ","
	if p.accept("{") {
		closing, between = "}", ":"
	} else {
		p.pos++
	}
	out.IsMap = true
	for !p.accept(closing) {
		if len(out.Items) > 0 {
			if err := p.expect(",", "entries are separated by commas"); err != nil {
				return err
			}
		}
		key, err := p.constantValue()
		if err != nil {
			return err
		}
		if err := p.expect(between, "for example MAP('key', 'value') or MAP {'key': 'value'}"); err != nil {
			return err
		}
		item, err := p.constantValue()
		if err != nil {
			return err
		}
		out.Items = append(out.Items, key, item)
	}
	return nil
}

// maxDigits bounds the digits of a number, which is kept exactly.
const maxDigits = 100

func (p *parser) numberLiteral() (*planv1.Value, error) {
	negative := p.peek().is("-")
	if negative || p.peek().is("+") {
		p.pos++
	}
	t := p.peek()
	if t.Kind != KindNumber {
		return nil, p.unexpected("a number", "")
	}
	text := strings.ReplaceAll(t.Value, "_", "")
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && (len(text) == 1 || text[0] != '0' || strings.ContainsAny(text, "xXoObB")) {
		p.pos++
		if negative {
			n = -n
		}
		return &planv1.Value{Kind: &planv1.Value_Integer{Integer: n}}, nil
	}
	v, ok := decimalValue(text, negative)
	if !ok {
		return nil, p.fail("the number "+p.show(t)+" has too many digits", "")
	}
	p.pos++
	return v, nil
}

// decimalValue reads digits with a point and an exponent exactly.
func decimalValue(text string, negative bool) (*planv1.Value, bool) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	whole, frac, _ := strings.Cut(mantissa, ".")
	scale := len(frac)
	if scientific {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxDigits || e < -maxDigits {
			return nil, false
		}
		scale -= e
	}
	digits := whole + frac
	if scale < 0 {
		digits, scale = digits+strings.Repeat("0", -scale), 0
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || len(digits) > 2*maxDigits || scale > 2*maxDigits {
		return nil, false
	}
	if negative {
		n.Neg(n)
	}
	return &planv1.Value{Kind: &planv1.Value_Decimal{Decimal: &planv1.Decimal{Unscaled: twosComplement(n), Scale: int32(scale)}}}, true
}

// twosComplement is the shortest big-endian form, as the contract has decimals.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		b := n.Bytes()
		if len(b) == 0 || b[0] >= 0x80 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	size := len(n.Bytes())
	for {
		mod := new(big.Int).Lsh(big.NewInt(1), uint(8*size))
		half := new(big.Int).Rsh(mod, 1)
		if new(big.Int).Neg(half).Cmp(n) <= 0 {
			b := new(big.Int).Add(mod, n).Bytes()
			return b
		}
		size++
	}
}
