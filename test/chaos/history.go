package chaos

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// wrong reports a defect with the history of the statement: what its clients saw, and what the processes logged about its jobs.
func (s *stage) wrong(st *statement, format string, args ...any) {
	s.t.Helper()
	text := fmt.Sprintf(format, args...)
	if st == nil {
		s.t.Error(text)
		return
	}
	s.l.mu.Lock()
	notes := slices.Clone(s.l.notes[st.n])
	s.l.mu.Unlock()
	var ids []string
	for id, owner := range s.l.jobs {
		if owner == st {
			ids = append(ids, id)
		}
	}
	s.t.Errorf("statement %s\n%s\nits clients:\n  %s\nthe logs:\n  %s", st, text, strings.Join(notes, "\n  "), strings.Join(s.logged(ids), "\n  "))
}

const maxLines = 80

// logged are the lines of the logs that name one of the jobs, in order of their time.
func (s *stage) logged(ids []string) []string {
	var out []string
	for _, path := range s.logs() {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(sc.Text(), id) }) {
				out = append(out, strings.TrimPrefix(sc.Text(), "time=")+" ("+filepath.Base(path)+")")
			}
		}
		_ = f.Close()
	}
	slices.Sort(out)
	if len(out) > maxLines {
		out = append(out[:maxLines], fmt.Sprintf("... and %d more lines", len(out)-maxLines))
	}
	return out
}

func (s *stage) logs() []string {
	found, _ := filepath.Glob(filepath.Join(s.Dir, "*.log")) // the pattern is valid
	return found
}

// ownerOf says whose file a path is, if it names a job.
func (s *stage) ownerOf(path string) string {
	for id, st := range s.l.jobs {
		if strings.Contains(path, id) {
			return fmt.Sprintf(" (of statement %s)\n  %s", st, strings.Join(s.logged([]string{id}), "\n  "))
		}
	}
	return ""
}

// keepLogs copies the logs of a run that failed to a place that stays.
func (s *stage) keepLogs() {
	if !s.t.Failed() {
		return
	}
	dir := filepath.Join(harness.Root(), ".cache", "chaos", fmt.Sprintf("seed-%d", s.o.Seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Logf("the logs are not kept: %v", err)
		return
	}
	for _, path := range s.logs() {
		if err := copyFile(path, filepath.Join(dir, filepath.Base(path))); err != nil {
			s.t.Logf("the logs are not kept: %v", err)
		}
	}
	s.t.Logf("the logs are in %s; the same statements and kills: make chaos SEED=%d JOBS=%d", dir, s.o.Seed, s.o.Jobs)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, in)
	return err
}

// summary prints what happened.
func (s *stage) summary(jobs []*schedulerv1.Job, took time.Duration) {
	ends := map[string]int{}
	reasons := map[string]int{}
	for _, j := range jobs {
		st := s.statementOf(j)
		if st == nil {
			continue
		}
		ends[st.kind+" "+strings.ToLower(client.StateName(j.GetState()))]++
		if j.GetState() == failed && !st.fails {
			reasons[j.GetError().GetMessage()]++
		}
	}
	s.t.Logf("%d statements answered in %s; kills %v; jobs %v; results lost with a restart: %d; failures %v", len(s.list), took.Round(time.Millisecond), s.kills, ends, s.l.lostRows, reasons)
}
