package dispatch

import (
	executorv1 "github.com/signet-io/signet/api/executor/v1"
	"github.com/signet-io/signet/internal/mutant"
)

// Address is where an executor serves what it keeps; "" if it is not known.
func (p *Pool) Address(executor string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.executors[executor]; e != nil {
		return e.info.ExchangeAddress
	}
	return ""
}

// Free lets an executor go of outputs of a job: of these attempts, or of all. An executor that is not connected is told when it comes back
// with them: Joined names what it keeps.
func (p *Pool) Free(executor, job string, attempts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.executors[executor]; e != nil && e.session != nil {
		e.session.send(freeOutputs(job, attempts))
	}
}

// FreeJob lets every executor go of all outputs of a job.
func (p *Pool) FreeJob(job string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.executors {
		if e.session != nil {
			e.session.send(freeOutputs(job, nil))
			if mutant.On("dispatch/one-executor-cleaned") {
				return
			}
		}
	}
}

func freeOutputs(job string, attempts []string) *executorv1.SessionResponse {
	return &executorv1.SessionResponse{Message: &executorv1.SessionResponse_Free{Free: &executorv1.FreeOutputs{JobId: job, AttemptIds: attempts}}}
}
