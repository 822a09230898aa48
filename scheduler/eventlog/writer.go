package eventlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// maxBuffer is how much of one job is written at a time, in bytes.
const maxBuffer = 64 << 10

// open is a file that is being written, and what goes there next.
type open struct {
	job  string
	f    file
	size int64
	used time.Time
	buf  []byte
	recs []buffered
}

// buffered is a record whose line ends at a place in the buffer.
type buffered struct {
	it  item
	end int
}

// disk appends to a file whose last line may be half of one.
type disk struct{ *os.File }

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return disk{f}, endLine(f)
}

// endLine ends a line that a crash has cut, so that the next one can be read.
func endLine(f *os.File) error {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, st.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

// run is the only goroutine that touches files.
func (l *Log) run() {
	defer close(l.done)
	defer l.closeFiles()
	for {
		batch := l.take()
		if batch == nil {
			select {
			case <-l.wake:
			case <-l.stop:
				return
			}
			continue
		}
		if again := l.work(batch); len(again) > 0 && !l.retryLater(again) {
			return
		}
	}
}

// take is all that is queued; nil if nothing is.
func (l *Log) take() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := l.queue
	l.queue = nil
	l.busy = len(batch) > 0
	if !l.busy {
		close(l.idle)
		l.idle = make(chan struct{})
	}
	return batch
}

// round is the work on one batch: what has to be tried again, and the jobs of it, with which all that came later waits.
type round struct {
	again []item
	held  map[string]bool
}

// work writes a batch and returns the items that must be tried again.
func (l *Log) work(batch []item) []item {
	r := &round{held: map[string]bool{}}
	for _, it := range batch {
		switch {
		case it.rec == nil:
			l.remove(r, it.forget)
		case r.held[it.rec.Job]:
			r.again = append(r.again, it)
		default:
			if err := l.add(r, it); err != nil {
				l.failed(r, it, err)
			}
		}
	}
	for _, o := range l.files {
		l.flush(r, o)
	}
	return r.again
}

// failed keeps what must not be lost.
func (l *Log) failed(r *round, it item, err error) {
	if it.rec.kept() && !errors.Is(err, ErrJobID) {
		r.again, r.held[it.rec.Job] = append(r.again, it), true
		l.cfg.Logger.Warn("event log cannot be written; what must not be lost is tried again", "job", it.rec.Job, "error", err)
		return
	}
	l.count(it.rec, false)
}

func (l *Log) count(r *Record, written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.kept() {
		l.waiting--
	}
	if written {
		l.stats.Written++
		return
	}
	l.stats.Dropped++
	l.lost[r.Job]++
}

// retryLater puts items in front of the queue after a while; false if the log is being closed.
func (l *Log) retryLater(items []item) bool {
	t := time.NewTimer(l.cfg.RetryAfter)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.stop:
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(items, l.queue...)
	return true
}

var errFull = errors.New("the job's history has reached its largest size")

// add puts a record's line behind those of its job. The end of a job is written at once.
func (l *Log) add(r *round, it item) error {
	rec := it.rec
	o, err := l.file(r, rec.Job)
	if err != nil {
		return err
	}
	if o.size+int64(len(o.buf)) >= l.cfg.MaxBytes && !rec.kept() {
		return errFull
	}
	if rec.Type == End {
		l.mu.Lock()
		rec.Dropped = l.lost[rec.Job]
		l.mu.Unlock()
	}
	line, err := marshal(rec, l.cfg.Redact)
	if err != nil {
		return err
	}
	o.buf = append(o.buf, line...)
	o.recs = append(o.recs, buffered{it, len(o.buf)})
	if rec.Type == End || len(o.buf) >= maxBuffer {
		l.flush(r, o)
	}
	return nil
}

// flush writes the buffered lines of a file. After an error the file is closed: opened anew, it gets an end to its broken line.
func (l *Log) flush(r *round, o *open) {
	if len(o.buf) == 0 {
		return
	}
	n, err := o.f.Write(o.buf)
	o.size += int64(n)
	ended := false
	for _, b := range o.recs {
		if err == nil || b.end <= n {
			ended = ended || b.it.rec.Type == End
			l.count(b.it.rec, true)
		} else {
			l.failed(r, b.it, err)
		}
	}
	o.buf, o.recs = o.buf[:0], o.recs[:0]
	if err != nil || ended {
		l.closeFile(o.job)
	}
	if ended {
		l.mu.Lock()
		delete(l.lost, o.job)
		l.mu.Unlock()
	}
}

// file is the job's open file. At most maxOpen are open; the one unused for longest is closed.
func (l *Log) file(r *round, job string) (*open, error) {
	if o := l.files[job]; o != nil {
		o.used = time.Now()
		return o, nil
	}
	path, err := Path(l.cfg.Dir, job)
	if err != nil {
		return nil, err
	}
	if len(l.files) >= maxOpen {
		oldest := ""
		for id, o := range l.files {
			if oldest == "" || o.used.Before(l.files[oldest].used) {
				oldest = id
			}
		}
		l.flush(r, l.files[oldest])
		l.closeFile(oldest)
	}
	f, err := l.cfg.open(path)
	if err != nil {
		return nil, err
	}
	o := &open{job: job, f: f, used: time.Now()}
	if s, ok := f.(io.Seeker); ok {
		if o.size, err = s.Seek(0, io.SeekEnd); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	l.files[job] = o
	return o, nil
}

func (l *Log) closeFile(job string) {
	if o := l.files[job]; o != nil {
		if err := o.f.Close(); err != nil {
			l.cfg.Logger.Warn("event log", "job", job, "error", err)
		}
		delete(l.files, job)
	}
}

func (l *Log) closeFiles() {
	for job := range l.files {
		l.closeFile(job)
	}
}

func (l *Log) remove(r *round, job string) {
	if o := l.files[job]; o != nil {
		l.flush(r, o)
		l.closeFile(job)
	}
	l.mu.Lock()
	delete(l.lost, job)
	l.mu.Unlock()
	path, err := Path(l.cfg.Dir, job)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.cfg.Logger.Warn("cannot remove a job's history", "job", job, "error", err)
	}
}
