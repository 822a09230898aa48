package sinktest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// Link is where every check is explained, by its name as the anchor.
const Link = "https://github.com/signet-io/signet/blob/main/docs/conformance.md"

// Check is one check of the suite.
type Check struct {
	Name       string `json:"check"`
	Capability string `json:"capability"`
	Process    bool   `json:"process"` // it needs a process
	run        func(*bench)
}

// Checks lists the suite's checks in the order in which they run.
func Checks() []Check { return append([]Check(nil), checks...) }

// Run runs the suite as subtests, each with a table of its own:
//
//	func TestConformance(t *testing.T) { sinktest.Run(t, sinktest.InProcess(mySink{})) }
//
// What the sink does not offer is skipped.
func Run(t *testing.T, target Target, options ...Options) {
	t.Helper()
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	o.complete()
	for _, c := range checks {
		if o.Run != nil && !o.Run.MatchString(c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			r, _ := execute(t.Context(), c, target, &o)
			for _, note := range r.Notes {
				t.Log(note)
			}
			switch r.Status {
			case Failed:
				t.Errorf("%s\nsee %s\n%s", r.Reason, r.Link, r.Log)
			case NotOffered, Skipped:
				t.Skip(r.Reason)
			case Passed:
			}
		})
	}
}

// Verify runs the suite outside of a test and reports. each hears of every result as it comes; nil: nobody. The error is one of the run itself: the
// context's, or no check of that name.
func Verify(ctx context.Context, target Target, o Options, each func(Result)) (*Report, error) {
	o.complete()
	report := &Report{Path: target.describe(), Results: []Result{}}
	for _, c := range checks {
		if o.Run != nil && !o.Run.MatchString(c.Name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return report, err
		}
		r, b := execute(ctx, c, target, &o)
		if b.desc != nil {
			report.Sink, report.Version = b.desc.GetName(), b.desc.GetVersion()
		}
		report.add(r)
		if each != nil {
			each(r)
		}
		if c.Name == "handshake" && r.Status == Failed {
			return report, nil // nothing else would say more
		}
	}
	if len(report.Results) == 0 {
		return report, errors.New("no check has such a name; list them with --list")
	}
	return report, nil
}

// execute runs one check from the start of its sink to its end.
func execute(ctx context.Context, c Check, target Target, o *Options) (Result, *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{ctx: ctx, opts: o, target: target, limit: o.Limits.Call}
	r := Result{Check: c.Name, Capability: c.Capability, Status: Passed, Link: Link + "#" + c.Name}
	began := time.Now()
	defer b.end()
	func() {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case verdict:
				r.Status, r.Reason = v.status, v.reason
			default:
				r.Status, r.Reason = Failed, fmt.Sprintf("a defect of the suite: %v\n%s", v, debug.Stack())
			}
		}()
		if err := b.open(c.Name); err != nil {
			b.fail("it does not start: %v", err)
		}
		if c.Process {
			b.needsProcess()
		}
		c.run(b)
	}()
	r.Notes, r.Millis = b.notes, time.Since(began).Milliseconds()
	if r.Status == Failed && b.run != nil {
		r.Log = b.run.output.last(8)
	}
	return r, b
}
