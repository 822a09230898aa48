package journal

import (
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	probeEvery = 2 * time.Second
	// probeSize is more than most writes need. A small one may find room among the file's free pages when the next large one does not.
	probeSize = 256 << 10
)

func (j *Journal) noteFull(err error) {
	if errors.Is(err, ErrFull) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.full = err
	}
}

// Full is the last write for which there was no room; nil if there was none, or if there is room again. To know, it writes something, at most every
// 2 s: a scheduler of which nobody asks anything, because it is not ready, would not write otherwise.
func (j *Journal) Full() error {
	j.mu.Lock()
	was := j.full
	due := was != nil && time.Since(j.probed) >= probeEvery
	if due {
		j.probed = time.Now()
	}
	j.mu.Unlock()
	if !due || j.probe() != nil {
		return was
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.full == was { //nolint:errorlint // this very failure, and not one since
		j.full = nil
	}
	return j.full
}

// probe writes a record of some size, and removes it again in a transaction of its own: in one, nothing of it would be written.
func (j *Journal) probe() error {
	err := j.write(func(tx *bolt.Tx) error { return (&Tx{tx}).store(bucketMeta, keyProbe, make([]byte, probeSize)) })
	if err != nil {
		return err
	}
	return j.write(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyProbe) })
}
