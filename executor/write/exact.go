package write

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// conversion makes a column of the table out of a column of the query. Its expressions are over i<input>.
type conversion struct {
	input    int
	expr     string // exact, or an error
	castType string
	unfit    string // is true for values that the cast refuses; empty: there are none
	inexact  string // is true for values that the cast would change; empty: there are none
}

func convert(o *planv1.OutputColumn, inputs []*planv1.Column) (conversion, error) {
	f := o.GetField()
	castType := o.GetCastType()
	if castType == "" {
		t, err := duckdb.SQLType(f.GetType())
		if err != nil {
			return conversion{}, &duckdb.UserError{Message: fmt.Sprintf("column %q: %v", f.GetName(), err)}
		}
		castType = t
	}
	c := conversion{input: int(o.GetInput()), castType: castType}
	if c.input < 0 {
		lit, err := literal(f.GetWriteDefault(), f.GetType())
		if err != nil {
			return conversion{}, fmt.Errorf("column %q: write default: %w", f.GetName(), err)
		}
		c.expr = "CAST(" + lit + " AS " + castType + ")"
		return c, nil
	}
	in := inputs[c.input]
	if err := checkFields(f.GetName(), in.GetType(), f.GetType()); err != nil {
		return conversion{}, err
	}
	col := fmt.Sprintf("i%d", c.input)
	if in.GetEngineType() == castType {
		c.expr = col
		return c, nil
	}
	cast, try := "CAST("+col+" AS "+castType+")", "TRY_CAST("+col+" AS "+castType+")"
	c.expr = cast
	c.unfit = col + " IS NOT NULL AND TRY(" + cast + ") IS NULL" // TRY_CAST would make NULLs inside nested values
	if g := inexact(in, f.GetType(), col, cast); g != "" {
		// DuckDB evaluates a common subexpression once, so the cast is not paid twice.
		c.expr = "CASE WHEN " + g + " THEN error(" + duckdb.Literal(fmt.Sprintf("column %q: a value cannot be stored exactly as %s", f.GetName(), castType)) + ") ELSE " + cast + " END"
		c.inexact = inexact(in, f.GetType(), col, try)
	}
	return c, nil
}

// checkFields refuses struct fields that the table lacks: DuckDB's cast drops them without a word.
func checkFields(path string, in, out *planv1.Type) error {
	if in.GetKind() != out.GetKind() {
		return nil // the cast decides
	}
	switch out.GetKind() {
	case planv1.TypeKind_TYPE_KIND_LIST, planv1.TypeKind_TYPE_KIND_MAP:
		for n, f := range out.GetFields() {
			if n < len(in.GetFields()) {
				if err := checkFields(join(path, f.GetName()), in.GetFields()[n].GetType(), f.GetType()); err != nil {
					return err
				}
			}
		}
		return nil
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return checkStruct(path, in.GetFields(), out.GetFields())
	}
	return nil
}

func checkStruct(path string, in, out []*planv1.Field) error {
	byName := map[string]*planv1.Field{}
	for _, f := range out {
		lower := strings.ToLower(f.GetName())
		if other := byName[lower]; other != nil {
			return &duckdb.UserError{
				Message: fmt.Sprintf("column %q: its fields %q and %q differ in case only, which DuckDB cannot keep apart", path, other.GetName(), f.GetName()),
			}
		}
		byName[lower] = f
	}
	matched := map[string]bool{}
	unnamed := len(in) == len(out)
	for _, f := range in {
		unnamed = unnamed && f.GetName() == ""
	}
	for n, f := range in {
		target := byName[strings.ToLower(f.GetName())]
		if unnamed { // row(1, 2): there are no names to go by
			target = out[n]
		}
		if target == nil {
			return &duckdb.UserError{
				Message: fmt.Sprintf("column %q has no field %q", path, f.GetName()),
				Hint:    "leave it out of the struct in the SELECT, or add it to the table",
			}
		}
		matched[target.GetName()] = true
		if err := checkFields(join(path, target.GetName()), f.GetType(), target.GetType()); err != nil {
			return err
		}
	}
	for _, f := range out {
		if f.GetWriteDefault().GetKind() != nil && !matched[f.GetName()] {
			return &duckdb.UserError{
				Message: fmt.Sprintf("column %q: field %q is missing and has a write default, which is not filled in inside structs", path, f.GetName()),
				Hint:    "name the field in the SELECT",
			}
		}
	}
	return nil
}

// lossy pairs lose digits without an error in DuckDB; a round trip shows it.
func lossy(in *planv1.Column, out *planv1.Type) bool {
	return lossyType(in.GetType(), out)
}

func lossyType(in, out *planv1.Type) bool {
	from, to := in.GetKind(), out.GetKind()
	switch {
	case from == planv1.TypeKind_TYPE_KIND_DECIMAL && to == planv1.TypeKind_TYPE_KIND_DECIMAL:
		return in.GetScale() > out.GetScale()
	case from == planv1.TypeKind_TYPE_KIND_DECIMAL && isInt(to):
		return in.GetScale() > 0
	case isFloat(from):
		return isInt(to) || to == planv1.TypeKind_TYPE_KIND_DECIMAL
	case isInt(from) && isFloat(to):
		return from == planv1.TypeKind_TYPE_KIND_INT64 || from == planv1.TypeKind_TYPE_KIND_INT32 && to == planv1.TypeKind_TYPE_KIND_FLOAT32
	case from == planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS:
		return to != from
	case from == planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS || from == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS:
		return to == planv1.TypeKind_TYPE_KIND_DATE
	case from == to && len(out.GetFields()) > 0:
		return lossyFields(in, out)
	}
	return false
}

func lossyFields(in, out *planv1.Type) bool {
	for n, f := range in.GetFields() {
		var target *planv1.Type
		if in.GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT {
			if n < len(out.GetFields()) {
				target = out.GetFields()[n].GetType()
			}
		} else {
			for m, o := range out.GetFields() {
				if strings.EqualFold(o.GetName(), f.GetName()) || f.GetName() == "" && m == n {
					target = o.GetType()
				}
			}
		}
		if target != nil && lossyType(f.GetType(), target) {
			return true
		}
	}
	return false
}

func isInt(k planv1.TypeKind) bool {
	return k >= planv1.TypeKind_TYPE_KIND_INT8 && k <= planv1.TypeKind_TYPE_KIND_INT64
}

func isFloat(k planv1.TypeKind) bool {
	return k == planv1.TypeKind_TYPE_KIND_FLOAT32 || k == planv1.TypeKind_TYPE_KIND_FLOAT64
}

func isTimestamp(k planv1.TypeKind) bool {
	switch k {
	case planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS,
		planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
		return true
	}
	return false
}

// tooFine finds more than six decimal places of a second, which DuckDB cuts.
const tooFine = `'\.[0-9]{6}[0-9]*[1-9]'`

// inexact is a predicate that is true where cast, an expression of the target type, is not the value of col; empty where that cannot be.
func inexact(in *planv1.Column, out *planv1.Type, col, cast string) string {
	if in.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRING {
		if lossy(in, out) {
			return "TRY_CAST(" + cast + " AS " + in.GetEngineType() + ") IS DISTINCT FROM " + col
		}
		return ""
	}
	same := func(wider string) string {
		return "TRY_CAST(" + col + " AS " + wider + ") IS DISTINCT FROM TRY_CAST(" + cast + " AS " + wider + ")"
	}
	switch k := out.GetKind(); {
	case isInt(k):
		return same("DECIMAL(38,9)") // '1.7' would become 2
	case k == planv1.TypeKind_TYPE_KIND_DECIMAL:
		if e := 38 - (out.GetPrecision() - out.GetScale()); e > out.GetScale() {
			return same(fmt.Sprintf("DECIMAL(38,%d)", e))
		}
	case isFloat(k):
		return inexactFloat(out, col, cast)
	case k == planv1.TypeKind_TYPE_KIND_DATE:
		return same("TIMESTAMP") // a time of day would be cut off
	case k == planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS:
		return "(" + same("TIMESTAMP WITH TIME ZONE") + " OR regexp_matches(" + col + ", " + tooFine + "))" // an offset would be ignored
	case k == planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS, k == planv1.TypeKind_TYPE_KIND_TIME_MICROS:
		return "regexp_matches(" + col + ", " + tooFine + ")"
	}
	return ""
}
