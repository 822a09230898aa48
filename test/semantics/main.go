package main

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

func keys(m map[string]bool) iter.Seq[string] { return maps.Keys(m) }

func main() {
	only := flag.String("only", "", "numbers of statements, separated by commas")
	e2e := flag.Bool("e2e", true, "also run pairs of tests that start real processes")
	jobs := flag.Int("jobs", 4, "how many tests run at once; most of the time they wait for what a mutant keeps from happening")
	flag.Parse()
	if err := run(flag.Arg(0), *only, *e2e, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(what, only string, e2e bool, jobs int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(root, "docs/semantics.md"))
	if err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	all, err := parse(string(b))
	if err != nil {
		return fmt.Errorf("docs/semantics.md: %w", err)
	}
	switch what {
	case "check":
		src, err := newSources(root)
		if err != nil {
			return err
		}
		if bad := check(all, src); len(bad) > 0 {
			return fmt.Errorf("%s\n%d problems", strings.Join(bad, "\n"), len(bad))
		}
		return nil
	case "run":
		r := &runner{root: root, dir: filepath.Join(root, ".cache", "mutants"), jobs: jobs}
		return r.run(choose(all, only, e2e))
	}
	return fmt.Errorf("say check or run, not %q", what)
}

// choose is what is to be run.
func choose(all []statement, only string, e2e bool) []statement {
	var out []statement
	for _, s := range all {
		if only != "" && !strings.Contains(","+only+",", ","+s.number+",") {
			continue
		}
		var pairs []pair
		for _, p := range s.pairs {
			if p.broken() && (e2e || p.pkg != endToEnd) {
				pairs = append(pairs, p)
			}
		}
		s.pairs = pairs
		out = append(out, s)
	}
	return out
}
