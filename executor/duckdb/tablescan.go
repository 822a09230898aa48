package duckdb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// tableQuery writes the SELECT of a table scan: files with the same schema are read together, and each such group gets a projection that maps its own
// columns to the table's by field id. DuckDB's own option for this (read_parquet's schema) is not used: in 1.5.6 it reads NULL for columns that
// are there when the files differ, does not map nested fields, and fails inside together with file_row_number.
func (i *Instance) tableQuery(ctx context.Context, ts *planv1.TableScan) (string, error) {
	if err := distinctNames(ts.GetTable(), append(systemFields(ts), ts.GetSchema().GetFields()...)); err != nil {
		return "", err
	}
	if len(ts.GetFiles()) == 0 {
		return emptyTable(ts)
	}
	v := &tableView{inst: i, scan: ts, names: namesByField(ts)}
	groups, err := v.groups(ctx)
	if err != nil {
		return "", err
	}
	if err := v.loadDeletes(ctx); err != nil {
		return "", err
	}
	var parts []string
	for _, g := range groups {
		selects, err := v.selects(ctx, g)
		if err != nil {
			return "", err
		}
		parts = append(parts, selects...)
	}
	if len(parts) == 0 {
		return emptyTable(ts)
	}
	return strings.Join(parts, " UNION ALL "), nil
}

// Columns that a view with positions has besides the table's own.
const (
	fileColumn     = "_file"
	positionColumn = "_pos"
	rowIDColumn    = "_row_id"
	sequenceColumn = "_last_updated_sequence_number"
)

// Field ids under which files may hold the columns of row lineage.
const (
	rowIDField    = 2147483540
	sequenceField = 2147483539
)

func systemFields(ts *planv1.TableScan) []*planv1.Field {
	if !ts.GetWithPositions() {
		return nil
	}
	long := &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_INT64}
	out := []*planv1.Field{{Name: fileColumn, Type: &planv1.Type{Kind: planv1.TypeKind_TYPE_KIND_STRING}}, {Name: positionColumn, Type: long}}
	if ts.GetRowLineage() {
		out = append(out, &planv1.Field{Id: rowIDField, Name: rowIDColumn, Type: long}, &planv1.Field{Id: sequenceField, Name: sequenceColumn, Type: long})
	}
	return out
}

// distinctNames refuses columns that DuckDB, which ignores case, cannot tell apart (X3).
func distinctNames(where string, fields []*planv1.Field) error {
	seen := map[string]string{}
	for _, f := range fields {
		lower := strings.ToLower(f.GetName())
		if other, dup := seen[lower]; dup {
			if other == f.GetName() {
				return userErrorf("rename it", "%s: a column is named %q, which is the name of a column that says where a row lies", where, other)
			}
			return userErrorf("rename one of them; SQL here ignores case", "%s: columns %q and %q differ only in case", where, other, f.GetName())
		}
		seen[lower] = f.GetName()
	}
	return nil
}

func emptyTable(ts *planv1.TableScan) (string, error) {
	var cols []*planv1.Column
	for _, f := range slices.Concat(ts.GetSchema().GetFields(), systemFields(ts)) {
		t, err := SQLType(f.GetType())
		if err != nil {
			return "", noType(f.GetName(), err)
		}
		cols = append(cols, &planv1.Column{Name: f.GetName(), EngineType: t})
	}
	return emptyQuery(cols)
}

// tableView writes the view of one table scan.
type tableView struct {
	inst  *Instance
	scan  *planv1.TableScan
	names map[int32][]string // of fields in files without ids
}

func namesByField(ts *planv1.TableScan) map[int32][]string {
	if len(ts.GetNames()) == 0 {
		return nil
	}
	out := map[int32][]string{}
	for _, n := range ts.GetNames() {
		out[n.GetFieldId()] = append(out[n.GetFieldId()], n.GetNames()...)
	}
	return out
}

// fileGroup is a run of files that one SELECT fits.
type fileGroup struct {
	schema   *parquetSchema
	files    []*planv1.PinnedFile
	mapper   *mapper
	names    []string             // by which the columns of the files are read
	renamed  bool                 // some of them are not the files' own
	deleted  bool                 // rows are deleted by position
	equality []*planv1.DeleteFile // equality deletes, the same for all files
	prefix   string               // of the data files' URIs, in front of what follows cut characters of their paths
	cut      int
}

// groups keeps the order in which groups first appear.
func (v *tableView) groups(ctx context.Context) ([]*fileGroup, error) {
	schemas, err := v.inst.schemasByPath(ctx, v.scan.GetFiles())
	if err != nil {
		return nil, err
	}
	var out []*fileGroup
	byKey := map[string]*fileGroup{}
	for _, f := range v.scan.GetFiles() {
		s, ok := schemas[f.GetPath()]
		if !ok {
			return nil, userErrorf("", "%s: DuckDB answered no schema", displayName(f))
		}
		m := &mapper{schema: s, fields: v.scan.GetSchema().GetFields(), names: v.names, constants: map[int32]*planv1.Value{}}
		if err := m.settle(v.scan, f); err != nil {
			return nil, err
		}
		g := &fileGroup{schema: s, mapper: m}
		g.names, g.renamed = m.readNames()
		if !v.inst.access.NoDeletes {
			for _, d := range f.GetDeletes() {
				if d.GetContent() == planv1.FileContent_FILE_CONTENT_EQUALITY_DELETES {
					g.equality = append(g.equality, d)
				} else {
					g.deleted = true
				}
			}
		}
		if v.scan.GetWithPositions() {
			if g.prefix, g.cut, ok = named(f); !ok {
				return nil, fmt.Errorf("the data file %s is read as %s, which its name does not end in", f.GetName(), f.GetPath())
			}
		}
		key := g.key()
		if old, ok := byKey[key]; ok {
			g = old
		} else {
			byKey[key] = g
			out = append(out, g)
		}
		g.files = append(g.files, f)
	}
	return out, nil
}

// named is how a file's name comes from its path: the prefix goes in front of what is behind cut characters. The copy of an object has a path that ends in its
// bucket and key.
func named(f *planv1.PinnedFile) (prefix string, cut int, ok bool) {
	if f.GetUri() == "" {
		prefix, ok = strings.CutSuffix(f.GetName(), f.GetPath())
		return prefix, 0, ok
	}
	scheme, rest, ok := strings.Cut(f.GetName(), "://")
	if !ok || rest == "" {
		return "", 0, false
	}
	dir, ok := strings.CutSuffix(f.GetPath(), "/"+rest)
	return scheme + "://", utf8.RuneCountInString(dir) + 1, ok
}

// key is equal for files that one SELECT fits.
func (g *fileGroup) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%v;%q%d;", g.schema.signature, g.deleted, g.prefix, g.cut)
	for _, f := range g.mapper.constantIDs {
		fmt.Fprintf(&b, "%q;", g.mapper.constants[f].String())
	}
	for _, d := range g.equality {
		fmt.Fprintf(&b, "%q;", d.GetPath())
	}
	return b.String()
}

// selects writes the SELECTs over a group: one over whole files, and one over each range of rows.
func (v *tableView) selects(ctx context.Context, g *fileGroup) ([]string, error) {
	projection, err := v.projection(g)
	if err != nil {
		return nil, err
	}
	joins, err := v.equalityJoins(ctx, g)
	if err != nil {
		return nil, err
	}
	r := &reader{function: "read_parquet", format: formatParquet, options: map[string]string{"hive_partitioning": "false", "union_by_name": "false"}}
	alias := ""
	switch {
	case g.renamed: // which makes DuckDB's own columns visible, and its options for them impossible
		alias = " AS signet_file(" + identList(g.names) + ")"
	case g.deleted || v.scan.GetWithPositions():
		r = r.with("filename", "true").with("file_row_number", "true")
	}
	var parts []string
	for _, s := range sharesOf(g.files) {
		reader := r
		var where []string
		if s.end != 0 {
			if !g.renamed {
				reader = reader.with("file_row_number", "true")
			}
			where = append(where, fmt.Sprintf("file_row_number BETWEEN %d AND %d", s.first, s.end-1))
		}
		if g.deleted {
			where = append(where, fmt.Sprintf("NOT %s(%s, file_row_number)", deletedFunction, v.inst.rows.key(keyPositions)))
		}
		call, err := reader.call(s.paths)
		if err != nil {
			return nil, err
		}
		part := "SELECT " + projection + " FROM " + call + alias + joins
		if len(where) > 0 {
			part += " WHERE " + strings.Join(where, " AND ")
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (v *tableView) projection(g *fileGroup) (string, error) {
	var parts []string
	for _, f := range v.scan.GetSchema().GetFields() {
		expr, err := g.mapper.column(f, g.names)
		if err != nil {
			return "", err
		}
		parts = append(parts, expr+" AS "+Ident(f.GetName()))
	}
	if v.scan.GetWithPositions() {
		path := "filename"
		if g.cut > 0 {
			path = fmt.Sprintf("substr(filename, %d)", g.cut+1)
		}
		parts = append(parts, Literal(g.prefix)+" || "+path+" AS "+fileColumn, "file_row_number AS "+positionColumn)
	}
	if v.scan.GetWithPositions() && v.scan.GetRowLineage() {
		rows := v.inst.rows
		parts = append(parts,
			fmt.Sprintf("%s AS %s", g.mapper.lineage(rowIDField, g.names, fmt.Sprintf("%s(%s) + file_row_number", fileValueFunction, rows.key(keyFirstRow))), rowIDColumn),
			fmt.Sprintf("%s AS %s", g.mapper.lineage(sequenceField, g.names, fmt.Sprintf("%s(%s)", fileValueFunction, rows.key(keySequence))), sequenceColumn))
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("a scan of no columns")
	}
	return strings.Join(parts, ", "), nil
}
