package duckdb

import (
	"fmt"
	"strings"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// namedAsAsked makes the option filename tell where files are, and not where their copies are: files of object stores and web servers are read from local ones.
func (r *reader) namedAsAsked(files []*planv1.PinnedFile) *reader {
	if !r.on("filename") {
		return r
	}
	column := "filename"
	if name, ok := strings.CutPrefix(r.options["filename"], "'"); ok { // it may be the column's name
		if name = strings.ReplaceAll(strings.TrimSuffix(name, "'"), "''", "'"); !isTrue(name) {
			column = name
		}
	}
	var b strings.Builder
	seen := map[string]bool{}
	for _, f := range files {
		if f.GetUri() == "" || seen[f.GetPath()] {
			continue
		}
		seen[f.GetPath()] = true
		rest := f.GetUri()[strings.Index(f.GetUri(), "://")+3:]
		dir, regular := strings.CutSuffix(f.GetPath(), "/"+rest)
		scheme := f.GetUri()[:len(f.GetUri())-len(rest)]
		if !regular {
			fmt.Fprintf(&b, " WHEN %s = %s THEN %s", Ident(column), Literal(f.GetPath()), Literal(f.GetUri()))
			continue
		}
		if key := dir + "\x00" + scheme; !seen[key] {
			seen[key] = true
			fmt.Fprintf(&b, " WHEN starts_with(%s, %s) THEN concat(%s, substr(%s, %d))", Ident(column), Literal(dir+"/"), Literal(scheme), Ident(column), len([]rune(dir))+2)
		}
	}
	if b.Len() == 0 {
		return r
	}
	c := *r
	c.renames, c.named = "CASE"+b.String()+" ELSE "+Ident(column)+" END", column
	return &c
}

func isTrue(text string) bool {
	switch strings.ToLower(text) {
	case "true", "t", "1":
		return true
	}
	return false
}
