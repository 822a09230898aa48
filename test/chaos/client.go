package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
	"github.com/signet-io/signet/client"
	"github.com/signet-io/signet/test/harness"
)

// word is what a client was told about a job.
type word struct {
	statement *statement
	job       string
	state     schedulerv1.JobState
	reason    string
	snapshot  string // of a write
	rows      string
}

type complaint struct {
	statement *statement
	text      string
}

// ledger is what all clients were told.
type ledger struct {
	mu        sync.Mutex
	words     []word
	cancelled map[string]bool // job ids whose cancel was answered with yes
	jobs      map[string]*statement
	wrong     []complaint // what cannot be right whatever the tables hold
	lostRows  int
	notes     map[int][]string // by statement, what its clients saw
	start     time.Time
}

func newLedger() *ledger {
	return &ledger{cancelled: map[string]bool{}, jobs: map[string]*statement{}, notes: map[int][]string{}, start: time.Now()}
}

func (l *ledger) note(st *statement, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, notes := fmt.Sprintf(format, args...), l.notes[st.n]
	if n := len(notes); n > 0 && strings.HasSuffix(notes[n-1], text) {
		return // once more the same
	}
	l.notes[st.n] = append(notes, fmt.Sprintf("%7.2fs  %s", time.Since(l.start).Seconds(), text))
}

func (l *ledger) complain(st *statement, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.note(st, "WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, complaint{st, text})
}

func (l *ledger) began(st *statement, job string, existing bool) {
	l.note(st, "job %s, existing %v", job, existing)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[job] = st
}

func (l *ledger) told(w word) {
	l.note(w.statement, "told %s of job %s: %s %s %s", client.StateName(w.state), w.job, w.reason, w.snapshot, w.rows)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.words = append(l.words, w)
	l.jobs[w.job] = w.statement
}

// user runs one statement as a client would that cannot trust its connection.
type user struct {
	ctx  context.Context //nolint:containedctx // of one statement
	l    *ledger
	st   *statement
	cl   *client.Client
	once *sync.Once // of the cancel
}

// run executes a statement to a definite answer, or until ctx ends.
func run(ctx context.Context, l *ledger, addr string, st *statement, offset time.Duration, once *sync.Once) {
	patience := harness.Patience
	if st.impatient {
		patience = 200 * time.Millisecond
	}
	cl, err := client.Dial(addr, client.WithRetry(patience))
	if err != nil {
		l.complain(st, "dial: %v", err)
		return
	}
	defer cl.Close()
	u := &user{ctx: ctx, l: l, st: st, cl: cl, once: once}
	pause(ctx, offset)
	if st.sql == "" {
		u.session()
		return
	}
	u.statement()
}

func (u *user) statement() {
	for u.ctx.Err() == nil {
		res, err := u.cl.Exec(u.ctx, u.st.sql, client.WithIdempotencyKey(u.st.key()), client.WithSettings(u.st.set), client.WithSubmitted(u.submitted))
		if err == nil {
			u.succeeded(res.Job)
			return
		}
		var pending *client.PendingError
		var failed *client.Error
		switch {
		case errors.As(err, &pending) && pending.JobID != "": // by job id
			u.l.note(u.st, "not known: %v", err)
			if u.follow(pending.JobID) {
				return
			}
		case errors.As(err, &pending), errors.Is(err, client.ErrUnreachable): // by key
			u.l.note(u.st, "not known: %v", err)
		case errors.As(err, &failed) && failed.JobID != "":
			u.failed(failed)
			return
		case u.ctx.Err() != nil:
		default:
			u.l.note(u.st, "refused: %v", err)
			if !errors.As(err, &failed) || failed.Code != "no-executor" {
				u.l.complain(u.st, "an answer that is no end: %v", err)
			}
		}
		pause(u.ctx, 50*time.Millisecond)
	}
	u.l.complain(u.st, "no definite answer within the bound")
}

// follow waits for the end of a job by its id.
func (u *user) follow(id string) bool {
	for u.ctx.Err() == nil {
		j, err := u.cl.Wait(u.ctx, id, nil)
		switch {
		case err == nil:
			u.ended(j)
			return true
		case errors.Is(err, client.ErrPending), errors.Is(err, client.ErrUnreachable):
			u.l.note(u.st, "asked for job %s: %v", id, err)
		default:
			u.l.complain(u.st, "asked for job %s: %v", id, err)
			return true
		}
		pause(u.ctx, 50*time.Millisecond)
	}
	return false
}

func (u *user) ended(j *schedulerv1.Job) {
	if j.GetState() == schedulerv1.JobState_JOB_STATE_SUCCESSFUL {
		u.succeeded(j)
		return
	}
	u.l.told(word{statement: u.st, job: j.GetJobId(), state: j.GetState(), reason: j.GetError().GetCode() + ": " + j.GetError().GetMessage()})
}

func (u *user) failed(e *client.Error) {
	state := schedulerv1.JobState_JOB_STATE_FAILED
	if errors.Is(e, client.ErrCancelled) {
		state = schedulerv1.JobState_JOB_STATE_CANCELLED
	}
	u.l.told(word{statement: u.st, job: e.JobID, state: state, reason: e.Code + ": " + e.Message})
}

// succeeded reads the result. A query's rows do not outlive its scheduler; what comes of them must be right.
func (u *user) succeeded(j *schedulerv1.Job) {
	w := word{statement: u.st, job: j.GetJobId(), state: j.GetState()}
	names, rows, err := u.read(j)
	switch {
	case u.st.table == "" && err != nil:
		u.l.note(u.st, "no rows: %v", err)
		u.l.mu.Lock()
		u.l.lostRows++
		u.l.mu.Unlock()
	case err != nil:
		u.l.complain(u.st, "job %s: the result cannot be read: %v", j.GetJobId(), err)
	case u.st.table == "":
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r))
		}
		if fmt.Sprint(got) != fmt.Sprint(u.st.rows) {
			u.l.complain(u.st, "job %s: rows %v, want %v", j.GetJobId(), got, u.st.rows)
		}
	case len(rows) != 1:
		u.l.complain(u.st, "job %s: %d rows of a write's result", j.GetJobId(), len(rows))
	default:
		for i, name := range names {
			switch name {
			case "snapshot_id":
				w.snapshot = rows[0][i]
			case "rows":
				w.rows = rows[0][i]
			}
		}
	}
	u.l.told(w)
}

func (u *user) read(j *schedulerv1.Job) (names []string, out [][]string, err error) {
	rows, err := u.cl.Rows(u.ctx, j)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if rows.Schema() != nil {
		for _, f := range rows.Schema().Fields() {
			names = append(names, f.Name)
		}
	}
	for rows.Next() {
		b := rows.RecordBatch()
		for i := range int(b.NumRows()) {
			var row []string
			for _, c := range b.Columns() {
				row = append(row, c.ValueStr(i))
			}
			out = append(out, row)
		}
	}
	return names, out, rows.Err()
}

// submitted cancels the job after a while, if the statement is one that is cancelled.
func (u *user) submitted(id string, existing bool) {
	u.l.began(u.st, id, existing)
	if u.st.cancel < 0 {
		return
	}
	u.once.Do(func() {
		go func() {
			cl, err := client.Dial(u.cl.Addr())
			if err != nil {
				u.l.complain(u.st, "dial: %v", err)
				return
			}
			defer cl.Close()
			pause(u.ctx, u.st.cancel)
			for range 20 {
				yes, message, err := cl.Cancel(u.ctx, id)
				u.l.note(u.st, "cancel of job %s: %v %q %v", id, yes, message, err)
				if yes {
					u.l.mu.Lock()
					u.l.cancelled[id] = true
					u.l.mu.Unlock()
				}
				if err == nil {
					return
				}
				pause(u.ctx, 200*time.Millisecond)
			}
		}()
	})
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
