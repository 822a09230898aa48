package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Salvage copies every whole record of a journal that no scheduler has open into a new one. The report is about the old one. What the records that
// are missing mean for their jobs is not decided here.
func Salvage(from, to string) (*Report, error) {
	f, release, err := lockRead(from)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", from, err)
	}
	defer release()
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s exists already: name a file that does not", to), err)
	}
	r := &Report{Path: from, Records: map[string]int{}}
	w, err := create(to)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", to, err)
	}
	fail := func(err error) (*Report, error) {
		return nil, errors.Join(err, w.abandon(), os.Remove(to))
	}
	if err := r.read(f, w.put); err != nil {
		return fail(fmt.Errorf("journal %s: %w", from, err))
	}
	if err := w.finish(); err != nil {
		return fail(fmt.Errorf("journal %s: %w", to, err))
	}
	if err := errors.Join(w.db.Close(), syncDir(filepath.Dir(to))); err != nil {
		return nil, fmt.Errorf("journal %s: %w", to, err)
	}
	return r, nil
}

// DropStrays forgets what belongs to no job, and sets every idempotency key to the job that holds it. It returns how many records went.
func (t *Tx) DropStrays() (int, error) {
	holders := map[string]string{} // key → job
	known := map[string]bool{}
	err := t.Jobs(func(j *Job) error {
		known[j.ID] = true
		if j.Key != "" && (j.State == StateOpen || j.State == StateSuccessful) {
			holders[string(idempotencyKey(j.Principal, j.Key))] = j.ID
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	gone := 0
	for _, bucket := range [][]byte{bucketCommits, bucketAccepted, bucketTasks, bucketAttempts, bucketManifests, bucketOutputs} {
		var stray [][]byte
		err := t.scan(bucket, nil, func(k, _ []byte) error {
			if !known[jobOf(k)] {
				stray = append(stray, append([]byte(nil), k...))
			}
			return nil
		})
		for _, k := range stray {
			err = errors.Join(err, t.tx.Bucket(bucket).Delete(k))
		}
		if gone += len(stray); err != nil {
			return gone, err
		}
	}
	if err := drop(t, bucketKeys, nil); err != nil {
		return gone, err
	}
	for k, id := range holders {
		if err := t.store(bucketKeys, []byte(k), []byte(id)); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// jobOf is the job in a record's key; ids have no slash.
func jobOf(key []byte) string {
	for i, c := range key {
		if c == '/' {
			return string(key[:i])
		}
	}
	return string(key)
}

// ForgetPlan makes an open job one that has not been planned.
func (t *Tx) ForgetPlan(j *Job) error {
	j.Write = nil
	return errors.Join(t.DropWork(j.ID), t.tx.Bucket(bucketCommits).Delete([]byte(j.ID)), t.PutJob(j))
}
