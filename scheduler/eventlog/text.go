package eventlog

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// WriteText writes the history for people: who asked for what, what happened when, and the plan.
func (h *History) WriteText(w io.Writer) error {
	var b strings.Builder
	head := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	first := h.Records[0]
	head("job", "%s", first.Job)
	if s := h.Submitted(); s != nil {
		first = *s
		head("statement", "%s", strings.ReplaceAll(s.Statement, "\n", "\n           "))
		head("submitted", "%s by %s", s.Time.UTC().Format(time.RFC3339Nano), s.Principal)
		if s.Trace != "" {
			head("trace", "%s", s.Trace)
		}
	}
	if e := h.End(); e != nil {
		head("state", "%s after %s", title(e.State), e.Time.Sub(first.Time).Round(time.Microsecond))
		if e.Error != nil && e.State != "successful" {
			head("error", "%s", e.Error.text())
		}
		if e.Commit != nil {
			head("commit", "%s", e.Commit.text())
		}
		if e.Dropped > 0 {
			head("note", "%s did not fit the log", plural(e.Dropped, "event"))
		}
	} else {
		head("state", "not ended")
	}
	if h.Skipped > 0 {
		head("note", "%s could not be read", plural(h.Skipped, "line"))
	}
	b.WriteString("\n")
	for _, r := range h.Records {
		fmt.Fprintf(&b, "%12.6f  %s\n", r.Time.Sub(first.Time).Seconds(), r.line())
	}
	if p := h.Plan(); p != "" {
		fmt.Fprintf(&b, "\nplan\n%s\n", strings.TrimRight(p, "\n"))
	}
	_, err := io.WriteString(w, disarm(b.String()))
	return err
}

// line is a record in words.
func (r *Record) line() string {
	switch r.Type {
	case Submitted:
		return "submitted"
	case Planned:
		return "planned: " + r.stageCount()
	case Recovered:
		return "taken up again after a restart of the scheduler"
	case Phase:
		return join("phase "+r.Phase, r.Message)
	case Stage:
		return r.stageLine()
	case Attempt:
		return r.attemptLine()
	case Root:
		return join("scheduler root "+r.Event, r.failure()) + r.took()
	case End:
		return join("end: "+title(r.State), r.failure()) + r.measured()
	}
	return join(r.Type, r.Event)
}

func (r *Record) stageCount() string {
	tasks, root := 0, ""
	n := len(r.Stages)
	for _, s := range r.Stages {
		tasks += s.Tasks
		if s.ID == SchedulerStage {
			n, root = n-1, " and the scheduler root"
		}
	}
	return plural(n, "stage") + ", " + plural(tasks, "task") + root
}

func (r *Record) stageLine() string {
	out := "stage " + r.stage() + " " + r.Event
	if r.Event == Started {
		return out + ": " + plural(r.Tasks, "task")
	}
	return out + r.took() + r.measured()
}

func (r *Record) attemptLine() string {
	out := "stage " + r.stage()
	if r.Task != nil {
		out += fmt.Sprintf(" task %d", *r.Task)
	}
	if r.Number > 1 {
		out += fmt.Sprintf(" attempt %d", r.Number)
	}
	out += " " + r.Event
	if r.Executor != "" {
		out += " on " + r.Executor
	}
	if r.Class != "" {
		out += " (" + r.Class + ")"
	}
	return join(out, r.failure()+r.Reason) + r.took() + r.measured()
}

func (r *Record) stage() string {
	if r.Stage == nil {
		return "?"
	}
	return string(*r.Stage)
}

func (r *Record) failure() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.text()
}

func (f *Failure) text() string {
	out := f.Message
	if f.Code != "" {
		out += " (" + f.Code + ")"
	}
	if f.Hint != "" {
		out += "; " + f.Hint
	}
	return out
}

func (r *Record) took() string {
	if r.Micros == 0 {
		return ""
	}
	return " after " + (time.Duration(r.Micros) * time.Microsecond).String()
}

func (r *Record) measured() string {
	if r.Rows == 0 && r.Bytes == 0 {
		return ""
	}
	return fmt.Sprintf(", %s, %d bytes", plural(int(r.Rows), "row"), r.Bytes)
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

func join(head, tail string) string {
	if tail == "" {
		return head
	}
	return head + ": " + tail
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// disarm makes control characters harmless: what users and programs wrote goes to a terminal.
func disarm(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
