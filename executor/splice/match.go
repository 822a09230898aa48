package splice

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/footer"
)

// Column is a column of the table with the column of the source that it is copied from.
type Column struct {
	Field *planv1.Field // of the table
	Name  string        // in the new file
	From  string        // the source's column
	ByID  *planv1.Field // table scans: the source's column, which is found in its files by field id; nil: it is found by name
	Omit  bool          // it is not in the new file, which is of the partition that it says
}

// Leaf is a column of the new file that has values.
type Leaf struct {
	Field    *planv1.Field // of the table
	Path     string        // for messages
	Repeated bool          // below a list or map
	names    []string      // in the new file
	element  footer.Element
	source   int // place among the leaves of the source file
}

// need is a place of the table that must have no NULL where the file's schema allows one: some leaf below it without NULLs proves that.
type need struct {
	path   string
	leaves []int // places in Layout.Leaves
}

// Layout says how a file's columns become those of a new file.
type Layout struct {
	Leaves  []Leaf
	Omitted []Leaf // of columns that are in the source file alone
	schema  []footer.Element
	needs   []need
}

// Signature is equal for layouts whose row groups may be in one file.
func (l *Layout) Signature() string {
	var b strings.Builder
	for n := range l.schema {
		fmt.Fprintf(&b, "%+v\n", l.schema[n])
	}
	return b.String()
}

// node is an element of a file's schema with those below it.
type node struct {
	*footer.Element
	children []*node
	leaf     int
}

func treeOf(f *footer.File) *node {
	at, leaves := 0, 0
	var next func() *node
	next = func() *node {
		n := &node{Element: &f.Schema[at]}
		at++
		if n.Physical != footer.Group {
			n.leaf = leaves
			leaves++
			return n
		}
		for range n.Children {
			n.children = append(n.children, next())
		}
		return n
	}
	return next()
}

// Match finds the columns in a file. ids says whether the new file has field ids. reason says why they cannot be copied; empty: they can.
func Match(f *footer.File, columns []Column, ids bool) (l *Layout, reason string) {
	root := treeOf(f)
	m, aside := &matcher{layout: &Layout{}}, &matcher{layout: &Layout{}}
	m.group("table", footer.Unrepeated, 0, 0)
	children := int32(0)
	for _, c := range columns {
		n, reason := find(root, c)
		if reason != "" {
			return nil, reason
		}
		if n.Repetition == footer.Repeated {
			return nil, fmt.Sprintf("column %q is a repeated element without a list around it", c.From)
		}
		to := m
		if c.Omit {
			to = aside
		} else {
			children++
		}
		if reason := to.add(n, c.Field, c.ByID, c.Name, c.Field.GetName()); reason != "" {
			return nil, reason
		}
	}
	m.layout.schema[0].Children = children
	m.layout.Omitted = aside.layout.Leaves
	if !ids {
		m.layout.dropIDs()
	}
	return m.layout, ""
}

func (l *Layout) dropIDs() {
	for n := range l.schema {
		l.schema[n].FieldID, l.schema[n].HasID = 0, false
	}
}

func find(root *node, c Column) (*node, string) {
	var found *node
	ids := false
	for _, n := range root.children {
		ids = ids || n.HasID
		if c.ByID != nil && n.HasID && n.FieldID == c.ByID.GetId() || c.ByID == nil && strings.EqualFold(n.Name, c.From) {
			if found != nil {
				return nil, fmt.Sprintf("column %q is in the file twice", c.From)
			}
			found = n
		}
	}
	switch {
	case found != nil:
		return found, ""
	case c.ByID != nil && !ids:
		return nil, "it has no field ids: its columns are found by name"
	}
	return nil, fmt.Sprintf("column %q is not in the file", c.From)
}

type matcher struct {
	layout   *Layout
	names    []string
	repeated bool
	loose    bool // types may be narrower than the table's: nothing is copied
}

// add appends a column, or a part of one, under a name.
func (m *matcher) add(n *node, f, src *planv1.Field, name, path string) (reason string) {
	first := len(m.layout.Leaves)
	m.names = append(m.names, name)
	defer func() {
		m.names = m.names[:len(m.names)-1]
		if reason == "" && f.GetRequired() && n.Repetition != footer.Required {
			one := need{path: path}
			for i := first; i < len(m.layout.Leaves); i++ {
				one.leaves = append(one.leaves, i)
			}
			m.layout.needs = append(m.layout.needs, one)
		}
	}()
	switch f.GetType().GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		return m.structure(n, f, src, name, path)
	case planv1.TypeKind_TYPE_KIND_LIST:
		return m.list(n, f, src, name, path)
	case planv1.TypeKind_TYPE_KIND_MAP:
		return m.entries(n, f, src, name, path)
	}
	e, reason := leafElement(n.Element, f.GetType(), path)
	if reason != "" && (!m.loose || !promoted(n.Element, f.GetType())) {
		return reason
	}
	e.Name, e.FieldID, e.HasID = name, f.GetId(), f.GetId() != 0
	m.layout.schema = append(m.layout.schema, e)
	m.layout.Leaves = append(m.layout.Leaves, Leaf{
		Field: f, Path: path, Repeated: m.repeated, names: append([]string(nil), m.names...), element: e, source: n.leaf,
	})
	return ""
}

func (m *matcher) group(name string, rep footer.Repetition, children int, id int32) *footer.Element {
	m.layout.schema = append(m.layout.schema, footer.Element{
		Physical: footer.Group, Repetition: rep, Name: name, Children: int32(children), Converted: footer.NoConverted, FieldID: id, HasID: id != 0,
	})
	return &m.layout.schema[len(m.layout.schema)-1]
}

func plain(n *node) bool {
	return n.Physical == footer.Group && n.Converted == footer.NoConverted && n.Logical.Kind == footer.NoLogical
}

func (m *matcher) structure(n *node, f, src *planv1.Field, name, path string) string {
	fields := f.GetType().GetFields()
	if !plain(n) || len(n.children) != len(fields) {
		return fmt.Sprintf("column %q is not stored as a struct of the table's fields", path)
	}
	m.group(name, n.Repetition, len(fields), f.GetId())
	for k, child := range fields {
		sub := path + "." + child.GetName()
		if reason := same(n.children[k], child, src, k, sub); reason != "" {
			return reason
		}
		if n.children[k].Repetition == footer.Repeated {
			return fmt.Sprintf("column %q is a repeated element without a list around it", sub)
		}
		if reason := m.add(n.children[k], child, part(src, k), child.GetName(), sub); reason != "" {
			return reason
		}
	}
	return ""
}

// part is a field of a source's type.
func part(src *planv1.Field, k int) *planv1.Field {
	if fields := src.GetType().GetFields(); k < len(fields) {
		return fields[k]
	}
	return nil
}

// same says whether a part of the file is the table's, by id where the source is a table, and by name otherwise.
func same(n *node, f, src *planv1.Field, k int, path string) string {
	if src != nil {
		if want := part(src, k); want == nil || !n.HasID || n.FieldID != want.GetId() {
			return fmt.Sprintf("column %q has another field id in the file", path)
		}
		return ""
	}
	if n.Name != f.GetName() {
		return fmt.Sprintf("column %q is called %q in the file", path, n.Name)
	}
	return ""
}

func (m *matcher) list(n *node, f, src *planv1.Field, name, path string) string {
	annotated := n.Converted == footer.ListConverted || n.Logical.Kind == footer.ListLogical
	if !annotated || len(n.children) != 1 || len(f.GetType().GetFields()) != 1 {
		return fmt.Sprintf("column %q is not stored as a list", path)
	}
	mid := n.children[0]
	if mid.Repetition != footer.Repeated || !plain(mid) || len(mid.children) != 1 || mid.Name == "array" || mid.Name == n.Name+"_tuple" {
		return fmt.Sprintf("column %q is a list in an old layout", path)
	}
	elem := mid.children[0]
	if elem.Repetition == footer.Repeated {
		return fmt.Sprintf("column %q is a list in an old layout", path)
	}
	if src != nil {
		if reason := same(elem, nil, src, 0, path+".element"); reason != "" {
			return reason
		}
	}
	e := m.group(name, n.Repetition, 1, f.GetId())
	e.Converted, e.Logical.Kind = footer.ListConverted, footer.ListLogical
	m.group("list", footer.Repeated, 1, 0)
	return m.inside("list", func() string {
		return m.add(elem, f.GetType().GetFields()[0], part(src, 0), "element", path+".element")
	})
}

func (m *matcher) entries(n *node, f, src *planv1.Field, name, path string) string {
	annotated := n.Converted == footer.MapConverted || n.Converted == footer.MapKeyValue || n.Logical.Kind == footer.MapLogical
	if !annotated || len(n.children) != 1 || len(f.GetType().GetFields()) != 2 {
		return fmt.Sprintf("column %q is not stored as a map", path)
	}
	mid := n.children[0]
	if mid.Repetition != footer.Repeated || mid.Physical != footer.Group || len(mid.children) != 2 {
		return fmt.Sprintf("column %q is a map in an old layout", path)
	}
	e := m.group(name, n.Repetition, 1, f.GetId())
	e.Converted, e.Logical.Kind = footer.MapConverted, footer.MapLogical
	m.group("key_value", footer.Repeated, 2, 0)
	return m.inside("key_value", func() string {
		for k, child := range []string{"key", "value"} {
			if mid.children[k].Repetition == footer.Repeated {
				return fmt.Sprintf("column %q is a map in an old layout", path)
			}
			if src != nil {
				if reason := same(mid.children[k], nil, src, k, path+"."+child); reason != "" {
					return reason
				}
			}
			if reason := m.add(mid.children[k], f.GetType().GetFields()[k], part(src, k), child, path+"."+child); reason != "" {
				return reason
			}
		}
		return ""
	})
}

func (m *matcher) inside(name string, add func() string) string {
	before := m.repeated
	m.repeated, m.names = true, append(m.names, name)
	reason := add()
	m.repeated, m.names = before, m.names[:len(m.names)-1]
	return reason
}

// Names are those of a leaf and of what it is in, in the new file, from the top.
func (l *Leaf) Names() []string { return l.names }
