package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Format is the version of the file that this code writes. It reads every older one.
const Format = 1

// Errors that Open returns, wrapped with the file's name.
var (
	ErrLocked  = errors.New("another scheduler has the journal open")
	ErrNewer   = errors.New("the journal was written by a newer version")
	ErrDamaged = errors.New("the journal is damaged")
	ErrMissing = errors.New("no such record")
)

var (
	bucketMeta      = []byte("meta")
	bucketJobs      = []byte("jobs")      // job id → Job
	bucketKeys      = []byte("keys")      // principal NUL key → job id
	bucketCommits   = []byte("commits")   // job id → Commit
	bucketTasks     = []byte("tasks")     // job/stage/task → plan.v1 Task without attempt
	bucketAttempts  = []byte("attempts")  // job/stage/task/attempt → Attempt
	bucketManifests = []byte("manifests") // job/stage/task → Manifest
	bucketOutputs   = []byte("outputs")   // job/stage/task → Output
	bucketDuties    = []byte("duties")    // prefix → Duty
	buckets         = [][]byte{bucketMeta, bucketJobs, bucketKeys, bucketCommits, bucketTasks, bucketAttempts, bucketManifests, bucketOutputs, bucketDuties}

	keyFormat = []byte("format")
	keyEpoch  = []byte("epoch")
)

// Journal is an open journal file. It is safe for concurrent use.
type Journal struct {
	db      *bolt.DB
	epoch   uint64
	observe func(took time.Duration, err error)
}

// Open opens or creates the journal and begins a new epoch. It waits at most wait for another process to let go.
func Open(path string, wait time.Duration) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	db, err := openFile(path, wait)
	if err != nil {
		return nil, err
	}
	j := &Journal{db: db}
	if err := j.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), db.Close())
	}
	return j, nil
}

func openFile(path string, wait time.Duration) (db *bolt.DB, err error) {
	defer func() {
		if r := recover(); r != nil { // bbolt panics on some kinds of damage
			err = fmt.Errorf("journal %s: %w: %v; move the file away to start anew: tables keep their rows and markers, running jobs are forgotten", path, ErrDamaged, r)
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: max(wait, time.Millisecond), FreelistType: bolt.FreelistMapType, NoFreelistSync: true})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("journal %s: %w", path, ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("journal %s: %w: %w; move the file away to start anew: tables keep their rows and markers, running jobs are forgotten", path, ErrDamaged, err)
	}
	return nil, fmt.Errorf("journal %s: %w", path, err)
}

func (j *Journal) begin() error {
	return j.db.Update(func(tx *bolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get(keyFormat); v != nil && binary.BigEndian.Uint64(v) > Format {
			return fmt.Errorf("%w (format %d, this is %d)", ErrNewer, binary.BigEndian.Uint64(v), Format)
		}
		if v := meta.Get(keyEpoch); len(v) == 8 {
			j.epoch = binary.BigEndian.Uint64(v)
		} else {
			// In place of a journal that was lost, this one must be ahead of it: executors refuse an epoch older than one they have served.
			j.epoch = uint64(time.Now().UnixMicro()) //nolint:gosec // after 1970
		}
		j.epoch++
		if err := meta.Put(keyFormat, binary.BigEndian.AppendUint64(nil, Format)); err != nil {
			return err
		}
		return meta.Put(keyEpoch, binary.BigEndian.AppendUint64(nil, j.epoch))
	})
}

// Epoch is this incarnation's number: greater than every earlier one, also of a journal that was lost.
func (j *Journal) Epoch() uint64 { return j.epoch }

// Observe has every Update measured. Call it before the journal is shared.
func (j *Journal) Observe(f func(took time.Duration, err error)) { j.observe = f }

// Close lets go of the file.
func (j *Journal) Close() error { return j.db.Close() }

// Update runs f in one synced transaction.
func (j *Journal) Update(f func(*Tx) error) (err error) {
	if j.observe != nil {
		defer func(begun time.Time) { j.observe(time.Since(begun), err) }(time.Now())
	}
	return j.db.Update(func(tx *bolt.Tx) error { return f(&Tx{tx}) })
}

// View runs f on a consistent state. Byte slices inside records are copies.
func (j *Journal) View(f func(*Tx) error) error {
	return j.db.View(func(tx *bolt.Tx) error { return f(&Tx{tx}) })
}

// Tx gives access to the records inside Update or View.
type Tx struct{ tx *bolt.Tx }

func put(t *Tx, bucket, key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.tx.Bucket(bucket).Put(key, b)
}

func get[T any](t *Tx, bucket, key []byte) (*T, error) {
	b := t.tx.Bucket(bucket).Get(key)
	if b == nil {
		return nil, ErrMissing
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%w: %s record %q: %w", ErrDamaged, bucket, key, err)
	}
	return v, nil
}

// each visits the records whose keys begin with prefix, in key order.
func each[T any](t *Tx, bucket, prefix []byte, f func(*T) error) error {
	c := t.tx.Bucket(bucket).Cursor()
	for k, b := c.Seek(prefix); k != nil && hasPrefix(k, prefix); k, b = c.Next() {
		v := new(T)
		if err := json.Unmarshal(b, v); err != nil {
			return fmt.Errorf("%w: %s record %q: %w", ErrDamaged, bucket, k, err)
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func hasPrefix(k, p []byte) bool { return len(k) >= len(p) && string(k[:len(p)]) == string(p) }

// drop removes the records whose keys begin with prefix.
func drop(t *Tx, bucket, prefix []byte) error {
	c := t.tx.Bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); k != nil && hasPrefix(k, prefix); k, _ = c.Seek(prefix) {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}
