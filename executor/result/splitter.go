package result

import (
	"fmt"

	"github.com/signet-io/signet/executor/duckdb"
)

// splitter is the writer below the Arrow stream: it cuts what it gets into pieces of MaxChunk and counts it against the cap.
type splitter struct {
	max   int64
	total int64
	buf   []byte
	send  func([]byte) error
	err   error
}

// Write never keeps more than MaxChunk: a row with a string of many megabytes passes through in pieces.
func (s *splitter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.total += int64(len(p)); s.max > 0 && s.total > s.max {
		s.err = &duckdb.UserError{
			Limit:   true,
			Message: fmt.Sprintf("the result is larger than %d bytes (%d so far)", s.max, s.total),
			Hint:    "raise limits.max_result_bytes in the scheduler's configuration, add a LIMIT, or write the rows to a table with CREATE TABLE ... AS",
		}
		return 0, s.err
	}
	n := len(p)
	for len(p) > 0 {
		if s.buf == nil {
			s.buf = make([]byte, 0, MaxChunk)
		}
		k := min(len(p), MaxChunk-len(s.buf))
		s.buf, p = append(s.buf, p[:k]...), p[k:]
		if len(s.buf) == MaxChunk {
			if err := s.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush sends what is buffered.
func (s *splitter) flush() error {
	if s.err != nil || len(s.buf) == 0 {
		return s.err
	}
	s.err = s.send(s.buf)
	s.buf = s.buf[:0]
	return s.err
}

// failed prefers the splitter's own error to what the Arrow writer made of it.
func (s *splitter) failed(err error) error {
	if s.err != nil {
		return s.err
	}
	return err
}
