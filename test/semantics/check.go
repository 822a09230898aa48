package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/signet-io/signet/internal/fault"
)

// The statements that there have to be: S1 to S73, T1 to T9, J1 to J23.
var wanted = []struct {
	kind string
	last int
}{{"S", 73}, {"T", 9}, {"J", lastJ}}

const lastJ = 23

// check compares the document with the sources, and tells everything that is wrong.
func check(all []statement, src *sources) []string {
	var bad []string
	complain := func(s *statement, line int, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("docs/semantics.md:%d: %s: %s", line, s.number, fmt.Sprintf(format, args...)))
	}
	seen, used := map[string]bool{}, map[string]bool{}
	for i := range all {
		s := &all[i]
		if seen[s.number] {
			complain(s, s.line, "it is there twice")
		}
		seen[s.number] = true
		if len(s.text) < 20 {
			complain(s, s.line, "it has no statement")
		}
		if !slices.ContainsFunc(s.pairs, pair.broken) {
			complain(s, s.line, "no test with a mutant or a fault that makes it fail")
		}
		for _, p := range s.pairs {
			for _, problem := range checkPair(s.number, p, src) {
				complain(s, p.line, "%s", problem)
			}
			used[p.mutant] = true
		}
	}
	for _, w := range wanted {
		for n := 1; n <= w.last; n++ {
			if number := fmt.Sprint(w.kind, n); !seen[number] {
				bad = append(bad, "docs/semantics.md: "+number+" is missing")
			}
		}
	}
	for _, m := range slices.Sorted(keys(src.mutants)) {
		if !used[m] {
			bad = append(bad, "docs/semantics.md: no statement names the mutant "+m)
		}
	}
	return bad
}

func checkPair(number string, p pair, src *sources) []string {
	name, sub, _ := strings.Cut(p.test, "/")
	f, err := src.find(p.pkg, name)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	if !f.carries(number, sub) {
		bad = append(bad, fmt.Sprintf("%s: %s does not carry the number, neither in its name nor in a comment", p.pkg, name))
	}
	if sub != "" && !f.has(sub) {
		bad = append(bad, fmt.Sprintf("%s: %s has no subtest %s", p.pkg, name, sub))
	}
	if p.mutant != "" && !src.mutants[p.mutant] {
		bad = append(bad, "there is no mutant "+p.mutant)
	}
	if p.fault != "" {
		if _, err := fault.Parse(p.fault); err != nil {
			bad = append(bad, err.Error())
		}
		for one := range strings.SplitSeq(p.fault, ";") {
			if point, _, _ := strings.Cut(one, "="); !src.points[point] {
				bad = append(bad, "docs/fault-points.md has no point "+point)
			}
		}
	}
	return bad
}
