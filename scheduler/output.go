package scheduler

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/signet-io/signet/scheduler/plan"
)

// outputKept is how long a SELECT's rows wait for their client.
const outputKept = 10 * time.Minute

// resultsDir holds a directory for each query whose rows are arriving.
func resultsDir(dataDir string) string { return filepath.Join(dataDir, "results") }

// output is a query's result, spooled below the data directory: an Arrow IPC stream. Several attempts may write one each; the
// first complete one wins. It keeps its name until it is freed, and whoever reads opens it: what nobody reads holds no descriptor.
type output struct {
	dir       string
	pipelined bool // rows may be read while they arrive

	mu      sync.Mutex
	file    string // its name; "" until complete
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
	if o.pipelined && o.live == nil && o.file == "" {
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
	// The name goes, and the directory with the last one. What cannot be removed is swept at the next start.
	_ = os.Remove(sp.f.Name())
	_ = os.Remove(sp.o.dir)
}

// complete makes this the job's output, unless another attempt's is there already. What is not, is to be dropped.
func (sp *spool) complete() bool {
	sp.o.mu.Lock()
	defer sp.o.mu.Unlock()
	if sp.o.file != "" || sp.o.at != nil || sp.o.gone || sp.o.spoiled || sp.o.given && sp.o.live != sp {
		return false
	}
	_ = sp.f.Close() // nothing is synced: rows do not outlive the scheduler, which removes them when it starts
	sp.o.file, sp.o.size = sp.f.Name(), sp.size
	sp.o.wake()
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
	var f *os.File
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	var buf []byte
	for off := int64(0); ; {
		o.mu.Lock()
		if o.grown == nil {
			o.grown = make(chan struct{})
		}
		name, size, complete, grown := o.file, o.size, o.file != "", o.grown
		spoiled, gone := o.spoiled || o.given && o.live == nil && o.file == "", o.gone
		if name == "" && o.live != nil {
			name, size = o.live.f.Name(), o.live.size
		}
		var err error
		if f == nil && size > 0 && !gone && !spoiled { // from here on it is the only one whose rows this reader may give
			f, err = os.Open(name) // under the lock: nobody removes it before it is open
		}
		o.given = o.given || f != nil
		o.mu.Unlock()
		switch {
		case gone:
			return errOutputGone
		case spoiled:
			return errSpoiled
		case err != nil:
			return spoolError(err)
		case off < size:
			if buf == nil {
				buf = make([]byte, fetchChunk)
			}
			n, err := f.ReadAt(buf[:min(fetchChunk, size-off)], off)
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

// open gives a file of one's own over the rows; they stay readable there when they are freed.
func (o *output) open() (*os.File, int64, error) {
	if o == nil {
		return nil, 0, errOutputGone
	}
	o.mu.Lock() // free waits
	defer o.mu.Unlock()
	if o.file == "" {
		return nil, 0, errOutputGone
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, 0, spoolError(err)
	}
	return f, o.size, nil
}

func (o *output) read(f func(*os.File, int64) error) error {
	file, size, err := o.open()
	if err != nil {
		return err
	}
	defer file.Close()
	return f(file, size)
}

// spoolError gives what the system refuses its gRPC code: a want of room or of descriptors passes.
func spoolError(err error) error {
	code := codes.Internal
	if wanting(err) {
		code = codes.ResourceExhausted
	}
	return status.Errorf(code, "spooled result: %v", err)
}

// wanting tells whether the system refused something for want of room, of memory or of descriptors.
func wanting(err error) bool {
	for _, want := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT, syscall.ENOMEM} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// free lets go of the rows.
func (o *output) free() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	o.wake()
	o.file = ""
	if o.at != nil {
		o.at.free()
		o.at = nil
	}
	_ = os.RemoveAll(o.dir)
}
