package plan

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// PredicateText writes a predicate as SQL for people, with the names that the schema has for its columns.
func PredicateText(p *planv1.Predicate, schema *planv1.Schema) string {
	return predicateSQL(p, func(id int32) (string, *planv1.Type) {
		path := fieldPath(schema.GetFields(), id)
		if path == nil {
			return fmt.Sprintf("column #%d", id), nil
		}
		names := make([]string, len(path))
		for i, f := range path {
			names[i] = f.GetName()
		}
		return sql.JoinName(names), path[len(path)-1].GetType()
	}, valueText)
}

// predicateSQL writes a predicate over the expressions that column gives for field ids.
func predicateSQL(p *planv1.Predicate, column func(int32) (string, *planv1.Type), value func(*planv1.Value, *planv1.Type) string) string {
	join := func(terms []*planv1.Predicate, word, none string) string {
		if len(terms) == 0 {
			return none
		}
		out := make([]string, len(terms))
		for i, t := range terms {
			out[i] = predicateSQL(t, column, value)
			if k := t.GetKind(); len(terms) > 1 {
				switch k.(type) {
				case *planv1.Predicate_All, *planv1.Predicate_Any:
					out[i] = "(" + out[i] + ")"
				}
			}
		}
		return strings.Join(out, " "+word+" ")
	}
	switch k := p.GetKind().(type) {
	case *planv1.Predicate_Constant:
		return strings.ToUpper(strconv.FormatBool(k.Constant))
	case *planv1.Predicate_All:
		return join(k.All.GetTerms(), "AND", "TRUE")
	case *planv1.Predicate_Any:
		return join(k.Any.GetTerms(), "OR", "FALSE")
	case *planv1.Predicate_Not:
		return "NOT (" + predicateSQL(k.Not, column, value) + ")"
	case *planv1.Predicate_IsNull:
		name, _ := column(k.IsNull.GetFieldId())
		return name + " IS NULL"
	case *planv1.Predicate_Comparison:
		return comparisonSQL(k.Comparison, column, value)
	}
	return "TRUE"
}

func comparisonSQL(c *planv1.Comparison, column func(int32) (string, *planv1.Type), value func(*planv1.Value, *planv1.Type) string) string {
	name, t := column(c.GetFieldId())
	values := make([]string, len(c.GetValues()))
	for i, v := range c.GetValues() {
		values[i] = value(v, t)
	}
	all := strings.Join(values, ", ")
	switch c.GetOp() {
	case planv1.CompareOp_COMPARE_OP_IN:
		if len(values) == 0 {
			return "FALSE"
		}
		return name + " IN (" + all + ")"
	case planv1.CompareOp_COMPARE_OP_STARTS_WITH:
		return "starts_with(" + name + ", " + all + ")"
	}
	for text, op := range compareOps {
		if op == c.GetOp() {
			return name + " " + text + " " + all
		}
	}
	return "TRUE"
}

// fieldPath is the fields from a column down to the one with an id, through structs; nil if there is none.
func fieldPath(fields []*planv1.Field, id int32) []*planv1.Field {
	for _, f := range fields {
		if f.GetId() == id {
			return []*planv1.Field{f}
		}
		if f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
			continue
		}
		if below := fieldPath(f.GetType().GetFields(), id); below != nil {
			return append([]*planv1.Field{f}, below...)
		}
	}
	return nil
}

// valueText writes a value as people would.
func valueText(v *planv1.Value, t *planv1.Type) string {
	switch k := v.GetKind().(type) {
	case *planv1.Value_Boolean:
		return strings.ToUpper(strconv.FormatBool(k.Boolean))
	case *planv1.Value_Integer:
		return integerText(k.Integer, t)
	case *planv1.Value_Float32:
		return strconv.FormatFloat(float64(k.Float32), 'g', -1, 32)
	case *planv1.Value_Float64:
		return strconv.FormatFloat(k.Float64, 'g', -1, 64)
	case *planv1.Value_String_:
		return sql.QuoteString(k.String_)
	case *planv1.Value_Binary:
		if id, err := uuid.FromBytes(k.Binary); err == nil && t.GetKind() == planv1.TypeKind_TYPE_KIND_UUID {
			return "'" + id.String() + "'"
		}
		var b strings.Builder
		for _, c := range k.Binary {
			b.WriteString(`\x` + hex.EncodeToString([]byte{c}))
		}
		return "'" + b.String() + "'"
	case *planv1.Value_Decimal:
		return decimalText(k.Decimal)
	}
	return "NULL"
}

func integerText(n int64, t *planv1.Type) string {
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DATE:
		return "'" + time.Unix(n*86400, 0).UTC().Format(time.DateOnly) + "'"
	case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return "'" + time.UnixMicro(n).UTC().Format("15:04:05.999999") + "'"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return "'" + time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999") + "'"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return "'" + time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999") + "+00'"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return "'" + time.Unix(0, n).UTC().Format("2006-01-02 15:04:05.999999999") + "'"
	case planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return "'" + time.Unix(0, n).UTC().Format("2006-01-02 15:04:05.999999999") + "+00'"
	}
	return strconv.FormatInt(n, 10)
}

func decimalText(d *planv1.Decimal) string {
	n := new(big.Int).SetBytes(d.GetUnscaled())
	if b := d.GetUnscaled(); len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b)))) //nolint:gosec // a few bytes
	}
	digits, scale := new(big.Int).Abs(n).String(), int(d.GetScale())
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
