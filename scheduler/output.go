package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/signet-io/signet/scheduler/plan"
)

// outputKept is how long a SELECT's rows wait for their client.
const outputKept = 10 * time.Minute

// resultsDir holds a directory for each query whose rows are arriving.
func resultsDir(dataDir string) string { return filepath.Join(dataDir, "results") }

// output is a query's result, spooled below the data directory: an Arrow IPC stream. Several attempts may write one each; the
// first complete one wins.
type output struct {
	dir       string
	pipelined bool // rows may be read while they arrive

	mu      sync.Mutex
	file    *os.File // nil until complete
	size    int64
	gone    bool
	at      *located      // complete, and on an executor
	live    *spool        // pipelined: the attempt whose rows are read as they come
	given   bool          // some of them have been read
	spoiled bool          // and that attempt failed
	grown   chan struct{} // closed and replaced when live or file changes
}

// spool is one attempt's output while it arrives.
type spool struct {
	o    *output
	f    *os.File
	size int64 // changed under the output's lock
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
	sp := &spool{o: o, f: f}
	if o.pipelined && o.live == nil && o.file == nil {
		o.live = sp
		o.wake()
	}
	return sp, nil
}

func (sp *spool) Write(b []byte) (int, error) {
	n, err := sp.f.Write(b)
	sp.o.mu.Lock()
	defer sp.o.mu.Unlock()
	sp.size += int64(n)
	if sp.o.live == sp {
		sp.o.wake()
	}
	return n, err
}

// drop forgets an incomplete output. Rows of it that were read cannot be taken back: nothing may follow them (S73).
func (sp *spool) drop() {
	sp.o.mu.Lock()
	defer sp.o.mu.Unlock()
	if sp.o.live == sp {
		sp.o.live, sp.o.spoiled = nil, sp.o.given
		sp.o.wake()
	}
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
	if sp.o.file != nil || sp.o.at != nil || sp.o.gone || sp.o.spoiled || sp.o.given && sp.o.live != sp {
		return false
	}
	sp.o.file, sp.o.size = sp.f, sp.size
	sp.o.wake()
	sp.unlink() // the open file is enough, and nothing is left behind after a crash
	return true
}

// wake tells readers that something has changed. Called with mu held.
func (o *output) wake() {
	if o.grown != nil {
		close(o.grown)
	}
	o.grown = make(chan struct{})
}

var errSpoiled = errors.New("rows of a task that failed had been handed out already")

// follow gives the rows of a pipelined query as they come, each byte once, until they are complete or done is closed.
func (o *output) follow(done <-chan struct{}, give func([]byte) error) error {
	buf := make([]byte, followChunk)
	for off := int64(0); ; {
		o.mu.Lock()
		if o.grown == nil {
			o.grown = make(chan struct{})
		}
		f, size, complete, grown := o.file, o.size, o.file != nil, o.grown
		spoiled, gone := o.spoiled || o.given && o.live == nil && o.file == nil, o.gone
		if f == nil && o.live != nil {
			f, size = o.live.f, o.live.size
		}
		o.given = o.given || f != nil && size > 0
		o.mu.Unlock()
		switch {
		case gone:
			return errOutputGone
		case spoiled:
			return errSpoiled
		case f != nil && off < size:
			n, err := f.ReadAt(buf[:min(followChunk, size-off)], off)
			if n == 0 {
				return fmt.Errorf("spooled result: %w", err)
			}
			if err := give(buf[:n]); err != nil {
				return err
			}
			off += int64(n)
			continue
		case complete:
			return nil
		}
		select {
		case <-grown:
		case <-done:
			return errOutputGone
		}
	}
}

const followChunk = 1 << 20

// isSpoiled tells whether rows were handed out that the query does not have.
func (o *output) isSpoiled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spoiled
}

// spoiled is why a pipelined job cannot go on, if it cannot.
func (j *job) spoiled() error {
	if j.output == nil || !j.output.isSpoiled() {
		return nil
	}
	return fail(codeInternal, "run it again without "+plan.SettingPipelined, "%w", errSpoiled)
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
	o.wake()
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
	if o.at != nil {
		o.at.free()
		o.at = nil
	}
	_ = os.RemoveAll(o.dir)
}
