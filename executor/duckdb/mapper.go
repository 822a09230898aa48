package duckdb

import (
	"fmt"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// mapper writes the projection of one group of files: the table's columns out of the files' own.
type mapper struct {
	schema      *parquetSchema
	fields      []*planv1.Field // of the table
	names       map[int32][]string
	constants   map[int32]*planv1.Value // of fields that the file does not hold
	constantIDs []int32
	byName      bool // no element of the file has a field id, or ids mean nothing
	scanByName  bool // fields are found by names in all files: TableScan.by_name
	lambdas     int
}

// settle decides how fields are found in a file, and which of its constants are needed.
func (m *mapper) settle(ts *planv1.TableScan, f *planv1.PinnedFile) error {
	if len(f.GetConstants()) != len(ts.GetConstantIds()) {
		return fmt.Errorf("%s has %d constants, the scan %d", displayName(f), len(f.GetConstants()), len(ts.GetConstantIds()))
	}
	m.scanByName = ts.GetByName()
	if m.byName = m.scanByName || !anyID(m.schema.root); m.byName && !m.scanByName && m.names == nil && anyFieldID(m.fields) && len(m.schema.root.children) > 0 {
		return userErrorf("set the table property schema.name-mapping.default, which says what the columns of such files are, or write the file again",
			"%s: its columns have no field ids, so nobody knows which columns of the table they are", displayName(f))
	}
	if m.scanByName {
		if err := m.distinct(m.fields, m.schema.root.children, ""); err != nil {
			return err
		}
	}
	for n, id := range ts.GetConstantIds() {
		if m.scanByName || m.path(id, ts.GetSchema().GetFields(), m.schema.root) == nil {
			m.constants[id] = f.GetConstants()[n]
			m.constantIDs = append(m.constantIDs, id)
		}
	}
	return nil
}

func anyFieldID(fields []*planv1.Field) bool {
	for _, f := range fields {
		if f.GetId() != 0 {
			return true
		}
	}
	return false
}

// path leads from the root of the file's schema to a leaf of the table, through structs; nil if the file does not hold it.
func (m *mapper) path(id int32, fields []*planv1.Field, in *parquetNode) []int {
	for _, f := range fields {
		inside := f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT
		if f.GetId() != id && !inside {
			continue
		}
		n := m.find(f, in.children)
		switch {
		case n < 0:
		case f.GetId() == id:
			return []int{n}
		default:
			if rest := m.path(id, f.GetType().GetFields(), in.children[n]); rest != nil {
				return append([]int{n}, rest...)
			}
		}
	}
	return nil
}

// topNames are the names that DuckDB gives the file's columns: it numbers those that differ only in case.
func (m *mapper) topNames() []string {
	names := make([]string, len(m.schema.root.children))
	used := map[string]bool{}
	for n, c := range m.schema.root.children {
		name := c.name
		for k := 1; used[strings.ToLower(name)]; k++ {
			name = fmt.Sprintf("%s_%d", c.name, k)
		}
		used[strings.ToLower(name)] = true
		names[n] = name
	}
	return names
}

// hidden are the columns that DuckDB has for every Parquet file, but for one that has a column of the name.
var hidden = []string{"filename", "file_row_number"}

// readNames are the names by which the file's columns are read: topNames, and others where a column of the file would hide one of DuckDB's own. renamed
// says that there are such.
func (m *mapper) readNames() (names []string, renamed bool) {
	names = m.topNames()
	used := map[string]bool{}
	for _, name := range names {
		used[strings.ToLower(name)] = true
	}
	for n, name := range names {
		if !slices.Contains(hidden, strings.ToLower(name)) {
			continue
		}
		for used[strings.ToLower(name)] {
			name += "_"
		}
		used[strings.ToLower(name)], names[n], renamed = true, name, true
	}
	return names, renamed
}

func (m *mapper) column(f *planv1.Field, names []string) (string, error) {
	sqlType, err := SQLType(f.GetType())
	if err != nil {
		return "", noType(f.GetName(), err)
	}
	n := m.find(f, m.schema.root.children)
	if _, constant := m.constants[f.GetId()]; n < 0 || constant {
		return m.missing(f, sqlType, f.GetName())
	}
	expr, err := m.convert(Ident(names[n]), f.GetType(), m.schema.root.children[n], f.GetName())
	if err != nil {
		return "", err
	}
	return "CAST(" + expr + " AS " + sqlType + ")", nil
}

// missing is what a field that the file does not hold reads as: its partition value, else its initial default.
func (m *mapper) missing(f *planv1.Field, sqlType, path string) (string, error) {
	v, ok := m.constants[f.GetId()]
	if !ok {
		if v = f.GetInitialDefault(); v == nil {
			return m.missingStruct(f, sqlType, path)
		}
	}
	lit, err := LiteralOf(v, f.GetType())
	if err != nil {
		return "", fmt.Errorf("column %q: %w", path, err)
	}
	return "CAST(" + lit + " AS " + sqlType + ")", nil
}

// missingStruct is NULL, unless a field of a required struct has something to say.
func (m *mapper) missingStruct(f *planv1.Field, sqlType, path string) (string, error) {
	null := "CAST(NULL AS " + sqlType + ")"
	if f.GetType().GetKind() != planv1.TypeKind_TYPE_KIND_STRUCT || !m.stands(f) {
		return null, nil
	}
	parts := make([]string, len(f.GetType().GetFields()))
	for n, c := range f.GetType().GetFields() {
		t, err := SQLType(c.GetType())
		if err != nil {
			return "", userErrorf("", "column %q: %v", path+"."+c.GetName(), err)
		}
		expr, err := m.missing(c, t, path+"."+c.GetName())
		if err != nil {
			return "", err
		}
		parts[n] = Literal(c.GetName()) + ": " + expr
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// stands reports whether a struct that the file does not hold is there all the same: it is required, or a partition value lies in it.
func (m *mapper) stands(f *planv1.Field) bool {
	if f.GetRequired() {
		return true
	}
	for _, c := range f.GetType().GetFields() {
		if v, ok := m.constants[c.GetId()]; ok && v.GetKind() != nil || c.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT && m.stands(c) && !c.GetRequired() {
			return true
		}
	}
	return false
}

// lineage is a column of row lineage: what the file holds, where it holds it, else what follows from the file.
func (m *mapper) lineage(id int32, names []string, otherwise string) string {
	for n, c := range m.schema.root.children {
		if c.hasID && c.id == id {
			return "coalesce(CAST(" + Ident(names[n]) + " AS BIGINT), " + otherwise + ")"
		}
	}
	return otherwise
}

// find looks a field up among elements: by id, or by name in files without any id.
func (m *mapper) find(f *planv1.Field, nodes []*parquetNode) int {
	if !m.byName {
		return slices.IndexFunc(nodes, func(c *parquetNode) bool { return c.hasID && c.id == f.GetId() })
	}
	names := []string{f.GetName()}
	if m.names != nil {
		names = m.names[f.GetId()]
	}
	n := slices.IndexFunc(nodes, func(c *parquetNode) bool { return slices.Contains(names, c.name) })
	if n < 0 && m.scanByName && m.names == nil {
		return slices.IndexFunc(nodes, func(c *parquetNode) bool { return strings.EqualFold(c.name, f.GetName()) })
	}
	return n
}

// distinct refuses a field whose name several elements of the file have in other cases, and none as it is (X3): nobody knows which it is.
func (m *mapper) distinct(fields []*planv1.Field, nodes []*parquetNode, path string) error {
	for _, f := range fields {
		n := m.find(f, nodes)
		if n < 0 {
			continue
		}
		name := path + f.GetName()
		for _, other := range nodes[n+1:] {
			if nodes[n].name != f.GetName() && m.names == nil && strings.EqualFold(other.name, f.GetName()) {
				return userErrorf("write the file again with one of them", "%s: columns %q and %q may both be column %q of the table", m.schema.path, nodes[n].name, other.name, name)
			}
		}
		if f.GetType().GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT {
			if err := m.distinct(f.GetType().GetFields(), nodes[n].children, name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

func anyID(n *parquetNode) bool {
	for _, c := range n.children {
		if c.hasID || anyID(c) {
			return true
		}
	}
	return false
}

// convert writes the expression that turns src, of the file's type have, into the table's type want.
func (m *mapper) convert(src string, want *planv1.Type, have *parquetNode, path string) (string, error) {
	switch want.GetKind() {
	case planv1.TypeKind_TYPE_KIND_STRUCT:
		if !have.plainStruct() {
			return "", m.refuse(path, want, have)
		}
		return m.convertStruct(src, want, have, path)
	case planv1.TypeKind_TYPE_KIND_LIST:
		elem, ok := have.list()
		if !ok {
			return "", m.refuse(path, want, have)
		}
		return m.convertList(src, want, elem, path)
	case planv1.TypeKind_TYPE_KIND_MAP:
		key, value, ok := have.entries()
		if !ok {
			return "", m.refuse(path, want, have)
		}
		return m.convertMap(src, want, key, value, path)
	default:
		expr, ok := m.convertLeaf(src, want, have)
		if !ok {
			return "", m.refuse(path, want, have)
		}
		return expr, nil
	}
}

func (m *mapper) refuse(path string, want *planv1.Type, have *parquetNode) error {
	what := have.engine
	if what == "" {
		what = "a group"
	}
	return userErrorf("rewrite the file with the table's type", "%s: column %q is %s in the file and %s in the table", m.schema.path, path, what, TypeName(want))
}

func (m *mapper) convertStruct(src string, want *planv1.Type, have *parquetNode, path string) (string, error) {
	if err := distinctNames(path, want.GetFields()); err != nil {
		return "", err
	}
	same := len(want.GetFields()) == len(have.children)
	parts := make([]string, len(want.GetFields()))
	for k, f := range want.GetFields() {
		sub := path + "." + f.GetName()
		n := m.find(f, have.children)
		if n < 0 {
			t, err := SQLType(f.GetType())
			if err != nil {
				return "", userErrorf("", "column %q: %v", sub, err)
			}
			lit, err := m.missing(f, t, sub)
			if err != nil {
				return "", err
			}
			parts[k], same = Literal(f.GetName())+": "+lit, false
			continue
		}
		field := fmt.Sprintf("struct_extract_at(%s, %d)", src, n+1)
		if have.flattened {
			field, same = src, false
		}
		expr, err := m.convert(field, f.GetType(), have.children[n], sub)
		if err != nil {
			return "", err
		}
		same = same && n == k && have.children[n].name == f.GetName() && expr == field
		parts[k] = Literal(f.GetName()) + ": " + expr
	}
	switch {
	case same:
		return src, nil
	case have.flattened: // a NULL is the field's
		return "{" + strings.Join(parts, ", ") + "}", nil
	}
	return "CASE WHEN " + src + " IS NULL THEN NULL ELSE {" + strings.Join(parts, ", ") + "} END", nil
}

func (m *mapper) lambda() string {
	m.lambdas++
	return fmt.Sprintf("signet_x%d", m.lambdas)
}

func (m *mapper) convertList(src string, want *planv1.Type, elem *parquetNode, path string) (string, error) {
	if len(want.GetFields()) != 1 {
		return "", fmt.Errorf("column %q: malformed LIST", path)
	}
	x := m.lambda()
	expr, err := m.convert(x, want.GetFields()[0].GetType(), elem, path+".element")
	if err != nil || expr == x {
		return src, err
	}
	return fmt.Sprintf("list_transform(%s, lambda %s: %s)", src, x, expr), nil
}

func (m *mapper) convertMap(src string, want *planv1.Type, key, value *parquetNode, path string) (string, error) {
	if len(want.GetFields()) != 2 {
		return "", fmt.Errorf("column %q: malformed MAP", path)
	}
	x := m.lambda()
	k, v := "struct_extract_at("+x+", 1)", "struct_extract_at("+x+", 2)"
	ke, err := m.convert(k, want.GetFields()[0].GetType(), key, path+".key")
	if err != nil {
		return "", err
	}
	ve, err := m.convert(v, want.GetFields()[1].GetType(), value, path+".value")
	if err != nil || ke == k && ve == v {
		return src, err
	}
	return fmt.Sprintf("map_from_entries(list_transform(map_entries(%s), lambda %s: {'key': %s, 'value': %s}))", src, x, ke, ve), nil
}
