package duckdb

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// fileFormat is what a reader function reads.
type fileFormat int

const (
	formatParquet fileFormat = iota + 1
	formatCSV
	formatJSON
)

// readers are the table functions that a FileSource may name: they read the files given and nothing else.
var readers = map[string]fileFormat{
	"read_parquet": formatParquet, "parquet_scan": formatParquet,
	"read_csv": formatCSV, "read_csv_auto": formatCSV,
	"read_json": formatJSON, "read_json_auto": formatJSON, "read_ndjson": formatJSON, "read_ndjson_auto": formatJSON,
	"read_json_objects": formatJSON, "read_json_objects_auto": formatJSON, "read_ndjson_objects": formatJSON,
}

// IsParquetReader reports whether a table function reads Parquet, and whether it is one that sources may use at all.
func IsParquetReader(function string) (parquet, known bool) {
	f, ok := readers[strings.ToLower(function)]
	return f == formatParquet, ok
}

var optionName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// reader writes calls of one source's table function.
type reader struct {
	function string
	format   fileFormat
	options  map[string]string // by lower-case name
	renames  string            // an expression of the column with the names of files; empty: it says what it should
	named    string            // that column
}

func newReader(fs *planv1.FileSource) (*reader, error) {
	r := &reader{function: strings.ToLower(fs.GetFunction()), options: map[string]string{}}
	var ok bool
	if r.format, ok = readers[r.function]; !ok {
		return nil, userErrorf("use read_parquet, read_csv or read_json", "%s cannot be a source", fs.GetFunction())
	}
	for name, literal := range fs.GetOptions() {
		lower := strings.ToLower(name)
		if !optionName.MatchString(lower) {
			return nil, userErrorf("", "%s: %q is not an option", fs.GetFunction(), name)
		}
		if lower == "schema" && r.format == formatParquet {
			return nil, userErrorf("select the columns by name instead",
				"%s: option schema: DuckDB 1.5 reads wrong values with it where files differ", fs.GetFunction())
		}
		r.options[lower] = literal
	}
	return r, nil
}

// with returns a copy with one more option; an option that the user gave stays.
func (r *reader) with(name, literal string) *reader {
	if _, given := r.options[name]; given {
		return r
	}
	c := *r
	c.options = map[string]string{name: literal}
	for k, v := range r.options {
		c.options[k] = v
	}
	return &c
}

func (r *reader) on(name string) bool {
	v, given := r.options[name]
	return given && !slices.Contains([]string{"false", "0", "'false'", "'0'", "'f'", "cast('f' as boolean)", "null"}, strings.ToLower(v))
}

// call writes the table function over paths.
func (r *reader) call(paths []string) (string, error) {
	patterns := make([]string, len(paths))
	for n, p := range paths {
		pattern, err := globEscape(p)
		if err != nil {
			return "", err
		}
		patterns[n] = pattern
	}
	call := r.callOn(ListLiteral(patterns))
	if r.renames != "" {
		call = "(SELECT * REPLACE (" + r.renames + " AS " + Ident(r.named) + ") FROM " + call + ")"
	}
	return call, nil
}

func (r *reader) callOn(argument string) string {
	names := make([]string, 0, len(r.options))
	for name := range r.options {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(r.function + "(" + argument)
	for _, name := range names {
		fmt.Fprintf(&b, ", %s=%s", name, r.options[name])
	}
	b.WriteByte(')')
	return b.String()
}

// globEscape writes a path so that DuckDB's readers, which take every path for a pattern, find this file and no other (X5).
func globEscape(path string) (string, error) {
	if !strings.ContainsAny(path, "*?[") {
		return path, nil
	}
	if strings.ContainsRune(path, '\\') { // in a pattern DuckDB takes it for a separator, and nothing escapes it
		return "", userErrorf("rename it", "%s: DuckDB cannot read a file whose path has both a backslash and one of * ? [", path)
	}
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path), nil
}

// share is a run of files that one read covers: whole files, or rows of one.
type share struct {
	paths      []string
	first, end int64 // rows; end 0: all
}

func sharesOf(files []*planv1.PinnedFile) []share {
	var whole share
	var ranged []share
	for _, f := range files {
		switch {
		case f.GetFirstRow() == 0 && f.GetEndRow() == 0:
			whole.paths = append(whole.paths, f.GetPath())
		case f.GetFirstRow() < f.GetEndRow():
			ranged = append(ranged, share{paths: []string{f.GetPath()}, first: f.GetFirstRow(), end: f.GetEndRow()})
		}
	}
	if len(whole.paths) > 0 {
		return append([]share{whole}, ranged...)
	}
	return ranged
}

// fileQuery writes the SELECT of a file source's view.
func (i *Instance) fileQuery(ctx context.Context, fs *planv1.FileSource) (string, error) {
	r, err := newReader(fs)
	if err != nil {
		return "", err
	}
	if len(fs.GetFiles()) == 0 {
		return emptyQuery(fs.GetColumns())
	}
	if r, err = i.settleHive(ctx, r, fs); err != nil {
		return "", err
	}
	r = r.namedAsAsked(fs.GetFiles())
	if r.format == formatParquet && r.on("union_by_name") && len(fs.GetColumns()) > 0 {
		return i.unionByName(ctx, r, fs)
	}
	projection := "*"
	if len(fs.GetColumns()) > 0 {
		projection = castAll(fs.GetColumns())
	}
	withRows, err := i.withRows(ctx, r, fs.GetFiles())
	if err != nil {
		return "", err
	}
	var parts []string
	for _, s := range sharesOf(withRows) {
		part, err := r.read(projection, s)
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return emptyQuery(fs.GetColumns())
	}
	return strings.Join(parts, " UNION ALL "), nil
}

// read writes one SELECT over a share. Row ranges prune row groups through file_row_number.
func (r *reader) read(projection string, s share) (string, error) {
	if s.end == 0 {
		call, err := r.call(s.paths)
		return "SELECT " + projection + " FROM " + call, err
	}
	if r.format != formatParquet {
		return "", fmt.Errorf("%s: only Parquet files can be read by rows", r.function)
	}
	if projection == "*" && !r.on("file_row_number") {
		projection = "* EXCLUDE (file_row_number)"
	}
	call, err := r.with("file_row_number", "true").call(s.paths)
	return fmt.Sprintf("SELECT %s FROM %s WHERE file_row_number BETWEEN %d AND %d", projection, call, s.first, s.end-1), err
}

// castAll selects the bound columns with the bound types: casts to the type that a column has already cost nothing.
func castAll(cols []*planv1.Column) string {
	parts := make([]string, len(cols))
	for n, c := range cols {
		parts[n] = fmt.Sprintf("CAST(%s AS %s) AS %s", Ident(c.GetName()), c.GetEngineType(), Ident(c.GetName()))
	}
	return strings.Join(parts, ", ")
}

// emptyQuery has the bound columns and no rows.
func emptyQuery(cols []*planv1.Column) (string, error) {
	if len(cols) == 0 {
		return "", userErrorf("check the path or the pattern", "no files, so there are no columns")
	}
	parts := make([]string, len(cols))
	for n, c := range cols {
		parts[n] = fmt.Sprintf("CAST(NULL AS %s) AS %s", c.GetEngineType(), Ident(c.GetName()))
	}
	return "SELECT " + strings.Join(parts, ", ") + " WHERE false", nil
}
