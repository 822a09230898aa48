package scheduler

import (
	"slices"

	"google.golang.org/protobuf/proto"

	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// held notes which executor has an attempt. The pool forgets it with the attempt's end, and people ask later.
func (j *job) held(attempt, executor string) {
	if executor == "" {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.holders == nil {
		j.holders = map[string]string{}
	}
	j.holders[attempt] = executor
}

// taskInfos are the tasks as people see them. holder tells which executor has an attempt now: a job's loop hears of an attempt only when
// it ends.
func (j *job) taskInfos(holder func(attempt string) string) []*schedulerv1.TaskInfo {
	j.mu.Lock()
	attempts := slices.Clone(j.attempts)
	j.mu.Unlock()
	for _, id := range attempts {
		j.held(id, holder(id))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]*schedulerv1.TaskInfo, len(j.tasks))
	for i, t := range j.tasks {
		out[i] = proto.CloneOf(t)
		if name, ok := j.holders[j.attempts[i]]; ok {
			out[i].Executor = name
		}
		switch { // nothing runs any more of a job that has ended
		case !isTerminal(j.state), t.State == "done":
		case j.state == schedulerv1.JobState_JOB_STATE_FAILED && t.Error != "":
			out[i].State = "failed"
		default:
			out[i].State = "cancelled"
		}
	}
	return out
}
