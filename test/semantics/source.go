package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// testFunc is a test of the sources.
type testFunc struct {
	text     string // its name, its comments and its body
	literals []string
	scripts  map[string]string // comments of the scenarios that it plays, by the name of their file
}

// sources is what the document may name.
type sources struct {
	root    string
	tests   map[string]map[string]testFunc // by package and name
	mutants map[string]bool
	points  map[string]bool
}

func newSources(root string) (*sources, error) {
	s := &sources{root: root, tests: map[string]map[string]testFunc{}, mutants: map[string]bool{}, points: map[string]bool{}}
	b, err := os.ReadFile(filepath.Join(root, "docs/fault-points.md"))
	if err != nil {
		return nil, err
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+\\.[a-z.-]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		s.points[m[1]] = true
	}
	return s, s.findMutants()
}

var (
	hook   = regexp.MustCompile(`\b(mutated|mutant\.On)\("([a-z0-9/-]+)"\)`)
	broken = regexp.MustCompile(`(?m)^\t"([a-z-]+)":\s+\{[A-Z]`)
)

// findMutants collects the places at which the sources can be broken. Packages with a list of their own prefix its names.
func (s *sources) findMutants() error {
	return filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != s.root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == "semantics" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg := filepath.Base(filepath.Dir(path))
		for _, m := range hook.FindAllStringSubmatch(string(b), -1) {
			name := m[2]
			if m[1] == "mutated" {
				name = pkg + "/" + name
			}
			s.mutants[name] = true
		}
		if strings.HasSuffix(path, "mutate_mutant.go") {
			for _, m := range broken.FindAllStringSubmatch(string(b), -1) {
				s.mutants[pkg+"/"+m[1]] = true
			}
		}
		return nil
	})
}

// find gives the function of a test.
func (s *sources) find(pkg, name string) (testFunc, error) {
	if s.tests[pkg] == nil {
		if err := s.load(pkg); err != nil {
			return testFunc{}, err
		}
	}
	f, ok := s.tests[pkg][name]
	if !ok {
		return testFunc{}, fmt.Errorf("package %s has no test %s", pkg, name)
	}
	return f, nil
}

func (s *sources) load(pkg string) error {
	s.tests[pkg] = map[string]testFunc{}
	files, err := filepath.Glob(filepath.Join(s.root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("package %s has no tests", pkg)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, b, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
				continue
			}
			start := fn.Pos()
			if fn.Doc != nil {
				start = fn.Doc.Pos()
			}
			one := testFunc{text: string(b[fset.Position(start).Offset:fset.Position(fn.End()).Offset])}
			// Cases may stand in a variable of the file: subtests are looked for in all of it.
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if v, err := strconv.Unquote(l.Value); err == nil {
						one.literals = append(one.literals, strings.ReplaceAll(v, " ", "_"))
					}
				}
				return true
			})
			if m := scenarios.FindStringSubmatch(one.text); m != nil {
				if one.scripts, err = scripts(filepath.Join(s.root, pkg, m[1])); err != nil {
					return err
				}
			}
			s.tests[pkg][fn.Name.Name] = one
		}
	}
	return nil
}

var scenarios = regexp.MustCompile(`datadriven\.Walk\(t, "([^"]+)"`)

// scripts are the comments of scenario files: a number there belongs to the subtest of that name.
func scripts(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var comments strings.Builder
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "#") {
				comments.WriteString("//" + line)
			}
		}
		out[strings.TrimSuffix(filepath.Base(path), ".txt")] = comments.String()
	}
	return out, nil
}

var (
	mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9])([STJ])([0-9]+)(?: to ([STJ])([0-9]+))?`)
	// lines of a test's comments and names; other text, such as S3 or T1 in SQL, does not count
	comment = regexp.MustCompile(`//.*|func Test\w+|"[^"\n]*"`)
)

// carries tells whether a test, or one subtest of it, names a number, alone or within a range (S10 to S24).
func (f testFunc) carries(number, sub string) bool {
	n, _ := strconv.Atoi(number[1:])
	text := f.text + f.scripts[sub]
	for _, line := range comment.FindAllString(text, -1) {
		// each separator serves one mention only, so that S1_S2 are two
		for _, m := range mention.FindAllStringSubmatch(strings.NewReplacer("_", "__", ",", ",,").Replace(line), -1) {
			if m[1] != number[:1] {
				continue
			}
			from, _ := strconv.Atoi(m[2])
			to := from
			if m[3] == m[1] {
				to, _ = strconv.Atoi(m[4])
			}
			if from <= n && n <= to {
				return true
			}
		}
	}
	return false
}

// has tells whether a test has a subtest of this name. Parts of it that are put together at run time can only be seen when it runs.
func (f testFunc) has(sub string) bool {
	if _, ok := f.scripts[sub]; ok {
		return true
	}
	for _, l := range f.literals {
		if l == sub || strings.Contains(l, "%") || strings.HasPrefix(sub, l+"/") {
			return true
		}
	}
	return false
}
