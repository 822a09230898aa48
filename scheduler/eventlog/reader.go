package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine bounds a line that is read: a plan is far smaller.
const maxLine = 64 << 20

// History is what a job's file says.
type History struct {
	Records []Record `json:"events"`
	Skipped int      `json:"skipped,omitempty"` // lines that are no records: cut by a crash, or of another format
}

// ErrNoHistory is returned for a file in which no line is a record.
var ErrNoHistory = errors.New("holds no job's history")

// ReadFile reads a job's file.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// Read reads a history. Lines that are no records are counted and skipped.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	for s.Scan() {
		if len(s.Bytes()) == 0 {
			continue
		}
		var rec Record
		if err := json.Unmarshal(s.Bytes(), &rec); err != nil || rec.Type == "" || rec.Job == "" {
			h.Skipped++
			continue
		}
		h.Records = append(h.Records, rec)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(h.Records) == 0 {
		return nil, ErrNoHistory
	}
	return h, nil
}

// last is the newest record of a type; nil if there is none.
func (h *History) last(kind string) *Record {
	for i := len(h.Records) - 1; i >= 0; i-- {
		if h.Records[i].Type == kind {
			return &h.Records[i]
		}
	}
	return nil
}

// Submitted is the job's submission; nil if the record is missing.
func (h *History) Submitted() *Record { return h.last(Submitted) }

// Planned is the newest plan; nil if the job was never planned.
func (h *History) Planned() *Record { return h.last(Planned) }

// End is how the job ended; nil while it runs.
func (h *History) End() *Record { return h.last(End) }

// Plan is the job's plan as EXPLAIN prints it.
func (h *History) Plan() string {
	if p := h.Planned(); p != nil {
		return p.Plan
	}
	if e := h.End(); e != nil {
		return e.Plan
	}
	return ""
}

// Stages are the job's stages: as they ran if the job has ended, as they were planned before.
func (h *History) Stages() []StageRecord {
	if e := h.End(); e != nil && len(e.Stages) > 0 {
		return e.Stages
	}
	if p := h.Planned(); p != nil {
		return p.Stages
	}
	return nil
}
