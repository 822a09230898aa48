package write

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
	"github.com/signet-io/signet/executor/splice"
)

// checkValues refuses what the formats cannot store and DuckDB can. Most of it is read off the statistics; nested columns with required
// parts cost a query.
func (p *plan) checkValues(ctx context.Context, inst *duckdb.Instance, files []*written) error {
	for _, f := range files {
		for _, l := range p.leaves {
			if s := f.stats[l.key]; s != nil {
				if err := p.checkStats(l, s); err != nil {
					return err
				}
			}
		}
		if err := p.checkPartition(f); err != nil {
			return err
		}
	}
	return p.checkRequired(ctx, inst, files)
}

func (p *plan) checkStats(l leaf, s *colStats) error {
	for _, text := range []*string{s.min, s.max} {
		if text == nil {
			continue
		}
		switch l.field.GetType().GetKind() {
		case planv1.TypeKind_TYPE_KIND_DATE, planv1.TypeKind_TYPE_KIND_TIMESTAMP_MICROS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_MICROS,
			planv1.TypeKind_TYPE_KIND_TIMESTAMP_NANOS, planv1.TypeKind_TYPE_KIND_TIMESTAMPTZ_NANOS:
			if strings.HasSuffix(*text, "infinity") {
				return infinite(l.path, *text)
			}
			below, above, _ := splice.Limits(l.field.GetType().GetKind(), p.years())
			if n, ok := integer(l.field.GetType().GetKind(), *text); ok && (n <= below || n >= above) {
				return longYear(l.path, *text)
			}
		case planv1.TypeKind_TYPE_KIND_TIME_MICROS:
			if strings.HasPrefix(*text, "24:") {
				return &duckdb.UserError{Message: fmt.Sprintf("column %q: value %s cannot be stored: a time ends before 24:00:00", l.path, *text)}
			}
		}
	}
	return nil
}

func infinite(path, value string) error {
	return &duckdb.UserError{
		Message: fmt.Sprintf("column %q: value %s cannot be stored: tables have no infinite dates", path, value),
		Hint:    fmt.Sprintf("replace it in the SELECT, for example CASE WHEN isfinite(%s) THEN %s END", path, path),
	}
}

func (p *plan) years() bool { return p.spec.GetFiles().GetFourDigitYears() }

func longYear(path, value string) error {
	return &duckdb.UserError{
		Message: fmt.Sprintf("column %q: value %s cannot be stored: the table's format has the years 0001 to 9999", path, value),
		Hint:    "convert or filter the value in the SELECT",
	}
}

// checkPartition checks columns that are not in the file, of which there are no statistics.
func (p *plan) checkPartition(f *written) error {
	for n, pf := range p.spec.GetPartition() {
		i := slices.IndexFunc(p.columns, func(c column) bool { return c.omit && c.field.GetId() == pf.GetSourceId() })
		if i < 0 {
			continue
		}
		field, v := p.columns[i].field, f.partition[n]
		kind := field.GetType().GetKind()
		below, above, temporal := splice.Limits(kind, p.years())
		switch at := v.GetInteger(); {
		case field.GetRequired() && v.GetKind() == nil:
			return requiredError(field.GetName())
		case !temporal || v.GetKind() == nil || at > below && at < above:
		case !p.years():
			return infinite(field.GetName(), "infinity")
		default:
			return longYear(field.GetName(), p.partitionText(v, field))
		}
	}
	return nil
}

// partitionText is a value for a message.
func (p *plan) partitionText(v *planv1.Value, field *planv1.Field) string {
	lit, err := duckdb.LiteralOf(v, field.GetType())
	if err != nil {
		return strconv.FormatInt(v.GetInteger(), 10)
	}
	return lit
}

// requirement is a place that must hold no NULL.
type requirement struct {
	path string
	pred string // over the file: true for a row that breaks it
}

func (p *plan) checkRequired(ctx context.Context, inst *duckdb.Instance, files []*written) error {
	var ask []requirement
	for _, c := range p.columns {
		if len(c.field.GetType().GetFields()) == 0 {
			if c.field.GetRequired() && p.nulls(files, duckdb.Ident(c.alias)) {
				return requiredError(c.field.GetName())
			}
			continue
		}
		if !p.nulls(files, duckdb.Ident(c.alias)+".") {
			continue
		}
		ask = append(ask, requirements(c)...)
	}
	if len(ask) == 0 || len(files) == 0 {
		return nil
	}
	sums := make([]string, len(ask))
	for n, r := range ask {
		sums[n] = "coalesce(bool_or(" + r.pred + "), false)"
	}
	broken := make([]bool, len(ask))
	dest := make([]any, len(ask))
	for n := range broken {
		dest[n] = &broken[n]
	}
	q := "SELECT " + strings.Join(sums, ", ") + " FROM " + readFiles(files, "")
	if err := inst.Conn().QueryRowContext(ctx, q).Scan(dest...); err != nil {
		return fmt.Errorf("check required fields: %w", err)
	}
	for n, b := range broken {
		if b {
			return requiredError(ask[n].path)
		}
	}
	return nil
}

func requiredError(path string) error {
	return &duckdb.UserError{
		Message: fmt.Sprintf("column %q: NULL in a required column", path),
		Hint:    "filter the rows or replace NULL in the SELECT",
	}
}

// nulls says whether any leaf whose key begins so may have a NULL in any file. Lists and maps always may: an absent one and an empty one
// count alike.
func (p *plan) nulls(files []*written, key string) bool {
	for _, l := range p.leaves {
		if l.key != key && (!strings.HasSuffix(key, ".") || !strings.HasPrefix(l.key, key)) {
			continue
		}
		for _, f := range files {
			if s := f.stats[l.key]; s == nil || s.nulls != 0 {
				return true
			}
		}
	}
	return false
}

// requirements lists the required places of a nested column.
func requirements(c column) []requirement {
	var out []requirement
	var walk func(expr, path string, f *planv1.Field, depth int, wrap func(string) string)
	walk = func(expr, path string, f *planv1.Field, depth int, wrap func(string) string) {
		if f.GetRequired() {
			out = append(out, requirement{path, wrap(expr + " IS NULL")})
		}
		t := f.GetType()
		arg := fmt.Sprintf("x%d", depth)
		anyOf := func(list string) func(string) string {
			return func(pred string) string {
				return wrap("len(list_filter(" + list + ", lambda " + arg + ": " + pred + ")) > 0")
			}
		}
		switch t.GetKind() {
		case planv1.TypeKind_TYPE_KIND_STRUCT:
			inner := func(pred string) string { return wrap("(" + expr + " IS NOT NULL AND " + pred + ")") }
			for _, child := range t.GetFields() {
				walk("struct_extract("+expr+", "+duckdb.Literal(child.GetName())+")", join(path, child.GetName()), child, depth, inner)
			}
		case planv1.TypeKind_TYPE_KIND_LIST:
			walk(arg, join(path, "element"), t.GetFields()[0], depth+1, anyOf(expr))
		case planv1.TypeKind_TYPE_KIND_MAP:
			walk(arg, join(path, "key"), t.GetFields()[0], depth+1, anyOf("map_keys("+expr+")"))
			walk(arg, join(path, "value"), t.GetFields()[1], depth+1, anyOf("map_values("+expr+")"))
		}
	}
	walk(duckdb.Ident(c.alias), c.field.GetName(), c.field, 0, func(s string) string { return s })
	return out
}

// countNaNs fills in how many NaNs a file has where DuckDB says that it has some. Below lists and maps the number stays unknown.
func (p *plan) countNaNs(ctx context.Context, inst *duckdb.Instance, files []*written) error {
	var leaves []leaf
	var sums []string
	for _, l := range p.leaves {
		if !isFloat(l.field.GetType().GetKind()) || l.repeated || l.mode.GetKind() < planv1.MetricsKind_METRICS_KIND_COUNTS {
			continue
		}
		for _, f := range files {
			if s := f.stats[l.key]; s != nil && s.hasNaN != nil && *s.hasNaN {
				leaves = append(leaves, l)
				sums = append(sums, "count(*) FILTER (WHERE isnan("+l.expr+"))")
				break
			}
		}
	}
	if len(leaves) == 0 {
		return nil
	}
	byPath := map[string]*written{}
	for _, f := range files {
		byPath[f.path] = f
	}
	q := "SELECT __signet_file, " + strings.Join(sums, ", ") + " FROM " + readFiles(files, ", filename='__signet_file'") + " GROUP BY 1"
	rows, err := inst.Conn().QueryContext(ctx, q)
	if err != nil {
		return fmt.Errorf("count NaNs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		counts := make([]int64, len(leaves))
		dest := []any{&name}
		for n := range counts {
			dest = append(dest, &counts[n])
		}
		if err := rows.Scan(dest...); err != nil {
			return fmt.Errorf("count NaNs: %w", err)
		}
		for n, l := range leaves {
			if f := byPath[name]; f != nil && f.stats[l.key] != nil {
				f.stats[l.key].nans = counts[n]
			}
		}
	}
	return rows.Err()
}

func readFiles(files []*written, opts string) string {
	paths := make([]string, len(files))
	for n, f := range files {
		paths[n] = f.path
	}
	return "read_parquet(" + duckdb.ListLiteral(paths) + ", hive_partitioning=false" + opts + ")"
}
