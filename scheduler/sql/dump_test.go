package sql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// dump writes a statement as the golden files have it.
func dump(s Statement) string {
	var b strings.Builder
	switch s := s.(type) {
	case *Select:
		fmt.Fprintf(&b, "select %s\n", dumpQuery(s.Query))
	case *Insert:
		fmt.Fprintf(&b, "insert into=%s by-name=%v", s.Table, s.ByName)
		if s.Columns != nil {
			b.WriteString(" columns=(")
			for i, c := range s.Columns {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString(DisplayIdent(c.Text))
			}
			b.WriteString(")")
		}
		b.WriteString(dumpOverwrite(s))
		fmt.Fprintf(&b, "\n  query %s\n", dumpQuery(s.Query))
	case *Truncate:
		fmt.Fprintf(&b, "truncate table %s if-exists=%v\n", s.Table, s.IfExists)
	case *Validate:
		fmt.Fprintf(&b, "validate %s", dump(s.Statement))
	case *Delete, *Update, *Merge:
		b.WriteString(dumpRowLevel(s))
	case *CreateTable:
		dumpCreate(&b, s)
	case *CreateSchema:
		fmt.Fprintf(&b, "create schema %s if-not-exists=%v\n", s.Name, s.IfNotExists)
	case *DropTable:
		fmt.Fprintf(&b, "drop table %s if-exists=%v\n", s.Table, s.IfExists)
	case *ShowCatalogs:
		b.WriteString("show catalogs\n")
	case *ShowSchemas:
		b.WriteString("show schemas")
		if s.Catalog != nil {
			fmt.Fprintf(&b, " from %s", DisplayIdent(s.Catalog.Text))
		}
		b.WriteString("\n")
	case *ShowTables:
		b.WriteString("show tables")
		if s.Schema != nil {
			fmt.Fprintf(&b, " from %s", s.Schema)
		}
		b.WriteString("\n")
	case *ShowCreate:
		fmt.Fprintf(&b, "show create table %s\n", s.Table)
	case *Describe:
		fmt.Fprintf(&b, "describe %s\n", s.Table)
	case *AddFiles:
		fmt.Fprintf(&b, "add files to=%s files=%q copy=%v check-duplicates=%v\n", s.Table, s.Files, s.Copy, s.CheckDuplicates)
	case *AlterTable, *Call, *ShowProperties, *ShowHistory, *DescribeHistory, *Vacuum:
		dumpAlter(&b, s)
	case *Cache:
		fmt.Fprintf(&b, "cache table %s\n  query %s\n", DisplayIdent(s.Name.Text), dumpQuery(s.Query))
	case *Uncache:
		fmt.Fprintf(&b, "uncache table %s if-exists=%v\n", DisplayIdent(s.Name.Text), s.IfExists)
	case *Explain:
		analyze := ""
		if s.Analyze {
			analyze = "analyze "
		}
		fmt.Fprintf(&b, "explain %s%s", analyze, dump(s.Statement))
	}
	return b.String()
}

func dumpQuery(q Query) string { return fmt.Sprintf("@%d %q", q.Offset, q.Text) }

func dumpCreate(b *strings.Builder, s *CreateTable) {
	replace := ""
	if s.Replace {
		replace = " or-replace=true"
	}
	fmt.Fprintf(b, "create table %s if-not-exists=%v%s\n", s.Table, s.IfNotExists, replace)
	for _, c := range s.Columns {
		fmt.Fprintf(b, "  column %s", DisplayIdent(c.Name.Text))
		if c.Type != nil {
			fmt.Fprintf(b, " %s", dumpType(c.Type))
		}
		if c.Required {
			b.WriteString(" required")
		}
		if c.Default != nil {
			fmt.Fprintf(b, " default %v", c.Default.GetKind())
		}
		if c.Comment != "" {
			fmt.Fprintf(b, " %q", c.Comment)
		}
		b.WriteString("\n")
	}
	for _, t := range s.Partition {
		fmt.Fprintf(b, "  partition %s(%s, %d)\n", transformName(t.Transform), DisplayIdent(t.Column.Text), t.Param)
	}
	for _, t := range s.Sort {
		fmt.Fprintf(b, "  sort %s(%s, %d) desc=%v nulls-first=%v\n", transformName(t.Transform), DisplayIdent(t.Column.Text), t.Param, t.Descending, t.NullsFirst)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
		fmt.Fprintf(b, "  property %q = %q\n", k, s.Properties[k])
	}
	if s.Query != nil {
		fmt.Fprintf(b, "  query %s\n", dumpQuery(*s.Query))
	}
}

func transformName(k planv1.TransformKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "TRANSFORM_KIND_"))
}

func dumpType(t *planv1.Type) string {
	s := strings.ToLower(strings.TrimPrefix(t.GetKind().String(), "TYPE_KIND_"))
	switch t.GetKind() {
	case planv1.TypeKind_TYPE_KIND_DECIMAL:
		s += fmt.Sprintf("(%d,%d)", t.Precision, t.Scale)
	case planv1.TypeKind_TYPE_KIND_FIXED:
		s += fmt.Sprintf("(%d)", t.Length)
	}
	if len(t.GetFields()) == 0 {
		return s
	}
	var parts []string
	for _, f := range t.Fields {
		p := f.Name + ":" + dumpType(f.Type)
		if f.Required {
			p += "!"
		}
		if f.Doc != "" {
			p += fmt.Sprintf(" %q", f.Doc)
		}
		parts = append(parts, p)
	}
	return s + "<" + strings.Join(parts, ", ") + ">"
}
