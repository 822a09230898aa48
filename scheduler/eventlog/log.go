package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// Config of a Log. Zero values mean the defaults named.
type Config struct {
	Dir string
	// Queue is how many records wait for the disk before further ones are dropped; 16,384.
	Queue int
	// MaxBytes is the size at which a job's file takes only what is never dropped; 64 MiB.
	MaxBytes int64
	// Redact takes secrets out of text; nil: none.
	Redact func(string) string
	Logger *slog.Logger
	// RetryAfter is how long an end that could not be written waits; 1 s.
	RetryAfter time.Duration

	open func(path string) (file, error) // for tests: disks that are slow or full
}

// file is what a Log needs of a file.
type file interface {
	Write(p []byte) (int, error)
	Close() error
}

// Stats count since the start.
type Stats struct {
	Written int64 // records
	Dropped int64 // records that did not fit, or met an error
	Queued  int   // waiting now
}

// Log writes the histories of all jobs. Its methods never block on the disk and may be called from anywhere.
type Log struct {
	cfg  Config
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	queue   []item
	waiting int // droppable records queued or being written
	busy    bool
	idle    chan struct{} // closed and replaced whenever the queue has been worked off
	stats   Stats
	lost    map[string]int // dropped records by job
	closed  bool
	stop    chan struct{}

	files map[string]*open // the writer's own
}

// item is a record to write, or a job to forget.
type item struct {
	rec    *Record
	forget string
}

const (
	defaultQueue = 16_384
	defaultBytes = 64 << 20
	maxOpen      = 64
)

// New starts a Log in a directory, which is made if it is missing.
func New(cfg Config) (*Log, error) {
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultBytes
	}
	if cfg.RetryAfter <= 0 {
		cfg.RetryAfter = time.Second
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.open == nil {
		cfg.open = openFile
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	l := &Log{
		cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), stop: make(chan struct{}), idle: make(chan struct{}),
		lost: map[string]int{}, files: map[string]*open{},
	}
	go l.run()
	return l, nil
}

// Write queues a record, or drops it. The caller must not change what it refers to afterwards.
func (l *Log) Write(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if !r.kept() {
		if l.waiting >= l.cfg.Queue {
			l.stats.Dropped++
			l.lost[r.Job]++
			return
		}
		l.waiting++
	}
	l.push(item{rec: &r})
}

// Forget removes the histories of jobs that are not kept any longer.
func (l *Log) Forget(jobs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range jobs {
		if !l.closed {
			l.push(item{forget: id})
		}
	}
}

// push is called with mu held.
func (l *Log) push(i item) {
	l.queue = append(l.queue, i)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stats tells what became of the records so far.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Queued = len(l.queue)
	return s
}

// Flush waits until everything queued so far is written or given up, or until ctx ends.
func (l *Log) Flush(ctx context.Context) error {
	for {
		l.mu.Lock()
		idle, rest := l.idle, len(l.queue) > 0 || l.busy
		l.mu.Unlock()
		if !rest {
			return nil
		}
		select {
		case <-idle:
		case <-l.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close writes what is queued, as long as ctx allows, and ends the Log.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	err := l.Flush(ctx)
	close(l.stop)
	select {
	case <-l.done:
	case <-ctx.Done(): // a disk that hangs; the process ends with it
	}
	return err
}

// Dir is where the histories are.
func (l *Log) Dir() string { return l.cfg.Dir }

var jobID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// ErrJobID is returned for a name that cannot be a job's.
var ErrJobID = errors.New("not a job's id")

// Path is the file of a job in an event log's directory.
func Path(dir, job string) (string, error) {
	if !jobID.MatchString(job) {
		return "", fmt.Errorf("%w: %q", ErrJobID, job)
	}
	return filepath.Join(dir, job+".jsonl"), nil
}

func marshal(r *Record, redact func(string) string) ([]byte, error) {
	r.redact(redact)
	b, err := json.Marshal(r)
	return append(b, '\n'), err
}
