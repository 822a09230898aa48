package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
)

// progress shows how a job goes on: one line that is painted over on a terminal, plain lines elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	width    func() int
	quiet    bool

	mu      sync.Mutex
	job     *schedulerv1.Job
	started time.Time
	painted bool
	said    string    // plain: the last line, without its counts
	saidAt  time.Time // plain
	stop    chan struct{}
	ended   sync.WaitGroup
}

const (
	paintAfter = 300 * time.Millisecond // short statements show nothing
	paintEvery = 100 * time.Millisecond
	plainEvery = 5 * time.Second
)

func newProgress(s Streams, quiet bool) *progress {
	p := &progress{w: s.Err, terminal: s.ErrTerminal, width: s.Width, quiet: quiet, started: time.Now(), stop: make(chan struct{})}
	if p.terminal && !quiet {
		p.ended.Go(p.paintLoop)
	}
	return p
}

// update takes a new status.
func (p *progress) update(job *schedulerv1.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.job = job
	if p.terminal || p.quiet {
		return
	}
	what := describe(job)
	if what == p.said && time.Since(p.saidAt) < plainEvery {
		return
	}
	p.said, p.saidAt = what, time.Now()
	fmt.Fprintf(p.w, "%s job %s: %s\n", time.Now().Format("15:04:05"), job.GetJobId(), p.line())
}

// say prints a message without mixing it into the painted line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// close removes the painted line. It is called once.
func (p *progress) close() {
	close(p.stop)
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *progress) paintLoop() {
	tick := time.NewTicker(paintEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.mu.Lock()
			if p.job != nil && time.Since(p.started) >= paintAfter {
				fmt.Fprintf(p.w, "\r\x1b[K%s", runewidth.Truncate(p.line(), max(p.width()-1, 10), "…"))
				p.painted = true
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) wipe() {
	if p.painted {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.painted = false
	}
}

// line is the whole status in one line.
func (p *progress) line() string {
	parts := []string{describe(p.job)}
	g := p.job.GetProgress()
	if g.GetRunning() > 0 {
		parts = append(parts, fmt.Sprintf("%d running", g.GetRunning()))
	}
	if g.GetRows() > 0 { // a task counts its rows when it ends
		parts = append(parts, count(g.GetRows())+" rows")
	}
	if g.GetRows() > 0 || g.GetBytes() > 0 {
		parts = append(parts, bytes(g.GetBytes()))
	}
	parts = append(parts, seconds(time.Since(p.started)))
	if m := p.job.GetMessage(); m != "" {
		parts = append(parts, m)
	}
	return strings.Join(parts, ", ")
}

// describe is the part of a status whose change is worth a line.
func describe(job *schedulerv1.Job) string {
	out := strings.ToLower(client.StateName(job.GetState()))
	if p := job.GetPhase(); p != "" && p != "stages" {
		out = p
	}
	if g := job.GetProgress(); g.GetTasks() > 0 {
		out += fmt.Sprintf(", stage %d/%d, tasks %d/%d", g.GetStagesDone(), g.GetStages(), g.GetTasksDone(), g.GetTasks())
	}
	return out
}

// count groups digits: 1,234,567.
func count(n int64) string {
	s := fmt.Sprint(n)
	start := len(s) % 3
	if start == 0 {
		start = 3
	}
	if n < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:start])
	for i := start; i < len(s); i += 3 {
		b.WriteString("," + s[i:i+3])
	}
	return b.String()
}

func bytes(n int64) string {
	f, unit := float64(n), 0
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	for f >= 1000 && unit < len(units)-1 {
		f, unit = f/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[unit])
}

func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
