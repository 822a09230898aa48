package write

import (
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/executor/duckdb"
)

// leaf is one column of the Parquet file.
type leaf struct {
	field    *planv1.Field
	path     string // for messages
	key      string // DuckDB's name of it in RETURN_STATS: quoted path
	expr     string // SQL over the file; empty below a list or map
	repeated bool   // below a list or map
	deep     bool   // inside a struct below a list or map, where DuckDB 1.5.6 counts NULLs twice
	mode     *planv1.MetricsMode
}

// leavesOf lists the leaves in the file's order.
func leavesOf(columns []column, metrics map[int32]*planv1.MetricsMode) []leaf {
	var out []leaf
	var walk func(l leaf)
	walk = func(l leaf) {
		t := l.field.GetType()
		if len(t.GetFields()) == 0 {
			l.mode = metrics[l.field.GetId()]
			out = append(out, l)
			return
		}
		isStruct := t.GetKind() == planv1.TypeKind_TYPE_KIND_STRUCT
		for n, f := range t.GetFields() {
			child := leaf{field: f, repeated: l.repeated || !isStruct, deep: l.deep || l.repeated && isStruct}
			name := f.GetName()
			if !isStruct {
				name = entryName(t.GetKind(), n)
			} else if l.expr != "" {
				child.expr = "struct_extract(" + l.expr + ", " + duckdb.Literal(name) + ")"
			}
			child.path, child.key = join(l.path, name), l.key+"."+duckdb.Ident(name)
			walk(child)
		}
	}
	for _, c := range columns {
		if c.omit {
			continue
		}
		walk(leaf{field: c.field, path: c.field.GetName(), key: duckdb.Ident(c.alias), expr: duckdb.Ident(c.alias)})
	}
	return out
}

// entryName is DuckDB's name of a list's or map's child.
func entryName(kind planv1.TypeKind, n int) string {
	switch {
	case kind == planv1.TypeKind_TYPE_KIND_LIST:
		return "element"
	case n == 0:
		return "key"
	default:
		return "value"
	}
}
