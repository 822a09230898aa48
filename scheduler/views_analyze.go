package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signet-io/signet/scheduler/eventlog"
	"github.com/signet-io/signet/scheduler/plan"
	"github.com/signet-io/signet/scheduler/sql"
)

// maxAnalyzed bounds what EXPLAIN ANALYZE of a write answers, in bytes: a commit's result must stay small whatever was written (S38, S59).
const maxAnalyzed = 256 << 10

// explainAnalyze runs the statement, drops its rows, and answers with the plan and what was measured. A write is a write: it commits.
func (s *Server) explainAnalyze(j *job, st *sql.Explain) error {
	switch inner := st.Statement.(type) {
	case *sql.Insert:
		return s.runInsert(j, inner) // the commit's result is replaced by analyzed, in the transaction that records it
	case *sql.CreateTable:
		return s.runCreateAs(j, inner)
	case *sql.Truncate:
		return s.runTruncate(j, inner)
	case *sql.Delete, *sql.Update, *sql.Merge:
		return s.runRowLevel(j, inner)
	case *sql.AddFiles:
		return s.runAddFiles(j, inner)
	case *sql.Select:
		if err := s.runSelect(j, inner.Query); err != nil {
			return err
		}
		var out *output
		j.update(func() { out, j.output, j.rec.HasRows = j.output, nil, false })
		if out != nil {
			out.free()
		}
		return s.answer(j, []string{"plan"}, []row{{j.measured()}})
	}
	return fail(codeUser, "", "EXPLAIN ANALYZE works on SELECT, INSERT, DELETE, UPDATE, MERGE, TRUNCATE, CREATE TABLE AS and ADD FILES")
}

// analyzed is the inline result of a write that has landed: its own, or what was measured where EXPLAIN ANALYZE ran it.
func (w *writeState) analyzed(res []byte) []byte {
	w.job.mu.Lock()
	kind := w.job.rec.Kind
	w.job.mu.Unlock()
	if kind != kindExplain {
		return res
	}
	text, err := inlineResult([]string{"plan"}, []row{{clip(w.job.measured(), maxAnalyzed)}})
	if err != nil { // the rows have landed; their count is a good answer too
		w.s.log.Warn("cannot show what was measured", "job", w.job.id, "error", err)
		return res
	}
	return text
}

// measured is the job's plan with what was measured under each head.
func (j *job) measured() string {
	text, rec := j.view.current()
	j.mu.Lock()
	tasks, timings := slices.Clone(j.tasks), maps.Clone(j.timings)
	j.mu.Unlock()
	v := &j.view
	v.mu.Lock()
	stages, root := v.list(text, tasks, rec), v.root
	v.mu.Unlock()
	notes := map[string]string{}
	for _, st := range stages {
		if st.id == eventlog.SchedulerStage {
			if !root.IsZero() {
				notes["root"] = "measured: " + time.Since(root).Round(time.Microsecond).String()
			}
			continue
		}
		notes[string(st.id)] = st.measuredText()
	}
	return annotate(text, notes) + stepsText(timings, time.Since(rec.Submitted))
}

func (s *shownStage) measuredText() string {
	out := fmt.Sprintf("measured: tasks %d/%d, attempts %d, rows %d, %s", s.done, s.total, s.attempts, s.rows, plan.ByteText(s.bytes))
	if s.started.IsZero() {
		return out
	}
	return out + ", " + s.took.Round(time.Microsecond).String()
}

// annotate puts a line under each head of the plan.
func annotate(text string, notes map[string]string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(strings.TrimSuffix(l, "\n") + "\n")
		note := ""
		if rootHead.MatchString(l) {
			note = notes["root"]
		} else if m := stageHead.FindStringSubmatch(l); m != nil {
			note = notes[m[1]]
		}
		if note != "" {
			b.WriteString("  " + note + "\n")
		}
	}
	return b.String()
}

// stepsText lists the steps by the time they took, longest first.
func stepsText(timings map[string]int64, total time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Steps: %s in all\n", total.Round(time.Microsecond))
	names := slices.SortedFunc(maps.Keys(timings), func(a, b string) int {
		if timings[a] != timings[b] {
			return int(min(max(timings[b]-timings[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	for _, n := range names {
		fmt.Fprintf(&b, "  %s %s\n", n, time.Duration(timings[n])*time.Microsecond)
	}
	return b.String()
}
