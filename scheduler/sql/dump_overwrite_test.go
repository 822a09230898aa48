package sql

import (
	"fmt"
	"strings"
)

func dumpOverwrite(s *Insert) string {
	var b strings.Builder
	for _, v := range s.Partition {
		fmt.Fprintf(&b, "\n  partition %s", DisplayIdent(v.Column.Text))
		if v.Value != nil {
			b.WriteString(" = " + dumpLiteral(*v.Value))
		}
	}
	if s.Overwrite == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "\n  overwrite %s", map[OverwriteMode]string{
		OverwriteDefault: "by setting", OverwritePartitions: "partitions", OverwriteFixed: "fixed partitions", OverwriteWhere: "where",
	}[s.Overwrite.Mode])
	if s.Overwrite.Where != nil {
		fmt.Fprintf(&b, " %s -- %q", dumpCondition(s.Overwrite.Where), s.Overwrite.Where.Text)
	}
	return b.String()
}

func dumpCondition(c *Condition) string {
	var parts, path []string
	for _, t := range c.Terms {
		parts = append(parts, dumpCondition(t))
	}
	for _, id := range c.Column {
		path = append(path, DisplayIdent(id.Text))
	}
	for _, v := range c.Values {
		parts = append(parts, dumpLiteral(v))
	}
	column := strings.Join(path, ".")
	switch c.Kind {
	case ConditionConstant:
		return fmt.Sprint(c.Constant)
	case ConditionAnd:
		return "and(" + strings.Join(parts, ", ") + ")"
	case ConditionOr:
		return "or(" + strings.Join(parts, ", ") + ")"
	case ConditionNot:
		return "not(" + parts[0] + ")"
	case ConditionIsNull:
		return column + " is null"
	case ConditionColumn:
		return column
	case ConditionIn:
		return column + " in (" + strings.Join(parts, ", ") + ")"
	}
	return column + " " + c.Operator + " " + parts[0]
}

func dumpLiteral(v Literal) string {
	switch v.Kind {
	case LiteralNull:
		return "null"
	case LiteralString:
		return strings.TrimSpace(v.Type + " " + fmt.Sprintf("%q", v.Text))
	}
	return v.Text
}
