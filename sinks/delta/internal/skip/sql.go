package skip

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/sinks/delta/log/partition"
	"github.com/signet-io/signet/sinks/delta/log/schema"
	"github.com/signet-io/signet/sinks/delta/log/value"
)

var operators = map[planv1.CompareOp]string{
	planv1.CompareOp_COMPARE_OP_EQ: "=", planv1.CompareOp_COMPARE_OP_NE: "!=", planv1.CompareOp_COMPARE_OP_LT: "<", planv1.CompareOp_COMPARE_OP_LE: "<=",
	planv1.CompareOp_COMPARE_OP_GT: ">", planv1.CompareOp_COMPARE_OP_GE: ">=", planv1.CompareOp_COMPARE_OP_IN: "IN", planv1.CompareOp_COMPARE_OP_STARTS_WITH: "LIKE",
}

func sql(n node) string {
	switch n.kind {
	case allOf:
		return joined(n.terms, " AND ", "TRUE")
	case anyOf:
		return joined(n.terms, " OR ", "FALSE")
	case notOf:
		return "NOT (" + sql(n.terms[0]) + ")"
	case nullOf:
		return schema.PathString(n.column.path) + " IS NULL"
	case compared:
		name, t := schema.PathString(n.column.path), n.column.t
		switch n.op {
		case planv1.CompareOp_COMPARE_OP_IN:
			list := make([]string, len(n.values))
			for i, v := range n.values {
				list[i] = literal(t, v)
			}
			return name + " IN (" + strings.Join(list, ", ") + ")"
		case planv1.CompareOp_COMPARE_OP_STARTS_WITH:
			return "startswith(" + name + ", " + literal(t, n.values[0]) + ")"
		}
		return name + " " + operators[n.op] + " " + literal(t, n.values[0])
	}
	return strings.ToUpper(fmt.Sprint(n.constant))
}

func joined(terms []node, by, none string) string {
	if len(terms) == 0 {
		return none
	}
	parts := make([]string, len(terms))
	for i, t := range terms {
		if parts[i] = sql(t); len(terms) > 1 && (t.kind == allOf || t.kind == anyOf) {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, by)
}

func literal(t schema.Type, v value.Value) string {
	switch t.Kind {
	case schema.String:
		return "'" + strings.ReplaceAll(v.Text(), "'", "''") + "'"
	case schema.Binary:
		return fmt.Sprintf("X'%X'", v.Text())
	case schema.Date, schema.Timestamp, schema.TimestampNTZ:
		if text, err := partition.Serialize(t, v); err == nil && text != nil {
			return strings.ToUpper(t.Kind.String()) + " '" + *text + "'"
		}
	}
	return v.String()
}
