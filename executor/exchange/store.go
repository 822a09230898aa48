package exchange

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	executorv1 "github.com/signet-io/signet/api/executor/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/flightrows"
)

// Store holds the outputs of attempts that have ended. It is safe for concurrent use.
type Store struct {
	dir     string
	mu      sync.Mutex
	outputs map[string]*output // by attempt
	changed chan struct{}      // closed and replaced when an output goes
}

type output struct {
	ref    *executorv1.AttemptRef
	ticket [sha256.Size]byte // of the ticket: comparing digests takes the same time whatever was presented
	dir    string
	sizes  map[int32]int64 // by partition
	freed  chan struct{}
	rows   *rows // of a query's result, which clients fetch; nil: an output for tasks
}

// rows is what clients need for a result.
type rows struct {
	secret  [sha256.Size]byte   // of what their tickets have
	readers [][sha256.Size]byte // of tokens of which they show one; none: they need not
}

// NewStore keeps outputs below dir, which it makes with the first of them.
func NewStore(dir string) *Store {
	return &Store{dir: dir, outputs: map[string]*output{}, changed: make(chan struct{})}
}

// fileName is where a partition lies in the directory of its attempt.
func fileName(partition int32) string { return strconv.Itoa(int(partition)) + ".parquet" }

// RowsFile is where a result lies in it, as its only partition.
const RowsFile = "0.arrow"

func (o *output) path(partition int32) string {
	if o.rows != nil {
		return filepath.Join(o.dir, RowsFile)
	}
	return filepath.Join(o.dir, fileName(partition))
}

// Put takes over a directory with the files of an attempt's partitions. An attempt has one output.
func (s *Store) Put(ref *executorv1.AttemptRef, ticket, dir string, partitions []*planv1.ExchangePartition) error {
	return s.put(newOutput(ref, ticket, partitions), dir)
}

// PutRows takes over a directory with the rows of a query, which clients fetch too.
func (s *Store) PutRows(ref *executorv1.AttemptRef, task *planv1.ResultTask, dir string, part *planv1.ExchangePartition) error {
	o := newOutput(ref, task.GetTicket(), []*planv1.ExchangePartition{part})
	o.rows = &rows{secret: sha256.Sum256([]byte(flightrows.Secret(task.GetTicket())))}
	for _, digest := range task.GetReaders() {
		if len(digest) != sha256.Size {
			return fmt.Errorf("digest of a reader's token: it has %d bytes", len(digest))
		}
		o.rows.readers = append(o.rows.readers, [sha256.Size]byte(digest))
	}
	return s.put(o, dir)
}

func newOutput(ref *executorv1.AttemptRef, ticket string, partitions []*planv1.ExchangePartition) *output {
	o := &output{ref: ref, ticket: sha256.Sum256([]byte(ticket)), sizes: map[int32]int64{}, freed: make(chan struct{})}
	for _, p := range partitions {
		o.sizes[p.GetPartition()] = p.GetBytes()
	}
	return o
}

func (s *Store) put(o *output, dir string) error {
	ref := o.ref
	o.dir = filepath.Join(s.dir, ref.GetAttemptId())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outputs[ref.GetAttemptId()] != nil {
		return fmt.Errorf("attempt %s has an output already", ref.GetAttemptId())
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Rename(dir, o.dir); err != nil {
		return err
	}
	s.outputs[ref.GetAttemptId()] = o
	return nil
}

// Freed are outputs that nobody can fetch any more, and whose files are still there.
type Freed []*output

// Take lets go of the outputs of which unwanted says so. What is being read of them breaks off. The caller removes their files.
func (s *Store) Take(unwanted func(*executorv1.AttemptRef) bool) Freed {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone Freed
	for id, o := range s.outputs {
		if unwanted(o.ref) {
			delete(s.outputs, id)
			close(o.freed)
			gone = append(gone, o)
		}
	}
	if len(gone) > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return gone
}

// Attempts lists whose they were.
func (f Freed) Attempts() []*executorv1.AttemptRef {
	out := make([]*executorv1.AttemptRef, len(f))
	for n, o := range f {
		out[n] = o.ref
	}
	return out
}

// Remove removes the files.
func (f Freed) Remove() error {
	var errs []error
	for _, o := range f {
		errs = append(errs, os.RemoveAll(o.dir))
	}
	return errors.Join(errs...)
}

// Outputs lists the attempts whose output is here, in the order of their ids.
func (s *Store) Outputs() []*executorv1.AttemptRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*executorv1.AttemptRef, 0, len(s.outputs))
	for _, o := range s.outputs {
		out = append(out, o.ref)
	}
	slices.SortFunc(out, func(a, b *executorv1.AttemptRef) int { return cmp.Compare(a.GetAttemptId(), b.GetAttemptId()) })
	return out
}

// Held is the number of outputs, and a channel that is closed when it has fallen.
func (s *Store) Held() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.outputs), s.changed
}

// open finds a partition for whoever has the ticket. The channel is closed when the output is freed.
func (s *Store) open(attempt string, partition int32, ticket string) (f *os.File, size int64, freed <-chan struct{}, err error) {
	s.mu.Lock()
	o := s.outputs[attempt]
	s.mu.Unlock()
	given, want := sha256.Sum256([]byte(ticket)), [sha256.Size]byte{}
	known := 0
	if o != nil {
		want, known = o.ticket, 1
	}
	if subtle.ConstantTimeCompare(given[:], want[:])&known == 0 {
		return nil, 0, nil, errUnknown
	}
	size, ok := o.sizes[partition]
	if !ok {
		return nil, 0, nil, errUnknown
	}
	f, err = os.Open(o.path(partition))
	if errors.Is(err, fs.ErrNotExist) { // freed meanwhile
		return nil, 0, nil, errUnknown
	}
	return f, size, o.freed, err
}

// openRows finds the rows of a result for whoever has the secret and one of the readers' tokens. They stay readable when they are freed.
func (s *Store) openRows(attempt, secret string, token [sha256.Size]byte) (*os.File, int64, error) {
	s.mu.Lock()
	o := s.outputs[attempt]
	s.mu.Unlock()
	given, want := sha256.Sum256([]byte(secret)), &rows{}
	known := 0
	if o != nil && o.rows != nil {
		want, known = o.rows, 1
	}
	allowed := 0
	if len(want.readers) == 0 {
		allowed = 1
	}
	for _, r := range want.readers { // all are compared, so that time tells nothing
		allowed |= subtle.ConstantTimeCompare(token[:], r[:])
	}
	if subtle.ConstantTimeCompare(given[:], want.secret[:])&known&allowed == 0 {
		return nil, 0, errUnknown
	}
	f, err := os.Open(o.path(0))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, errUnknown
	}
	return f, o.sizes[0], err
}

// errUnknown is the one answer to everything that is not to be had.
var errUnknown = errors.New("no such output")
