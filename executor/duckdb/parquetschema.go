package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// parquetNode is one element of a Parquet file's schema.
type parquetNode struct {
	name      string
	id        int32 // field id
	hasID     bool
	physical  string // INT32, BYTE_ARRAY, ...; empty for groups
	repeated  bool
	flattened bool // a struct whose only field DuckDB 1.5.6 reads in its place, because it looks like the middle of a list
	converted string
	logical   string
	engine    string // DuckDB's type of a leaf
	children  []*parquetNode
}

// parquetSchema is the schema of one file. Files with equal signatures have equal schemas, ids included.
type parquetSchema struct {
	path      string
	root      *parquetNode
	signature string
}

// parquetSchemas reads the schemas of files from their footers. An error names the file.
func (i *Instance) parquetSchemas(ctx context.Context, paths []string) ([]*parquetSchema, error) {
	list, err := patternList(paths)
	if err != nil {
		return nil, err
	}
	rows, err := i.conn.QueryContext(ctx, `SELECT file_name, name, type, repetition_type, num_children, converted_type, logical_type, duckdb_type, field_id
		FROM parquet_schema(`+list+`) ORDER BY file_name, column_id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*parquetSchema
	b := &schemaBuilder{}
	for rows.Next() {
		if err := b.add(rows); err != nil {
			return nil, err
		}
		if b.done() {
			out = append(out, b.take())
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(b.open) > 0 {
		return nil, userErrorf("", "%s: the Parquet schema ends early", b.path)
	}
	return out, nil
}

// fewFiles need no digests.
const fewFiles = 4

// schemaDigests answers a digest per file, equal for equal schemas, so that thousands of files do not each send all of their columns here.
func (i *Instance) schemaDigests(ctx context.Context, paths []string) (map[string]string, error) {
	out := make(map[string]string, len(paths))
	if len(paths) <= fewFiles {
		for _, p := range paths {
			out[p] = p
		}
		return out, nil
	}
	list, err := patternList(paths)
	if err != nil {
		return nil, err
	}
	rows, err := i.conn.QueryContext(ctx, `SELECT file_name, concat_ws(' ', count(*), bit_xor(h), sum(h)) FROM (SELECT file_name, hash(column_id, name, type,
		repetition_type, num_children, converted_type, logical_type, duckdb_type, field_id) AS h FROM parquet_schema(`+list+`)) GROUP BY 1`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var path, digest string
		if err := rows.Scan(&path, &digest); err != nil {
			return nil, err
		}
		out[path] = digest
	}
	return out, rows.Err()
}

// schemaBuilder turns the depth-first list of elements back into a tree.
type schemaBuilder struct {
	path string
	root *parquetNode
	open []openGroup
	sig  strings.Builder
}

type openGroup struct {
	node *parquetNode
	left int64
}

func (b *schemaBuilder) add(rows *sql.Rows) error {
	var file, name, physical, repetition, converted, logical, engine sql.NullString
	var children, id sql.NullInt64
	if err := rows.Scan(&file, &name, &physical, &repetition, &children, &converted, &logical, &engine, &id); err != nil {
		return err
	}
	n := &parquetNode{
		name: name.String, id: int32(id.Int64), hasID: id.Valid, physical: physical.String, repeated: repetition.String == "REPEATED",
		converted: converted.String, logical: logical.String, engine: engine.String,
	}
	fmt.Fprintf(&b.sig, "%q %v %d %s %v %s %s %s %d\n", n.name, n.hasID, n.id, n.physical, n.repeated, n.converted, n.logical, n.engine, children.Int64)
	if len(b.open) == 0 {
		b.path, b.root = file.String, n
	} else {
		top := &b.open[len(b.open)-1]
		top.node.children = append(top.node.children, n)
		top.left--
	}
	if children.Int64 > 0 {
		b.open = append(b.open, openGroup{n, children.Int64})
	}
	for len(b.open) > 0 && b.open[len(b.open)-1].left == 0 {
		b.open = b.open[:len(b.open)-1]
	}
	return nil
}

func (b *schemaBuilder) done() bool { return b.root != nil && len(b.open) == 0 }

func (b *schemaBuilder) take() *parquetSchema {
	s := &parquetSchema{path: b.path, root: b.root, signature: b.sig.String()}
	*b = schemaBuilder{}
	return s
}

// list answers the element of a LIST group. The three-level layout is the standard; the two-level ones are read as the standard's rules for old
// files say.
func (n *parquetNode) list() (*parquetNode, bool) {
	if n.converted != "LIST" && !strings.HasPrefix(n.logical, "ListType") || len(n.children) != 1 || !n.children[0].repeated {
		return nil, false
	}
	rep := n.children[0]
	if len(rep.children) == 1 && rep.name != "array" && rep.name != n.name+"_tuple" {
		return rep.children[0], true
	}
	element := *rep
	element.repeated, element.flattened = false, len(rep.children) == 1 // the list is what is repeated
	return &element, true
}

// entries answers key and value of a MAP group.
func (n *parquetNode) entries() (key, value *parquetNode, ok bool) {
	if n.converted != "MAP" && n.converted != "MAP_KEY_VALUE" && !strings.HasPrefix(n.logical, "MapType") || len(n.children) != 1 {
		return nil, nil, false
	}
	if kv := n.children[0]; kv.repeated && len(kv.children) == 2 {
		return kv.children[0], kv.children[1], true
	}
	return nil, nil, false
}

// plainStruct reports a group that is nothing but a struct.
func (n *parquetNode) plainStruct() bool {
	return n.physical == "" && len(n.children) > 0 && n.converted == "" && n.logical == "" && !n.repeated
}

// decimal reports a leaf that is annotated as a decimal.
func (n *parquetNode) decimal() bool {
	return n.converted == "DECIMAL" || strings.HasPrefix(n.logical, "DecimalType")
}

// wideDecimal reports a decimal of more digits than DuckDB has, which it reads as a DOUBLE: the values are rounded, or wrong altogether.
func (n *parquetNode) wideDecimal() bool {
	return len(n.children) == 0 && n.decimal() && !strings.HasPrefix(n.engine, "DECIMAL")
}
