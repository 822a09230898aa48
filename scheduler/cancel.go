package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/signet-io/signet/internal/mutant"
	"github.com/signet-io/signet/scheduler/journal"
)

// cancelWait bounds how long the answer to a cancel waits for the job's end, where only that can tell.
const cancelWait = 10 * time.Second

// cancelJob asks a job to end. It tells whether the job is or will be Cancelled, and otherwise what happened instead (S21). A yes is durable: a
// scheduler that dies right after it does not take the job up again.
func (s *Server) cancelJob(ctx context.Context, j *job, who string) (bool, string) {
	ctx, stop := context.WithTimeout(ctx, cancelWait)
	defer stop()
	for {
		j.mu.Lock()
		state, w, kind, changed := j.state, j.write, j.rec.Kind, j.changed
		j.mu.Unlock()
		if isTerminal(state) {
			return j.isCancelled(), "the job has ended: " + stateName(state)
		}
		j.mu.Lock()
		j.cancelBy = who // first: a write may end by the next step alone
		j.mu.Unlock()
		done, wait := false, takesEffect(kind)
		switch {
		case w != nil: // the coordinator decides
			if ok, msg := s.cancelWrite(w); !ok {
				return false, msg
			}
			done = true
		case !wait:
			var err error
			if done, err = s.noteCancel(j, who); err != nil {
				return false, fmt.Sprintf("the journal cannot be written: %v", err)
			}
		}
		if (done || wait) && !mutant.On("scheduler/cancel-unheard") {
			j.cancel(errCancelled)
		}
		if done {
			return true, "cancelled"
		}
		select { // its end, or its write, is about to be seen
		case <-changed:
		case <-ctx.Done():
			return false, "the job was told to end, and has not ended yet"
		case <-s.ctx.Done():
			return false, "the scheduler is stopping"
		}
	}
}

// takesEffect tells whether a statement of this kind may have been carried out when it is told to end, so that only its end says what became of it.
func takesEffect(kind string) bool { return kind == kindDDL || kind == kindCache }

// noteCancel makes it durable that a job is to end Cancelled. false: its write is planned, or it has ended, or it turned out to be of a kind that
// takes effect; what decides then is about to be seen.
func (s *Server) noteCancel(j *job, who string) (done bool, err error) {
	err = s.journal.Update(func(tx *journal.Tx) error {
		done = false
		rec, err := tx.Job(j.id)
		if err != nil {
			return err
		}
		if rec.State.Terminal() || rec.Write != nil {
			return nil
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if takesEffect(j.rec.Kind) {
			return nil
		}
		rec.CancelledBy = who
		if err := tx.PutJob(rec); err != nil {
			return err
		}
		j.rec.CancelledBy, done = who, true
		return nil
	})
	return done && err == nil, err
}

// cancelledBy is who was told that the job is or will be Cancelled; "" if nobody was.
func (j *job) cancelledBy() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec.CancelledBy
}

func (j *job) isCancelled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rec.State == journal.StateCancelled
}

func cancelledBy(who string) *jobFailure { return fail(codeCancelled, "", "cancelled by %s", who) }
