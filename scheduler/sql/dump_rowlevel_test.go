package sql

import (
	"fmt"
	"strings"
)

// dumpRowLevel writes DELETE, UPDATE and MERGE as the golden files have them.
func dumpRowLevel(s Statement) string {
	var b strings.Builder
	switch s := s.(type) {
	case *Delete:
		fmt.Fprintf(&b, "delete from=%s alias=%q\n", s.Table, s.Alias)
		dumpFragment(&b, "where", s.Where)
	case *Update:
		fmt.Fprintf(&b, "update %s alias=%q\n", s.Table, s.Alias)
		dumpSet(&b, s.Set)
		dumpFragment(&b, "from", s.From)
		dumpFragment(&b, "where", s.Where)
	case *Merge:
		fmt.Fprintf(&b, "merge into=%s alias=%q source=%q\n", s.Table, s.Alias, s.Name)
		dumpFragment(&b, "using", &s.Source)
		dumpFragment(&b, "on", &s.On)
		for _, c := range s.When {
			fmt.Fprintf(&b, "  when match=%d action=%d all=%v\n", c.Match, c.Action, c.All)
			dumpFragment(&b, "  and", c.And)
			dumpSet(&b, c.Set)
			for _, id := range c.Columns {
				fmt.Fprintf(&b, "    column %s\n", DisplayIdent(id.Text))
			}
			for _, v := range c.Values {
				dumpFragment(&b, "  value", &v)
			}
		}
	}
	return b.String()
}

func dumpSet(b *strings.Builder, set []Assignment) {
	for _, a := range set {
		dumpFragment(b, "set "+DisplayIdent(a.Column.Text), &a.Value)
	}
}

func dumpFragment(b *strings.Builder, what string, f *Fragment) {
	if f == nil {
		return
	}
	fmt.Fprintf(b, "  %s @%d %q", what, f.Offset, f.Text)
	for _, x := range []struct {
		is   bool
		name string
	}{{f.String, "string"}, {f.Null, "null"}, {f.Default, "default"}} {
		if x.is {
			b.WriteString(" " + x.name)
		}
	}
	b.WriteString("\n")
}
