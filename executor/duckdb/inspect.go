package duckdb

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// CheckFiles refuses what DuckDB would read without a word but not as the user means it: columns that differ only in case, decimals that are too wide for it,
// Parquet files that have other columns or types than the first, files of no bytes. It is called once per source, before the source is bound for the first time.
func (i *Instance) CheckFiles(ctx context.Context, src *planv1.Source) error {
	fs := src.GetFile()
	if fs == nil || len(fs.GetFiles()) == 0 {
		return nil
	}
	if err := i.meet(src).checkPins(); err != nil {
		return err
	}
	r, err := newReader(fs)
	if err != nil {
		return err
	}
	if r.format != formatParquet {
		return checkNotAllEmpty(r, fs)
	}
	schemas, err := i.schemasByPath(ctx, fs.GetFiles())
	if err != nil {
		return err
	}
	return checkParquet(r, fs, schemas)
}

// checkNotAllEmpty refuses text files of no bytes at all: DuckDB makes up a column for them.
func checkNotAllEmpty(r *reader, fs *planv1.FileSource) error {
	for _, opt := range []string{"columns", "names", "column_names"} {
		if _, given := r.options[opt]; given {
			return nil
		}
	}
	for _, f := range fs.GetFiles() {
		if !noBytes(f) {
			return nil
		}
	}
	return userErrorf("say the columns: "+r.function+"('...', columns={'id': 'BIGINT'})", "%s has no bytes, so it has no columns", displayName(fs.GetFiles()[0]))
}

func checkParquet(r *reader, fs *planv1.FileSource, schemas map[string]*parquetSchema) error {
	var first *parquetSchema
	var firstFile *planv1.PinnedFile
	checked := map[string]bool{}
	for _, f := range fs.GetFiles() {
		s := schemas[f.GetPath()]
		if s == nil || checked[s.signature] {
			continue
		}
		checked[s.signature] = true
		if err := distinctColumns(f, s.root, ""); err != nil {
			return err
		}
		if err := noWideDecimal(f, s.root, ""); err != nil {
			return err
		}
		if first == nil {
			first, firstFile = s, f
			continue
		}
		if r.on("union_by_name") {
			continue
		}
		if err := sameTypes(firstFile, first, f, s); err != nil {
			return err
		}
	}
	return nil
}

// distinctColumns refuses names that differ only in case, at every level (X3).
func distinctColumns(f *planv1.PinnedFile, n *parquetNode, path string) error {
	seen := map[string]string{}
	for _, c := range n.children {
		lower := strings.ToLower(c.name)
		if other, dup := seen[lower]; dup {
			return userErrorf("rename one of them; SQL here ignores case", "%s: columns %q and %q differ only in case", displayName(f), path+other, path+c.name)
		}
		seen[lower] = c.name
		if err := distinctColumns(f, c, path+c.name+"."); err != nil {
			return err
		}
	}
	return nil
}

// sameTypes compares a later file with the first, whose columns the source has.
func sameTypes(aFile *planv1.PinnedFile, a *parquetSchema, bFile *planv1.PinnedFile, b *parquetSchema) error {
	const hint = "say union_by_name=true to read them with a common type, or cast them file by file"
	have := map[string]*parquetNode{}
	for _, c := range b.root.children {
		have[strings.ToLower(c.name)] = c
	}
	known := map[string]bool{}
	for _, c := range a.root.children {
		known[strings.ToLower(c.name)] = true
		other, ok := have[strings.ToLower(c.name)]
		if !ok {
			return userErrorf(hint, "%s has no column %q, which %s has", displayName(bFile), c.name, displayName(aFile))
		}
		if ta, tb := c.shape(), other.shape(); ta != tb {
			return userErrorf(hint, "column %q is %s in %s and %s in %s", c.name, ta, displayName(aFile), tb, displayName(bFile))
		}
	}
	for _, c := range b.root.children {
		if !known[strings.ToLower(c.name)] { // DuckDB would leave it out without a word
			return userErrorf("read_parquet(..., union_by_name=true) reads all columns, with NULL where a file lacks one", "%s has a column %q, which %s, the first file, lacks",
				displayName(bFile), c.name, displayName(aFile))
		}
	}
	return nil
}

// shape is the type as DuckDB sees it, for comparison and messages.
func (n *parquetNode) shape() string {
	if elem, ok := n.list(); ok {
		return elem.shape() + "[]"
	}
	if k, v, ok := n.entries(); ok {
		return "MAP(" + k.shape() + ", " + v.shape() + ")"
	}
	if len(n.children) == 0 {
		return n.engine
	}
	parts := make([]string, len(n.children))
	for k, c := range n.children {
		parts[k] = Ident(c.name) + " " + c.shape()
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// headBytes is how much of a text file is searched for a column name.
const headBytes = 1 << 20

// CheckInvented refuses a CSV or JSON source in which DuckDB numbered a column because another differs from it only in case (a, A become a, A_1).
// A name that the file really has passes.
func CheckInvented(src *planv1.Source, cols []*planv1.Column) error {
	fs := src.GetFile()
	if fs == nil || len(fs.GetFiles()) == 0 {
		return nil
	}
	if parquet, _ := IsParquetReader(fs.GetFunction()); parquet {
		return nil
	}
	names := map[string]string{}
	for _, c := range cols {
		names[strings.ToLower(c.GetName())] = c.GetName()
	}
	for _, c := range cols {
		base, number, ok := cutLast(c.GetName(), "_")
		if !ok || strings.Trim(number, "0123456789") != "" || number == "" {
			continue
		}
		other, clash := names[strings.ToLower(base)]
		if !clash || headHas(fs.GetFiles(), c.GetName()) {
			continue
		}
		return userErrorf("rename one of them; SQL here ignores case", "%s: columns %q and %q differ only in case, or are the same",
			displayName(fs.GetFiles()[0]), other, base)
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// headHas reports whether a name occurs in the head of any of the first files; what cannot be read counts as a yes.
func headHas(files []*planv1.PinnedFile, name string) bool {
	for _, f := range files[:min(len(files), 16)] {
		head, err := readHead(f.GetPath())
		if err != nil || bytes.Contains(bytes.ToLower(head), []byte(strings.ToLower(name))) {
			return true
		}
	}
	return false
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	switch {
	case strings.HasSuffix(path, ".gz"):
		if in, err = gzip.NewReader(in); err != nil {
			return nil, err
		}
	case strings.HasSuffix(path, ".zst"), strings.HasSuffix(path, ".zstd"):
		return nil, errors.New("compressed")
	}
	return io.ReadAll(io.LimitReader(in, headBytes))
}
