package main

import (
	"fmt"
	"regexp"
	"strings"
)

// statement is a numbered section of the document.
type statement struct {
	number string
	text   string
	pairs  []pair
	line   int
}

// pair is a test, and what makes it fail; a test alone has neither a mutant nor a fault.
type pair struct {
	pkg, test     string // test: TestName, or TestName/subtest
	mutant, fault string
	line          int
}

func (p pair) broken() bool { return p.mutant != "" || p.fault != "" }

func (p pair) String() string {
	switch {
	case p.mutant != "":
		return fmt.Sprintf("%s: %s with mutant %s", p.pkg, p.test, p.mutant)
	case p.fault != "":
		return fmt.Sprintf("%s: %s with fault %s", p.pkg, p.test, p.fault)
	}
	return p.pkg + ": " + p.test
}

var (
	heading = regexp.MustCompile(`^### ([STJ][0-9]+)$`)
	item    = regexp.MustCompile("^- `([a-z0-9/]+): (Test[A-Za-z0-9_]+(?:/[^`]+)?)`(?: fails with (mutant|fault) `([^`]+)`)?\\.$")
)

// parse reads the document. Below a heading with a number stand the statement and the list of its tests, and nothing else.
func parse(text string) ([]statement, error) {
	var out []statement
	in := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		m := heading.FindStringSubmatch(line)
		switch {
		case m != nil:
			out, in = append(out, statement{number: m[1], line: i + 1}), true
		case strings.HasPrefix(line, "### "):
			return nil, fmt.Errorf("line %d: %q is no number of a statement", i+1, line)
		case strings.HasPrefix(line, "#"):
			in = false
		case !in || line == "":
		case strings.HasPrefix(line, "- "):
			s := &out[len(out)-1]
			p := item.FindStringSubmatch(line)
			if p == nil {
				return nil, fmt.Errorf("line %d, %s: write - `package: Test/subtest` fails with mutant `name`. (or fault `point=term`, or nothing)", i+1, s.number)
			}
			one := pair{pkg: p[1], test: p[2], line: i + 1}
			switch p[3] {
			case "mutant":
				one.mutant = p[4]
			case "fault":
				one.fault = p[4]
			}
			s.pairs = append(s.pairs, one)
		default:
			s := &out[len(out)-1]
			if len(s.pairs) > 0 {
				return nil, fmt.Errorf("line %d, %s: text behind the tests", i+1, s.number)
			}
			s.text = strings.TrimSpace(s.text + " " + line)
		}
	}
	return out, nil
}
