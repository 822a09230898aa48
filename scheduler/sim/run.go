package sim

import (
	"fmt"
	"strings"
)

// Failure is a schedule that broke a rule.
type Failure struct {
	Seed  uint64
	Rule  string
	Text  string
	Steps []Step // what was done before everything was left to work
}

func (f *Failure) Error() string { return fmt.Sprintf("seed %d: %s: %s", f.Seed, f.Rule, f.Text) }

// Script is the failure as a file that Replay takes.
func (f *Failure) Script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\nseed %d\n", f.Rule, f.Text, f.Seed)
	for _, s := range f.Steps {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// Seed plays the schedule of a seed: its world, up to steps steps in which anything may go wrong, and then none. nil: no rule was broken.
func Seed(seed uint64, steps int) *Failure {
	var done []Step
	w := New(seed)
	c := newChooser(w, seed)
	return w.attempt(seed, func() {
		over := 0
		for range steps {
			if w.over() {
				if over++; over > 40 {
					return
				}
			}
			s, ok := c.next()
			if !ok {
				continue
			}
			done = append(done, s)
			if !w.Do(s) {
				done = done[:len(done)-1]
			}
		}
	}, &done)
}

// Play takes the given steps in the world of a seed, and lets it work. trace hears of all that happens; it may be nil.
func Play(seed uint64, steps []Step, trace func(string)) *Failure {
	w := New(seed)
	w.trace = trace
	return w.attempt(seed, func() {
		for _, s := range steps {
			w.Do(s)
		}
	}, &steps)
}

// attempt runs a schedule and catches what breaks a rule.
func (w *World) attempt(seed uint64, schedule func(), steps *[]Step) (f *Failure) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f = &Failure{Seed: seed, Rule: "panic", Steps: *steps}
		if v, ok := r.(violation); ok {
			f.Rule, f.Text = v.rule, v.text
			return
		}
		f.Text = fmt.Sprint(r)
	}()
	schedule()
	w.tracef("from here on nothing goes wrong")
	w.fair()
	return nil
}

// ParseScript reads a script.
func ParseScript(text string) (seed uint64, steps []Step, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if n, ok := strings.CutPrefix(line, "seed "); ok {
			if _, err := fmt.Sscan(n, &seed); err != nil {
				return 0, nil, fmt.Errorf("line %q: %w", line, err)
			}
			continue
		}
		s, err := ParseStep(line)
		if err != nil {
			return 0, nil, err
		}
		steps = append(steps, s)
	}
	return seed, steps, nil
}

// Shrink leaves out what a failure does not need: halves, quarters, …, single steps, until nothing more can go (delta debugging). The rule that
// is broken stays the same.
func Shrink(f *Failure) *Failure {
	best := f
	for size := max(len(f.Steps)/2, 1); size > 0; {
		smaller := false
		for at := 0; at < len(best.Steps); {
			end := min(at+size, len(best.Steps))
			rest := append(append([]Step{}, best.Steps[:at]...), best.Steps[end:]...)
			if g := Play(f.Seed, rest, nil); g != nil && g.Rule == f.Rule {
				best, smaller = g, true
				continue
			}
			at = end
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return best
}

// state describes what has not ended.
func (w *World) state() string {
	var b strings.Builder
	for _, j := range w.jobs[1:] {
		if !j.submitted || j.told != "" {
			continue
		}
		fmt.Fprintf(&b, "job %d ", j.n)
		if r := w.runOf(j.n); r != nil {
			sn := r.g.Snapshot()
			fmt.Fprintf(&b, "is %s/%s, %d/%d tasks, %d running, %d waiting, planning %v, root due %v", sn.State, sn.Phase, sn.TasksDone, sn.Tasks, sn.Running, sn.Waiting, r.planning, r.due)
			if r.m != nil {
				fmt.Fprintf(&b, ", commit %s, called %v", r.m.State(), r.calling)
			}
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%d messages, %d duties", len(w.net), len(w.jrn.duties))
	return b.String()
}
