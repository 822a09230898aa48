// Package fault holds named fault points: places where a test may make a process die, wait or fail.
//
// A point does nothing unless SIGNET_FAILPOINTS names it. The variable is a semicolon-separated list of
// name=term, in the term language of FreeBSD's fail(9) as containerd uses it, reduced to what the tests need:
//
//	scheduler.seal.after-journal=kill          SIGKILL to this very process
//	scheduler.seal.after-journal=kill(/path)   the same, once: only a process that is older than the file dies, so that its
//	                                           successor under the same list lives; the file's size is the number of hits that pass before
//	executor.upload.before-fsync=2*off->kill   the third hit kills
//	catalog.commit.after-send=1*error(lost)    the first hit fails, later ones pass
//	executor.task.before-report=pause(/path)   waits until the file exists
//
// Invariants: a point that is not named costs one atomic load; the list is read once, at start; every point is listed in
// docs/fault-points.md.
package fault

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Env is the variable that names the armed points.
const Env = "SIGNET_FAILPOINTS"

// ErrInjected is what every injected error wraps.
var ErrInjected = errors.New("injected fault")

type term struct {
	count  int // hits it applies to; 0: all
	action string
	arg    string
}

type point struct {
	mu     sync.Mutex
	terms  []term
	armed  time.Time // of the file that a kill(file) counts for
	passed int64     // hits since then
}

// started tells a process that is to be killed from its successor.
var started = time.Now()

var (
	once   sync.Once
	points map[string]*point
)

// Hit passes the named point. It returns an error only where an error term is armed there.
func Hit(name string) error {
	once.Do(load)
	if points == nil {
		return nil
	}
	p := points[name]
	if p == nil {
		return nil
	}
	return p.hit(name)
}

func load() {
	v := os.Getenv(Env)
	if v == "" {
		return
	}
	parsed, err := Parse(v)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Env, err)
		os.Exit(2)
	}
	points = parsed
}

// Parse reads a list of points; it is exported for its test and for tools that check a list before a run.
func Parse(list string) (map[string]*point, error) {
	out := map[string]*point{}
	for item := range strings.SplitSeq(list, ";") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want name=term", item)
		}
		p := &point{}
		for part := range strings.SplitSeq(text, "->") {
			t, err := parseTerm(part)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			p.terms = append(p.terms, t)
		}
		out[name] = p
	}
	return out, nil
}

func parseTerm(s string) (term, error) {
	var t term
	if n, rest, ok := strings.Cut(s, "*"); ok {
		c, err := strconv.Atoi(n)
		if err != nil || c < 1 {
			return t, fmt.Errorf("%q: count", s)
		}
		t.count, s = c, rest
	}
	if i := strings.IndexByte(s, '('); i >= 0 {
		if !strings.HasSuffix(s, ")") {
			return t, fmt.Errorf("%q: missing )", s)
		}
		t.arg, s = s[i+1:len(s)-1], s[:i]
	}
	switch s {
	case "off", "kill", "error", "pause", "sleep":
		t.action = s
	default:
		return t, fmt.Errorf("%q: want off, kill, error(text), pause(file) or sleep(duration)", s)
	}
	if t.action == "sleep" {
		if _, err := time.ParseDuration(t.arg); err != nil {
			return t, err
		}
	}
	return t, nil
}

// take picks the term for this hit and uses it up.
func (p *point) take() term {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.terms {
		t := &p.terms[i]
		if t.count < 0 {
			continue
		}
		out := *t
		if t.count > 0 {
			if t.count--; t.count == 0 {
				t.count = -1
			}
		}
		return out
	}
	return term{action: "off"}
}

func (p *point) hit(name string) error {
	switch t := p.take(); t.action {
	case "kill":
		if t.arg == "" || p.due(t.arg) {
			die()
		}
	case "error":
		return fmt.Errorf("%w at %s: %s", ErrInjected, name, t.arg)
	case "pause":
		for {
			if _, err := os.Stat(t.arg); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond) // a test holds the process here; there is nothing to be signalled by
		}
	case "sleep":
		d, err := time.ParseDuration(t.arg)
		if err != nil {
			return err
		}
		time.Sleep(d)
	}
	return nil
}

// due tells whether a kill(file) applies to this hit. Only the file's attributes are looked at: a confined plugin may see no more.
func (p *point) due(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !info.ModTime().After(started) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed.Equal(info.ModTime()) {
		p.armed, p.passed = info.ModTime(), 0
	}
	p.passed++
	return p.passed > info.Size()
}

// die ends the process without any clean-up.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail for the own pid
	syscall.Exit(128 + int(syscall.SIGKILL))       // the first process of a PID namespace takes no signal from within
}
