package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// outputKept is how long a SELECT's rows wait for their client.
const outputKept = 10 * time.Minute

// resultsDir holds a directory for each query whose rows are arriving.
func resultsDir(dataDir string) string { return filepath.Join(dataDir, "results") }

// output is a query's result, spooled below the data directory: an Arrow IPC stream. Several attempts may write one each; the
// first complete one wins.
type output struct {
	dir string

	mu   sync.Mutex
	file *os.File // nil until complete
	size int64
	gone bool
}

// spool is one attempt's output while it arrives.
type spool struct {
	o    *output
	f    *os.File
	size int64
}

func (o *output) begin(attempt string) (*spool, error) {
	o.mu.Lock() // complete and drop remove the directory when it is empty
	defer o.mu.Unlock()
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(o.dir, attempt+".arrow"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return &spool{o: o, f: f}, nil
}

func (sp *spool) Write(b []byte) (int, error) {
	n, err := sp.f.Write(b)
	sp.size += int64(n)
	return n, err
}

// drop forgets an incomplete output.
func (sp *spool) drop() {
	sp.o.mu.Lock()
	defer sp.o.mu.Unlock()
	_ = sp.f.Close()
	sp.unlink()
}

// unlink takes the name away, and the directory with the last one. What cannot be removed is swept at the next start.
func (sp *spool) unlink() {
	_ = os.Remove(sp.f.Name())
	_ = os.Remove(sp.o.dir)
}

// complete makes this the job's output, unless another attempt's is there already.
func (sp *spool) complete() bool {
	sp.o.mu.Lock()
	defer sp.o.mu.Unlock()
	if sp.o.file != nil || sp.o.gone {
		return false
	}
	sp.o.file, sp.o.size = sp.f, sp.size
	sp.unlink() // the open file is enough, and nothing is left behind after a crash
	return true
}

var errOutputGone = errors.New("the rows are gone")

func (o *output) read(f func(*os.File, int64) error) error {
	o.mu.Lock()
	file, size := o.file, o.size
	o.mu.Unlock()
	if file == nil {
		return errOutputGone
	}
	return f(file, size)
}

// free lets go of the rows.
func (o *output) free() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
	_ = os.RemoveAll(o.dir)
}
