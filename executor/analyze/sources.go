package analyze

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/signet-io/signet/executor/analyze/ast"
	"github.com/signet-io/signet/executor/duckdb"
)

// passThrough are table functions that read nothing.
var passThrough = []string{"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"}

// fileSuffixes make a quoted name in FROM a file.
var fileSuffixes = []string{".parquet", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson"}

func looksLikeFile(name string) bool {
	lower := strings.ToLower(name)
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		lower = strings.TrimSuffix(lower, packed)
	}
	return strings.Contains(name, "/") || slices.ContainsFunc(fileSuffixes, func(s string) bool { return strings.HasSuffix(lower, s) })
}

// baseTable handles a name in FROM: a common table expression, a file, or a table of a catalog.
func (r *rewriter) baseTable(o *ast.Object, sc *scope) error {
	catalog, schema, name := o.Str("catalog_name"), o.Str("schema_name"), o.Str("table_name")
	plain := catalog == "" && schema == ""
	past := r.takeTravel(o)
	if past != (travel{}) && plain && (sc.has(name) || r.given[strings.ToLower(name)] || looksLikeFile(name)) {
		return refuse("leave the version or the time out", "%s is no table, so it has no versions", name)
	}
	if plain && (sc.has(name) || r.given[strings.ToLower(name)]) {
		return nil
	}
	if !ast.IsNull(o.Get("at_clause")) {
		return refuse(travelHint, "%s: AT is not supported", name)
	}
	if plain && looksLikeFile(name) {
		r.useView(o, r.add("path\x00"+name, source{alias: name, path: name}), baseName(name), editName, 1)
		return nil
	}
	var parts []string
	for _, p := range []string{catalog, schema, name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if err := refuseInternal(parts); err != nil {
		return err
	}
	key := "table\x00" + strings.Join(parts, "\x00")
	if past != (travel{}) {
		key += "\x00\x00" + past.key()
	}
	s := r.add(key, source{alias: strings.Join(parts, "."), table: parts, travel: past})
	if len(parts) > 1 && o.Str("alias") == "" {
		r.qualified = append(r.qualified, qualified{parts, name})
	}
	r.useView(o, s, name, editName, len(parts))
	return nil
}

// takeTravel is the clause behind a table's name.
func (r *rewriter) takeTravel(o *ast.Object) travel {
	where, _ := o.Get("query_location").(ast.Raw)
	pos, err := strconv.Atoi(string(where))
	if err != nil {
		return travel{}
	}
	t := r.travels[pos]
	delete(r.travels, pos)
	return t
}

// refuseInternal names DuckDB's own catalogs, which hold nothing of the user's.
func refuseInternal(parts []string) error {
	if len(parts) > 1 {
		switch strings.ToLower(parts[len(parts)-2]) {
		case "information_schema", "pg_catalog":
			return refuse("use SHOW SCHEMAS, SHOW TABLES or DESCRIBE", "%s is not readable from a query", strings.Join(parts, "."))
		}
	}
	name := strings.ToLower(parts[len(parts)-1])
	if len(parts) == 1 && (strings.HasPrefix(name, "duckdb_") || strings.HasPrefix(name, "sqlite_") || strings.HasPrefix(name, "pragma_")) {
		return refuse("use SHOW SCHEMAS, SHOW TABLES or DESCRIBE", "%s is not readable from a query", parts[0])
	}
	return nil
}

// baseName is the alias that DuckDB gives a file in FROM: its name up to the first dot. Patterns have none; there the reader's name would do, and
// the view's name does not matter.
func baseName(file string) string {
	if strings.ContainsAny(file, "*?[") {
		return ""
	}
	name, _, _ := strings.Cut(path.Base(file), ".")
	return name
}

// tableFunction handles a function in FROM.
func (r *rewriter) tableFunction(o *ast.Object, sc *scope) error {
	fn := o.Obj("function")
	name := strings.ToLower(fn.Str("function_name"))
	if slices.Contains(passThrough, name) {
		for _, arg := range fn.List("children") {
			if err := r.walk(arg, sc); err != nil {
				return err
			}
		}
		return nil
	}
	if _, known := duckdb.IsParquetReader(name); !known {
		return refuse("queries may use read_parquet, read_csv, read_json and their variants, range, generate_series and unnest",
			"table function %s is not allowed", fn.Str("function_name"))
	}
	if ord := o.Str("with_ordinality"); ord != "" && ord != "WITHOUT_ORDINALITY" {
		return refuse("use row_number() OVER ()", "%s: WITH ORDINALITY is not supported over files", name)
	}
	s := source{alias: name, function: name}
	if err := readArguments(&s, fn); err != nil {
		return err
	}
	key := "function\x00" + name + "\x00" + strings.Join(s.paths, "\x00")
	for _, opt := range s.options {
		key += "\x00\x00" + opt.name + "\x00" + string(ast.Bytes(opt.expr))
	}
	r.useView(o, r.add(key, s), name, editCall, 0)
	return nil
}

// readArguments splits the arguments of a reader into files and options; all must be constants, because the scheduler resolves them.
func readArguments(s *source, fn *ast.Object) error {
	for _, arg := range fn.List("children") {
		name, expr := argument(arg)
		if !constantExpr(expr) {
			return refuse("write the value out", "%s: arguments must be constants", s.function)
		}
		if name != "" {
			s.options = append(s.options, option{strings.ToLower(name), expr})
			continue
		}
		paths, ok := stringsOf(expr)
		if !ok || len(s.paths) > 0 {
			return refuse("write read_parquet('file') or read_parquet(['file', 'file'])", "%s: want one file name or one list of them", s.function)
		}
		s.paths = paths
	}
	if len(s.paths) == 0 {
		return refuse("write read_parquet('file')", "%s: no file", s.function)
	}
	slices.SortFunc(s.options, func(a, b option) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(s.options); i++ {
		if s.options[i].name == s.options[i-1].name {
			return refuse("", "%s: option %s is given twice", s.function, s.options[i].name)
		}
	}
	return nil
}

// argument tells name = value and name := value from a positional argument.
func argument(arg ast.Value) (name string, expr ast.Value) {
	if o, ok := arg.(*ast.Object); ok && o.Str("class") == "COMPARISON" && o.Str("type") == "COMPARE_EQUAL" {
		if left := o.Obj("left"); left != nil && left.Str("class") == "COLUMN_REF" && len(left.List("column_names")) == 1 {
			return ast.Text(left.List("column_names")[0]), o.Get("right")
		}
	}
	return ast.Alias(arg), arg
}

// constantExpr admits what is surely constant: literals, casts, lists, structs, maps and signs of them.
func constantExpr(v ast.Value) bool {
	if _, _, ok := ast.ConstantKind(v); ok {
		return true
	}
	o, ok := v.(*ast.Object)
	if !ok {
		return false
	}
	switch o.Str("class") {
	case "CAST":
		return constantExpr(o.Get("child"))
	case "FUNCTION":
		return slices.Contains([]string{"list_value", "struct_pack", "row", "map", "-", "+"}, o.Str("function_name")) && allConstant(o.List("children"))
	case "OPERATOR":
		return o.Str("type") == "ARRAY_CONSTRUCTOR" && allConstant(o.List("children"))
	default:
		return false
	}
}

func allConstant(vs []ast.Value) bool {
	return !slices.ContainsFunc(vs, func(v ast.Value) bool { return !constantExpr(v) })
}

// stringsOf reads a string or a list of strings.
func stringsOf(v ast.Value) ([]string, bool) {
	if s, isString, _, ok := ast.Constant(v); ok {
		return []string{s}, isString
	}
	o, ok := v.(*ast.Object)
	if !ok || len(o.List("children")) == 0 {
		return nil, false
	}
	var out []string
	for _, item := range o.List("children") {
		s, isString, _, ok := ast.Constant(item)
		if !ok || !isString {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
