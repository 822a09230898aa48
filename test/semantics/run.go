package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signet-io/signet/internal/fault"
)

// endToEnd is the package whose tests start the real binaries, which are built with the mutants too.
const endToEnd = "test/e2e"

// runner builds the tests with the tag mutant and runs them with one mutant after another.
type runner struct {
	root, dir string
	jobs      int
}

func (r *runner) run(all []statement) error {
	byTest := map[string][]string{} // tests by package
	var pairs []pair
	numbers := map[string][]string{}
	for _, s := range all {
		for _, p := range s.pairs {
			key := p.String()
			if numbers[key] == nil {
				pairs = append(pairs, p)
			}
			numbers[key] = append(numbers[key], s.number)
			if !slices.Contains(byTest[p.pkg], p.test) {
				byTest[p.pkg] = append(byTest[p.pkg], p.test)
			}
		}
	}
	if len(pairs) == 0 {
		return errors.New("nothing to run")
	}
	for pkg := range byTest {
		if err := r.build(pkg); err != nil {
			return err
		}
	}
	var work []func() error
	for pkg, tests := range byTest {
		for _, group := range groups(tests) {
			work = append(work, func() error { return r.passes(pkg, group) })
		}
	}
	for _, p := range pairs {
		work = append(work, func() error {
			begun := time.Now()
			if err := r.fails(p); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(numbers[p.String()], ", "), err)
			}
			fmt.Printf("%5.1fs %s: %s\n", time.Since(begun).Seconds(), strings.Join(numbers[p.String()], ", "), p)
			return nil
		})
	}
	return parallel(r.jobs, work)
}

// parallel does all the work and joins what went wrong.
func parallel(jobs int, work []func() error) error {
	var all []error
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan func() error)
	for range jobs {
		wg.Go(func() {
			for f := range next {
				if err := f(); err != nil {
					mu.Lock()
					all = append(all, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, f := range work {
		next <- f
	}
	close(next)
	wg.Wait()
	return errors.Join(all...)
}

func (r *runner) binary(pkg string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// build compiles the tests of a package once. DuckDB needs cgo; nothing else has it.
func (r *runner) build(pkg string) error {
	if err := r.goTool(pkg, "test", "-c", "-tags", "mutant", "-o", r.binary(pkg), "./"+pkg); err != nil || pkg != endToEnd {
		return err
	}
	for out, from := range map[string]string{
		"signet": "cmd/signet", "signet-executor": "cmd/signet-executor",
		"plugins/signet-sink-iceberg": "cmd/signet-sink-iceberg", "plugins/signet-sink-minimal": "examples/sinks/minimal",
	} {
		if err := r.goTool(from, "build", "-tags", "mutant", "-o", filepath.Join(r.dir, "bin", out), "./"+from); err != nil {
			return err
		}
	}
	if out, err := exec.Command(filepath.Join(r.dir, "bin", "signet"), "sink", "lock").CombinedOutput(); err != nil {
		return fmt.Errorf("sink lock: %w\n%s", err, out)
	}
	return nil
}

func (r *runner) goTool(pkg string, args ...string) error {
	cgo := "CGO_ENABLED=0"
	if strings.HasPrefix(pkg+"/", "executor/") || pkg == "cmd/signet-executor" {
		cgo = "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// rapid tells whether a package has tests of properties.
func (r *runner) rapid(pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(r.root, pkg, "*_test.go")) // the pattern is good
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(`"pgregory.net/rapid"`)) {
			return true
		}
	}
	return false
}

// start runs tests with an environment, and tells whether they passed, and what they said.
func (r *runner) start(pkg, pattern string, env ...string) (bool, string, error) {
	args := []string{"-test.run", pattern, "-test.v", "-test.timeout", "60s", "-test.failfast"}
	if r.rapid(pkg) { // what a mutant fails on is nothing to keep
		args = append(args, "-rapid.nofailfile")
	}
	cmd := exec.Command(r.binary(pkg), args...)
	cmd.Dir, cmd.Env = filepath.Join(r.root, pkg), append(os.Environ(), append(env, "SIGNET_BIN="+filepath.Join(r.dir, "bin"))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return false, "", err
	}
	return err == nil, out.String(), nil
}

// groups are patterns that each name whole tests, or one subtest.
func groups(tests []string) [][]string {
	var out [][]string
	var whole []string
	for _, t := range tests {
		if strings.Contains(t, "/") {
			out = append(out, []string{t})
		} else {
			whole = append(whole, t)
		}
	}
	if len(whole) > 0 {
		out = append(out, whole)
	}
	return out
}

func pattern(tests []string) string {
	if len(tests) == 1 {
		parts := strings.Split(tests[0], "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		return strings.Join(parts, "/")
	}
	return "^(" + strings.Join(tests, "|") + ")$"
}

// passes: without a mutant each test has run and passed.
func (r *runner) passes(pkg string, tests []string) error {
	ok, out, err := r.start(pkg, pattern(tests), "SIGNET_MUTANT=", fault.Env+"=")
	if err != nil {
		return err
	}
	for _, t := range tests {
		if !ok || !strings.Contains(out, "--- PASS: "+t+" (") {
			return fmt.Errorf("%s: %s does not pass although nothing is broken:\n%s", pkg, t, tail(out))
		}
	}
	return nil
}

// fails: with what breaks it, the test says so. A test that did not run says nothing.
func (r *runner) fails(p pair) error {
	ok, out, err := r.start(p.pkg, pattern([]string{p.test}), "SIGNET_MUTANT="+p.mutant, fault.Env+"="+p.fault)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(p.test, "/")
	if ok || !strings.Contains(out, "=== RUN   "+name) {
		return fmt.Errorf("%s: it did not fail\n%s", p, tail(out))
	}
	return nil
}

func tail(s string) string { return s[max(0, len(s)-3000):] }
