package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

func stageID(n int32) *StageID { id := StageNumber(n); return &id }

func ptr[T any](v T) *T { return &v }

func newLog(t *testing.T, cfg Config) *Log {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "events")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	l, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close(t.Context())) })
	return l
}

func (l *Log) read(t *testing.T, job string) *History {
	t.Helper()
	require.NoError(t, l.Flush(t.Context()))
	path, err := Path(l.Dir(), job)
	require.NoError(t, err)
	h, err := ReadFile(path)
	require.NoError(t, err)
	return h
}

func types(h *History) string {
	var out []string
	for _, r := range h.Records {
		out = append(out, r.Type)
	}
	return strings.Join(out, " ")
}

func attempt(job string, n int32) Record {
	return Record{Time: at(time.Second), Type: Attempt, Job: job, Event: Launched, Stage: stageID(0), Task: ptr(n), Attempt: fmt.Sprintf("a%d", n)}
}

func TestLog_KeepsTheOrderOfAJob(t *testing.T) {
	l := newLog(t, Config{})
	var wg sync.WaitGroup
	for j := range 3 * maxOpen {
		wg.Go(func() {
			job := fmt.Sprintf("job-%d", j)
			l.Write(Record{Time: noon, Type: Submitted, Job: job, Principal: "ann", Statement: "SELECT 1"})
			for n := range int32(5) {
				l.Write(attempt(job, n))
			}
			l.Write(Record{Time: at(2 * time.Second), Type: End, Job: job, State: "successful"})
		})
	}
	wg.Wait()
	for j := range 3 * maxOpen {
		h := l.read(t, fmt.Sprintf("job-%d", j))
		require.Equal(t, "submitted attempt attempt attempt attempt attempt end", types(h))
		for n := range int32(5) {
			require.Equal(t, n, *h.Records[n+1].Task)
		}
	}
	require.Equal(t, Stats{Written: 3 * maxOpen * 7}, l.Stats())
}

// gated is a disk that lets nothing through until its gate opens.
type gated struct {
	file
	gate <-chan struct{}
}

func (g gated) Write(p []byte) (int, error) { <-g.gate; return g.file.Write(p) }

// T4 for files: however slow the disk is, no job waits for it, and what must not be lost is not.
// Numbers in docs/semantics.md: J10.
func TestLog_SlowDiskDropsOnlyWhatMayBeDropped(t *testing.T) {
	gate := make(chan struct{})
	const queue = 10
	l := newLog(t, Config{Queue: queue, open: func(path string) (file, error) {
		f, err := openFile(path)
		return gated{f, gate}, err
	}})
	const jobs, attempts = 50, 100
	for j := range jobs { // ends although nothing is written
		job := fmt.Sprintf("job-%d", j)
		l.Write(Record{Time: noon, Type: Submitted, Job: job})
		l.Write(Record{Time: noon, Type: Planned, Job: job, Plan: "the plan"})
		for n := range int32(attempts) {
			l.Write(attempt(job, n))
		}
		l.Write(Record{Time: at(time.Second), Type: End, Job: job, State: "successful"})
	}
	dropped := int64(jobs*attempts - queue)
	require.Equal(t, dropped, l.Stats().Dropped)
	close(gate)
	var told, kept int64
	for j := range jobs {
		h := l.read(t, fmt.Sprintf("job-%d", j))
		require.Equal(t, "the plan", h.Plan())
		require.NotNil(t, h.Submitted())
		require.Equal(t, End, h.Records[len(h.Records)-1].Type)
		told += int64(h.End().Dropped)
		kept += int64(len(h.Records) - 3)
	}
	require.Equal(t, dropped, told, "each end says what is missing of its job")
	require.Equal(t, int64(queue), kept)
}

// full is a disk that refuses the first writes, half a line included.
type full struct {
	file
	refuse *int
}

func (f full) Write(p []byte) (int, error) {
	if *f.refuse > 0 {
		*f.refuse--
		n, _ := f.file.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return f.file.Write(p)
}

func TestLog_FullDiskLosesNoEnd(t *testing.T) {
	refuse := 4
	l := newLog(t, Config{RetryAfter: time.Millisecond, open: func(path string) (file, error) {
		f, err := openFile(path)
		return full{f, &refuse}, err
	}})
	l.Write(Record{Time: noon, Type: Submitted, Job: "j", Statement: "SELECT 1"})
	l.Write(attempt("j", 0))
	l.Write(Record{Time: at(time.Second), Type: End, Job: "j", State: "failed", Error: &Failure{Message: "m"}})
	h := l.read(t, "j")
	require.NotNil(t, h.Submitted())
	require.Equal(t, End, h.Records[len(h.Records)-1].Type)
	require.Equal(t, 3, len(h.Records)+h.End().Dropped, "the attempt is there, or is counted")
	require.Equal(t, Submitted, h.Records[0].Type)
	require.Positive(t, h.Skipped, "the halves that were written before")
	require.Equal(t, "m", h.End().Error.Message)
}

func TestLog_CloseDoesNotWaitForADeadDisk(t *testing.T) {
	gate := make(chan struct{})
	l, err := New(Config{Dir: filepath.Join(t.TempDir(), "e"), open: func(path string) (file, error) {
		f, err := openFile(path)
		return gated{f, gate}, err
	}})
	require.NoError(t, err)
	l.Write(Record{Type: End, Job: "j"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, l.Close(ctx))
	close(gate)
	<-l.done
	l.Write(Record{Type: End, Job: "k"}) // goes nowhere
	require.Zero(t, l.Stats().Queued)
}

func TestLog_AJobsFileHasALargestSize(t *testing.T) {
	l := newLog(t, Config{MaxBytes: 2000})
	for n := range int32(100) {
		l.Write(attempt("j", n))
	}
	l.Write(Record{Time: noon, Type: End, Job: "j"})
	h := l.read(t, "j")
	require.Less(t, len(h.Records), 50)
	require.Equal(t, 101-len(h.Records), h.End().Dropped)
	require.Equal(t, int64(h.End().Dropped), l.Stats().Dropped)
}

func TestLog_NamesAreJobsAndNothingElse(t *testing.T) {
	l := newLog(t, Config{})
	for _, id := range []string{"", "..", "../x", "a/b", "a.b", "-x", strings.Repeat("x", 65)} {
		_, err := Path("/d", id)
		require.ErrorIs(t, err, ErrJobID, id)
		l.Write(Record{Type: End, Job: id})
	}
	require.NoError(t, l.Flush(t.Context()))
	left, err := os.ReadDir(l.Dir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLog_HoldsNoSecret(t *testing.T) { // T7
	const canary = "canary-91d2"
	l := newLog(t, Config{Redact: func(s string) string { return strings.ReplaceAll(s, canary, "[redacted]") }})
	warnings := []string{canary}
	for _, r := range []Record{
		{Type: Submitted, Principal: canary, Statement: "SELECT '" + canary + "'", Settings: map[string]string{"a" + canary: canary}},
		{Type: Planned, Plan: canary, Stages: []StageRecord{{ID: "0", Plan: canary}}},
		{Type: Attempt, Reason: canary, Executor: canary, Error: &Failure{Message: canary, Hint: canary}},
		{Type: Phase, Message: canary},
		{Type: End, Warnings: warnings, Error: &Failure{Message: canary}, Stages: []StageRecord{{Plan: canary}}},
	} {
		r.Job = "j"
		l.Write(r)
	}
	require.Equal(t, "submitted planned attempt phase end", types(l.read(t, "j")))
	b, err := os.ReadFile(filepath.Join(l.Dir(), "j.jsonl"))
	require.NoError(t, err)
	require.NotContains(t, string(b), canary)
	require.Equal(t, canary, warnings[0], "the caller's own data stays")
}

func TestLog_ForgetRemovesTheHistory(t *testing.T) {
	l := newLog(t, Config{})
	l.Write(Record{Type: End, Job: "a"})
	l.Write(Record{Type: Submitted, Job: "b"}) // its file is open
	l.Write(Record{Type: End, Job: "c"})
	l.Forget("a", "b", "never-there")
	l.read(t, "c")
	left, err := filepath.Glob(filepath.Join(l.Dir(), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(l.Dir(), "c.jsonl")}, left)
}
