package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Known tells Repair whether a job is known, and gives the end of one that had ended before this scheduler started: what may be missing
// from its history.
type Known func(job string) (end func() Record, known bool)

// Repair brings the directory in line with the journal after a start: histories of forgotten jobs are removed, and ends that a crash has kept
// from the log are written. It may run beside new jobs. ended are the jobs that had ended before.
func (l *Log) Repair(known Known, ended []string) error {
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	there := map[string]bool{}
	var errs []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !jobID.MatchString(id) || !e.Type().IsRegular() {
			continue // not ours
		}
		there[id] = true
		end, ok := known(id)
		switch {
		case !ok:
			l.Forget(id)
		case end != nil:
			path, err := Path(l.cfg.Dir, id)
			if err == nil {
				ok, err = Ended(path)
			}
			if errs = append(errs, err); err == nil && !ok {
				l.Write(end())
			}
		}
	}
	if len(there) == 0 {
		return errors.Join(errs...) // the log is new here, and knows nothing of what was before
	}
	for _, id := range ended {
		if end, ok := known(id); ok && end != nil && !there[id] {
			l.Write(end())
		}
	}
	return errors.Join(errs...)
}

const tailBlock = 16 << 10

// EndOf is the end record of a history; nil if it has none, or is not there.
func EndOf(path string) (*Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no end is a valid answer
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := lastLine(f)
	if err != nil {
		return nil, fmt.Errorf("event log %s: %w", path, err)
	}
	r := &Record{}
	if json.Unmarshal(line, r) != nil || r.Type != End {
		return nil, nil //nolint:nilnil // no end is a valid answer
	}
	return r, nil
}

// Ended tells whether a history has its end record.
func Ended(path string) (bool, error) {
	r, err := EndOf(path)
	return r != nil, err
}

// lastLine reads backwards from the end.
func lastLine(f *os.File) ([]byte, error) {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	var tail []byte
	for at > 0 {
		n := min(at, tailBlock)
		at -= n
		block := make([]byte, n, n+int64(len(tail)))
		if _, err := f.ReadAt(block, at); err != nil {
			return nil, err
		}
		tail = append(block, tail...)
		if i := bytes.LastIndexByte(bytes.TrimRight(tail, "\n"), '\n'); i >= 0 {
			return tail[i+1:], nil
		}
	}
	return tail, nil
}
