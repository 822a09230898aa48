package plan

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/scheduler/sql"
)

// CreateText writes the CREATE TABLE that makes a table like the one described, in one line. What CREATE TABLE cannot say, such as a
// partition by a field of a struct, is written as it would be if it could.
func CreateText(table string, d *sinkv1.DescribeTableResponse) string {
	fields := d.GetSchema().GetFields()
	var columns, parts, sorts, properties []string
	for _, f := range fields {
		text := sql.DisplayIdent(f.GetName()) + " " + TypeText(f.GetType()) + notNull(f)
		if v := f.GetWriteDefault(); v.GetKind() != nil {
			text += " DEFAULT " + defaultText(v, f.GetType())
		}
		if f.GetDoc() != "" {
			text += " COMMENT " + sql.QuoteString(f.GetDoc())
		}
		columns = append(columns, text)
	}
	term := func(source int32, t planv1.TransformKind, param int32) string {
		name := "?"
		if f := FieldByID(fields, source); f != nil {
			name = sql.DisplayIdent(f.GetName())
		}
		return TransformText(t, param, name)
	}
	for _, p := range d.GetPartition() {
		parts = append(parts, term(p.GetSourceId(), p.GetTransform(), p.GetParam()))
	}
	for _, s := range d.GetSort() {
		text := term(s.GetSourceId(), s.GetTransform(), s.GetParam())
		if s.GetDescending() {
			text += " DESC"
		}
		if s.GetNullsFirst() == s.GetDescending() { // not what CREATE TABLE takes by itself
			text += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[s.GetNullsFirst()]
		}
		sorts = append(sorts, text)
	}
	all := maps.Clone(d.GetProperties())
	if v := d.GetFormatVersion(); v > 0 {
		if all == nil {
			all = map[string]string{}
		}
		all["format-version"] = strconv.Itoa(int(v))
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		properties = append(properties, sql.QuoteString(k)+" = "+sql.QuoteString(all[k]))
	}
	out := "CREATE TABLE " + table + " (" + strings.Join(columns, ", ") + ")"
	for _, clause := range []struct {
		words string
		terms []string
	}{{"PARTITIONED BY", parts}, {"ORDERED BY", sorts}, {"WITH", properties}} {
		if len(clause.terms) > 0 {
			out += " " + clause.words + " (" + strings.Join(clause.terms, ", ") + ")"
		}
	}
	return out
}

// defaultText is a column's default as DEFAULT takes it.
func defaultText(v *planv1.Value, t *planv1.Type) string {
	if b, ok := v.GetKind().(*planv1.Value_Binary); ok && t.GetKind() != planv1.TypeKind_TYPE_KIND_UUID {
		return "X'" + hex.EncodeToString(b.Binary) + "'"
	}
	return valueText(v, t)
}
