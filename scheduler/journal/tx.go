package journal

import (
	"bytes"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

func taskKey(job string, stage, task int32) []byte {
	return fmt.Appendf(nil, "%s/%06d/%08d", job, stage, task)
}

func jobPrefix(job string) []byte { return []byte(job + "/") }

// PutJob writes a job.
func (t *Tx) PutJob(j *Job) error { return put(t, bucketJobs, []byte(j.ID), j) }

// Job reads a job; ErrMissing.
func (t *Tx) Job(id string) (*Job, error) { return get[Job](t, bucketJobs, []byte(id)) }

// Jobs visits all jobs in the order of their submission (ids are time-ordered).
func (t *Tx) Jobs(f func(*Job) error) error { return each(t, bucketJobs, nil, f) }

// DropJob forgets a job and all that belongs to it, its key included.
func (t *Tx) DropJob(j *Job) error {
	if err := t.tx.Bucket(bucketJobs).Delete([]byte(j.ID)); err != nil {
		return err
	}
	if err := t.FreeKey(j.Principal, j.Key, j.ID); err != nil {
		return err
	}
	return errors.Join(t.DropWork(j.ID), t.tx.Bucket(bucketCommits).Delete([]byte(j.ID)))
}

// DropWork forgets what only a running job needs: its tasks, attempts, outputs and manifests, and the list of those accepted, which a final commit
// state has in it.
func (t *Tx) DropWork(job string) error {
	p := jobPrefix(job)
	return errors.Join(drop(t, bucketAccepted, p), drop(t, bucketTasks, p), drop(t, bucketAttempts, p), drop(t, bucketManifests, p), drop(t, bucketOutputs, p))
}

func idempotencyKey(principal, key string) []byte {
	return bytes.Join([][]byte{[]byte(principal), []byte(key)}, []byte{0})
}

// KeyJob is the job that holds an idempotency key; "" if none.
func (t *Tx) KeyJob(principal, key string) (string, error) {
	b, err := t.read(bucketKeys, idempotencyKey(principal, key))
	if errors.Is(err, ErrMissing) {
		return "", nil
	}
	return string(b), err
}

// TakeKey binds a key to a job.
func (t *Tx) TakeKey(principal, key, job string) error {
	return t.store(bucketKeys, idempotencyKey(principal, key), []byte(job))
}

// FreeKey releases a key, if that job still holds it.
func (t *Tx) FreeKey(principal, key, job string) error {
	if key == "" {
		return nil
	}
	if holder, err := t.KeyJob(principal, key); err != nil || holder != job {
		return err
	}
	return t.tx.Bucket(bucketKeys).Delete(idempotencyKey(principal, key))
}

// PutCommit writes a job's commit state.
func (t *Tx) PutCommit(c *Commit) error { return put(t, bucketCommits, []byte(c.Job), c) }

// Commit reads a job's commit state; ErrMissing.
func (t *Tx) Commit(job string) (*Commit, error) { return get[Commit](t, bucketCommits, []byte(job)) }

// PutAccepted adds to the list of accepted manifests of a commit state that is not final.
func (t *Tx) PutAccepted(a *Accepted) error {
	return put(t, bucketAccepted, fmt.Appendf(nil, "%s/%08d", a.Job, a.Task), a)
}

// EachAccepted visits the list in task order.
func (t *Tx) EachAccepted(job string, f func(*Accepted) error) error {
	return each(t, bucketAccepted, jobPrefix(job), f)
}

// PutTask writes a planned task; its attempt fields are empty.
func (t *Tx) PutTask(task *planv1.Task) error {
	b, err := proto.Marshal(task)
	if err != nil {
		return err
	}
	return t.store(bucketTasks, taskKey(task.JobId, task.Stage, task.Task), b)
}

// Tasks reads a job's planned tasks in order.
func (t *Tx) Tasks(job string) ([]*planv1.Task, error) {
	var out []*planv1.Task
	err := t.scan(bucketTasks, jobPrefix(job), func(k, b []byte) error {
		task := &planv1.Task{}
		if err := proto.Unmarshal(b, task); err != nil {
			return fmt.Errorf("%w: task record %q: %w", ErrDamaged, k, err)
		}
		out = append(out, task)
		return nil
	})
	return out, err
}

// PutAttempt writes an attempt.
func (t *Tx) PutAttempt(a *Attempt) error {
	return put(t, bucketAttempts, append(taskKey(a.Job, a.Stage, a.Task), "/"+a.ID...), a)
}

// Attempts visits a job's attempts.
func (t *Tx) Attempts(job string, f func(*Attempt) error) error {
	return each(t, bucketAttempts, jobPrefix(job), f)
}

// PutOutput writes what a task's winner keeps on its executor, in place of what an earlier winner kept.
func (t *Tx) PutOutput(o *Output) error {
	return put(t, bucketOutputs, taskKey(o.Job, o.Stage, o.Task), o)
}

// Outputs visits a job's outputs in task order.
func (t *Tx) Outputs(job string, f func(*Output) error) error {
	return each(t, bucketOutputs, jobPrefix(job), f)
}

// DropOutputs forgets a job's outputs.
func (t *Tx) DropOutputs(job string) error { return drop(t, bucketOutputs, jobPrefix(job)) }

// PutManifest writes an accepted task manifest.
func (t *Tx) PutManifest(m *Manifest) error {
	return put(t, bucketManifests, taskKey(m.Job, m.Stage, m.Task), m)
}

// Manifests visits a job's accepted manifests in task order.
func (t *Tx) Manifests(job string, f func(*Manifest) error) error {
	return each(t, bucketManifests, jobPrefix(job), f)
}

// PutDuty writes a clean-up duty.
func (t *Tx) PutDuty(d *Duty) error { return put(t, bucketDuties, []byte(d.Prefix), d) }

// DropDuty ends a clean-up duty.
func (t *Tx) DropDuty(prefix string) error { return t.tx.Bucket(bucketDuties).Delete([]byte(prefix)) }

// Duties visits all clean-up duties.
func (t *Tx) Duties(f func(*Duty) error) error { return each(t, bucketDuties, nil, f) }

// PutGroup writes the seal of a group.
func (t *Tx) PutGroup(g *Group) error { return put(t, bucketGroups, []byte(g.ID), g) }

// Group reads the seal of a group; ErrMissing.
func (t *Tx) Group(id string) (*Group, error) { return get[Group](t, bucketGroups, []byte(id)) }

// Groups visits all seals of groups.
func (t *Tx) Groups(f func(*Group) error) error { return each(t, bucketGroups, nil, f) }

// DropGroup forgets the seal of a group.
func (t *Tx) DropGroup(id string) error { return t.tx.Bucket(bucketGroups).Delete([]byte(id)) }
