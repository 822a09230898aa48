package duckdb

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// mapper writes the projection of one group of files: the table's columns out of the files' own.
type mapper struct {
	schema    *parquetSchema
	constants map[int32]*planv1.Value
	byName    bool // no element of the file has a field id
	lambdas   int
}

func (m *mapper) setConstants(ts *planv1.TableScan, f *planv1.PinnedFile) error {
	if len(f.GetConstants()) != len(ts.GetConstantIds()) {
		return fmt.Errorf("%s has %d constants, the scan %d", displayName(f), len(f.GetConstants()), len(ts.GetConstantIds()))
	}
	for n, id := range ts.GetConstantIds() {
		m.constants[id] = f.GetConstants()[n]
	}
	return nil
}

func (m *mapper) project(ts *planv1.TableScan) (string, error) {
	m.byName = !anyID(m.schema.root)
	names, err := m.topNames()
	if err != nil {
		return "", err
	}
	var parts []string
	for _, f := range ts.GetSchema().GetFields() {
		expr, err := m.column(f, names)
		if err != nil {
			return "", err
		}
		parts = append(parts, expr+" AS "+Ident(f.GetName()))
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("a scan of no columns")
	}
	return strings.Join(parts, ", "), nil
}

// topNames are the names that DuckDB gives the file's columns: it numbers those that differ only in case.
func (m *mapper) topNames() ([]string, error) {
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
	return names, nil
}

func (m *mapper) column(f *planv1.Field, names []string) (string, error) {
	sqlType, err := SQLType(f.GetType())
	if err != nil {
		return "", userErrorf("select the other columns by name", "column %q: %v", f.GetName(), err)
	}
	if v, ok := m.constants[f.GetId()]; ok {
		lit, err := LiteralOf(v, f.GetType())
		if err != nil {
			return "", fmt.Errorf("column %q: %w", f.GetName(), err)
		}
		return "CAST(" + lit + " AS " + sqlType + ")", nil
	}
	n := m.find(f, m.schema.root.children)
	if n < 0 {
		return "CAST(NULL AS " + sqlType + ")", nil
	}
	expr, err := m.convert(Ident(names[n]), f.GetType(), m.schema.root.children[n], f.GetName())
	if err != nil {
		return "", err
	}
	return "CAST(" + expr + " AS " + sqlType + ")", nil
}

// find looks a field up among elements: by id, or by exact name in files without any id.
func (m *mapper) find(f *planv1.Field, nodes []*parquetNode) int {
	for n, c := range nodes {
		if m.byName && c.name == f.GetName() || !m.byName && c.hasID && c.id == f.GetId() {
			return n
		}
	}
	return -1
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
			parts[k], same = Literal(f.GetName())+": CAST(NULL AS "+t+")", false
			continue
		}
		field := fmt.Sprintf("struct_extract_at(%s, %d)", src, n+1)
		expr, err := m.convert(field, f.GetType(), have.children[n], sub)
		if err != nil {
			return "", err
		}
		same = same && n == k && have.children[n].name == f.GetName() && expr == field
		parts[k] = Literal(f.GetName()) + ": " + expr
	}
	if same {
		return src, nil
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
