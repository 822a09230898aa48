package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Format is the version of the file that this code writes. It reads every older one.
//
//	1  records without checksums, accepted manifests listed in the commit state
//	2  a checksum behind every record
//	3  the requests of attempts that carry several jobs lie in records of their own
//	4  their objects too, where the commit point is one; large objects lie in files beside the journal
const Format = 4

// Errors that Open, Update and View return, wrapped with the file's name.
var (
	ErrLocked  = errors.New("another scheduler has the journal open")
	ErrNewer   = errors.New("the journal was written by a newer version of signet")
	ErrDamaged = errors.New("the journal is damaged")
	ErrMissing = errors.New("no such record")

	errPanicked = errors.New("an update of the journal panicked")
)

var (
	bucketMeta      = []byte("meta")
	bucketJobs      = []byte("jobs")      // job id → Job
	bucketKeys      = []byte("keys")      // principal NUL key → job id
	bucketCommits   = []byte("commits")   // job id → Commit
	bucketAccepted  = []byte("accepted")  // job/task → Accepted, of a commit state that is not final
	bucketTasks     = []byte("tasks")     // job/stage/task → plan.v1 Task without attempt
	bucketAttempts  = []byte("attempts")  // job/stage/task/attempt → Attempt
	bucketManifests = []byte("manifests") // job/stage/task → Manifest
	bucketOutputs   = []byte("outputs")   // job/stage/task → Output
	bucketDuties    = []byte("duties")    // prefix → Duty
	bucketGroups    = []byte("groups")    // group id → Group
	bucketOutbox    = []byte("outbox")    // place, 8 bytes → Outgoing
	buckets         = [][]byte{
		bucketMeta, bucketJobs, bucketKeys, bucketCommits, bucketAccepted, bucketTasks, bucketAttempts, bucketManifests, bucketOutputs, bucketDuties,
		bucketGroups, bucketOutbox,
	}

	keyFormat = []byte("format") // without a checksum: it says whether there are any
	keyEpoch  = []byte("epoch")
	keyProbe  = []byte("probe") // see Full; there only while it is tried
)

// Journal is an open journal file. It is safe for concurrent use.
type Journal struct {
	db      *bolt.DB
	path    string
	epoch   uint64
	observe func(took time.Duration, err error)

	writing chan struct{} // held by who writes; in place of bbolt's own lock, which a transaction that panics would hold for ever
	queue   queue
	mu      sync.Mutex
	broken  error // the first damage that was found
	full    error // the last write for which there was no room, until one was seen to have it
	probed  time.Time
}

// Options of Open.
type Options struct {
	Wait   time.Duration // for another process to let go
	Logger *slog.Logger
}

// Open opens or creates the journal and begins a new epoch. A file of an older format, or one that is mostly free space, is rewritten first.
func Open(path string, opts Options) (*Journal, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	db, report, err := openChecked(path, opts.Wait)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	if report.Torn {
		opts.Logger.Warn("the newest transaction of the journal is not whole, as after a crash; the journal is that of the one before", "journal", path)
	}
	if report.crowded() || report.Format > 0 && report.Format < Format {
		if db, err = rewrite(db, path, report, opts.Logger); err != nil {
			return nil, fmt.Errorf("journal %s: %w", path, err)
		}
	}
	j := &Journal{db: db, path: path, writing: make(chan struct{}, 1)}
	if err := j.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), db.Close())
	}
	return j, nil
}

func (j *Journal) begin() error {
	return j.write(func(tx *bolt.Tx) error {
		for _, b := range buckets {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		t, meta := &Tx{tx}, tx.Bucket(bucketMeta)
		v, err := t.read(bucketMeta, keyEpoch)
		switch {
		case err != nil && !errors.Is(err, ErrMissing):
			return err
		case len(v) == 8:
			j.epoch = binary.BigEndian.Uint64(v)
		default:
			// In place of a journal that was lost, this one must be ahead of it: executors refuse an epoch older than one they have served.
			j.epoch = uint64(time.Now().UnixMicro()) //nolint:gosec // after 1970
		}
		j.epoch++
		if err := meta.Put(keyFormat, binary.BigEndian.AppendUint64(nil, Format)); err != nil {
			return err
		}
		if err := meta.Delete(keyProbe); err != nil { // a crash has left it
			return err
		}
		return t.store(bucketMeta, keyEpoch, binary.BigEndian.AppendUint64(nil, j.epoch))
	})
}

// Epoch is this incarnation's number: greater than every earlier one, also of a journal that was lost.
func (j *Journal) Epoch() uint64 { return j.epoch }

// Observe has every Update measured. Call it before the journal is shared.
func (j *Journal) Observe(f func(took time.Duration, err error)) { j.observe = f }

// Close lets go of the file.
func (j *Journal) Close() error { return j.db.Close() }

// Err is the damage that was found since the journal was opened; nil if there was none.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

func (j *Journal) write(f func(*bolt.Tx) error) (err error) {
	defer func() { j.noteFull(err) }()
	j.writing <- struct{}{}
	defer func() { <-j.writing }()
	return j.transact(f)
}

// transact runs f in a synced transaction. Called by who writes.
func (j *Journal) transact(f func(*bolt.Tx) error) (err error) {
	if err := j.Err(); err != nil {
		return err
	}
	tx, err := j.db.Begin(true)
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	defer j.guard(tx, &err)()
	if err := f(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return writeError(j.path, err)
	}
	return nil
}

// View runs f on a consistent state. Byte slices inside records are copies.
func (j *Journal) View(f func(*Tx) error) (err error) {
	tx, err := j.db.Begin(false)
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	defer j.guard(tx, &err)()
	err = f(&Tx{tx})
	return errors.Join(err, tx.Rollback())
}

// guard turns what bbolt does on bad pages, which it reads through a memory map, into an error: it panics, or the access faults. Panics of f
// itself go on. Rollback here is the one that touches no page.
func (j *Journal) guard(tx *bolt.Tx, err *error) func() {
	was := debug.SetPanicOnFault(true)
	return func() {
		r := recover()
		debug.SetPanicOnFault(was)
		storage := r != nil && ofStorage(r)
		func() {
			defer func() { _ = recover() }()
			_ = tx.Rollback() // if it has not ended
		}()
		if r != nil {
			if !storage {
				panic(r)
			}
			*err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
		if errors.Is(*err, ErrDamaged) {
			*err = fmt.Errorf("journal %s: %w; %s", j.path, *err, wayOut)
			j.mu.Lock()
			j.broken = cmp.Or(j.broken, *err)
			j.mu.Unlock()
		}
	}
}
