package scheduler

import (
	"time"

	"github.com/signet-io/signet/internal/mutant"
)

// rootGrace is how long the end of a job waits for its root to let go of its input.
const rootGrace = time.Minute

// freeOutputs lets executors go of all that a job that has ended had kept there, however it ended (S41, S44): as one message for the whole job, so
// that no clean-up takes another's place (T9). A root that still reads, because it was cancelled and has not noticed, is waited for (S43, T6).
func (s *Server) freeOutputs(j *job) {
	if j.located() != nil { // in its time, with the rows (S42)
		return
	}
	if !j.stored.Load() || s.ctx.Err() != nil || mutant.On("scheduler/nothing-freed") { // a scheduler that stops leaves them to its successor
		return
	}
	if !j.root.running() || mutant.On("scheduler/freed-under-its-root") {
		s.pool.FreeJob(j.id)
		return
	}
	s.spawn(func() {
		limit := time.NewTimer(rootGrace)
		defer limit.Stop()
		select {
		case <-j.root.ended:
		case <-limit.C:
		case <-s.ctx.Done():
			return
		}
		s.pool.FreeJob(j.id)
	})
}
