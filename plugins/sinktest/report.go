package sinktest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is the end of one check.
type Status string

// The ends of a check.
const (
	Passed     Status = "passed"
	Failed     Status = "failed"
	NotOffered Status = "not_offered" // the sink does not say that it can do this
	Skipped    Status = "skipped"     // the check cannot run here; Reason says why
)

// Result is one check's end.
type Result struct {
	Check      string   `json:"check"`
	Capability string   `json:"capability"` // under which the report lists it
	Status     Status   `json:"status"`
	Reason     string   `json:"reason,omitempty"` // of everything but Passed
	Link       string   `json:"link,omitempty"`   // what the check does and what to mend
	Notes      []string `json:"notes,omitempty"`  // what was seen and is no failure
	Millis     int64    `json:"millis"`
	Log        []string `json:"log,omitempty"` // the last lines that the plugin wrote before a failure
}

// Report is what a run found. Its JSON is stable: members are added, never renamed.
type Report struct {
	Sink       string   `json:"sink"`
	Version    string   `json:"version"`
	Path       string   `json:"path,omitempty"`
	Isolation  string   `json:"isolation,omitempty"`
	Conforms   bool     `json:"conforms"`
	Passed     int      `json:"passed"`
	Failed     int      `json:"failed"`
	NotOffered int      `json:"not_offered"`
	Skipped    int      `json:"skipped"`
	Millis     int64    `json:"millis"`
	Results    []Result `json:"results"`
}

func (r *Report) add(one Result) {
	r.Results = append(r.Results, one)
	r.Millis += one.Millis
	switch one.Status {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	case NotOffered:
		r.NotOffered++
	case Skipped:
		r.Skipped++
	}
	r.Conforms = r.Failed == 0 && r.Passed > 0
}

// WriteJSON writes the report for machines.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

var marks = map[Status]string{Passed: "ok  ", Failed: "FAIL", NotOffered: "-   ", Skipped: "skip"}

// WriteText writes the report for people. verbose adds times and notes.
func (r *Report) WriteText(w io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "sink %s %s", r.Sink, r.Version)
	if r.Isolation != "" {
		fmt.Fprintf(&b, " (isolation: %s)", r.Isolation)
	}
	b.WriteString("\n")
	group := ""
	for _, one := range r.Results {
		if one.Capability != group {
			group = one.Capability
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		fmt.Fprintf(&b, "  %s %s", marks[one.Status], one.Check)
		if one.Status == NotOffered {
			b.WriteString(" (not offered)")
		}
		if verbose {
			fmt.Fprintf(&b, " (%v)", time.Duration(one.Millis)*time.Millisecond)
		}
		b.WriteString("\n")
		if one.Reason != "" && (verbose || one.Status == Failed || one.Status == Skipped) {
			fmt.Fprintf(&b, "         %s\n", strings.ReplaceAll(one.Reason, "\n", "\n         "))
		}
		if one.Status == Failed {
			for _, line := range one.Log {
				fmt.Fprintf(&b, "         | %s\n", line)
			}
			fmt.Fprintf(&b, "         see %s\n", one.Link)
		}
		if verbose {
			for _, note := range one.Notes {
				fmt.Fprintf(&b, "         note: %s\n", note)
			}
		}
	}
	verdict := "conforms"
	if !r.Conforms {
		verdict = "does NOT conform"
	}
	fmt.Fprintf(&b, "\n%s %s: %d passed, %d failed, %d not offered, %d skipped in %v\n", r.Sink, verdict, r.Passed, r.Failed, r.NotOffered, r.Skipped,
		(time.Duration(r.Millis) * time.Millisecond).Round(100*time.Millisecond))
	_, err := io.WriteString(w, b.String())
	return err
}
