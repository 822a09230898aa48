package sql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func dumpAlter(b *strings.Builder, s Statement) {
	switch s := s.(type) {
	case *AlterTable:
		fmt.Fprintf(b, "alter table %s if-exists=%v\n", s.Table, s.IfExists)
		for _, c := range s.Changes {
			fmt.Fprintf(b, "  %s\n", dumpProto(c))
		}
		if s.RenameTo != nil {
			fmt.Fprintf(b, "  rename to %s\n", s.RenameTo)
		}
	case *Call:
		b.WriteString("call ")
		if s.Catalog != nil {
			fmt.Fprintf(b, "%s.", DisplayIdent(s.Catalog.Text))
		}
		fmt.Fprintf(b, "%s\n", DisplayIdent(s.Procedure.Text))
		for _, a := range s.Args {
			b.WriteString("  ")
			if a.Name != nil {
				fmt.Fprintf(b, "%s => ", DisplayIdent(a.Name.Text))
			}
			fmt.Fprintf(b, "%s\n", dumpConstant(a.Value))
		}
	case *ShowProperties:
		fmt.Fprintf(b, "show properties of %s key=%q\n", s.Table, s.Key)
	case *ShowHistory:
		fmt.Fprintf(b, "show %s of %s\n", s.What, s.Table)
	case *DescribeHistory:
		fmt.Fprintf(b, "describe history of %s limit=%d\n", s.Table, s.Limit)
	case *Vacuum:
		retain := "as the table says"
		if s.RetainHours != nil {
			retain = fmt.Sprintf("%d hours", *s.RetainHours)
		}
		fmt.Fprintf(b, "vacuum %s retain=%s dry-run=%v\n", s.Table, retain, s.DryRun)
	}
}

func dumpConstant(l Constant) string {
	if l.IsList || l.IsMap {
		parts := make([]string, len(l.Items))
		for i, it := range l.Items {
			parts[i] = dumpConstant(it)
		}
		if l.IsMap {
			return "map(" + strings.Join(parts, ", ") + ")"
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if l.Value == nil {
		return "NULL"
	}
	return dumpProto(l.Value)
}

// dumpProto writes a message as compact JSON: protojson varies its blanks on purpose.
func dumpProto(m proto.Message) string {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return err.Error()
	}
	return out.String()
}
