package scheduler

import (
	"context"
	"errors"

	"github.com/signet-io/signet/plugins/host"
)

// sinkTries bounds how often one call is made when the sink's process keeps dying.
const sinkTries = 3

// overCrashes repeats a call during which, or before which, the sink's process died: all jobs share it, so another job's work may have ended it, and a
// start may be killed. f gets a lease, and with it the new process, each time; it must be a call that changes nothing, or whose repetition tells what the first did.
func (s *Server) overCrashes(ctx context.Context, what string, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		if try == sinkTries || !errors.Is(err, host.ErrCrashed) || ctx.Err() != nil {
			return err
		}
		s.log.Warn("sink died during a call, which is made again", "call", what, "try", try, "error", err)
	}
}

// steadyPlugin is plugin, over starts that are killed.
func (s *Server) steadyPlugin(ctx context.Context, t *target) (p *host.Plugin, err error) {
	err = s.overCrashes(ctx, "start", func() error {
		p, err = s.plugin(ctx, t)
		return err
	})
	return p, err
}

// interrupted notes that a call of a statement may have been carried out although it failed, as a restart does.
func (s *Server) interrupted(j *job, err error) error {
	j.again = j.again || errors.Is(err, host.ErrCrashed)
	return err
}
