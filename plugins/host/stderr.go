package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxLine   = 16 << 10 // of a line, the rest is dropped
	tailLines = 8        // kept for errors
	tailLine  = 512      // bytes of each
	maxAttrs  = 32
	burst     = 200 // lines at once
	perSecond = 100 // lines after that
)

// logSink takes whatever a plugin writes, line by line, and never fails: foreign bytes become log records, floods become a count. It holds at
// most one line in memory.
type logSink struct {
	logger *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	tail    []string
	tokens  float64
	last    time.Time
	dropped int
}

func newLogSink(logger *slog.Logger) *logSink {
	return &logSink{logger: logger, now: time.Now, tokens: burst}
}

// drain reads r to its end.
func (s *logSink) drain(r io.Reader, stream string) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		s.line(string(line), stream)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// Write takes chunks that go-plugin forwards; lines may be torn, as they are there.
func (s *logSink) Write(p []byte) (int, error) {
	s.drain(strings.NewReader(string(p)), "stdio")
	return len(p), nil
}

func (s *logSink) line(text, stream string) {
	text = clean(strings.TrimRight(text, "\r\n"))
	if text == "" {
		return
	}
	s.remember(text)
	if !s.admit() {
		return
	}
	level, msg, attrs := parse(text)
	s.logger.LogAttrs(context.Background(), level, msg, append(attrs, slog.String("stream", stream))...)
}

// clean makes text safe for a terminal and a log: no control characters, valid UTF-8.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}

func (s *logSink) remember(text string) {
	if len(text) > tailLine {
		n := tailLine
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + "…"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail = append(s.tail, text); len(s.tail) > tailLines {
		s.tail = s.tail[1:]
	}
}

// lastLines are the last words.
func (s *logSink) lastLines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.tail...)
}

// admit is a token bucket. What was dropped is said once the flood ebbs.
func (s *logSink) admit() bool {
	s.mu.Lock()
	now := s.now()
	if !s.last.IsZero() {
		s.tokens = min(burst, s.tokens+now.Sub(s.last).Seconds()*perSecond)
	}
	s.last = now
	if s.tokens < 1 {
		s.dropped++
		s.mu.Unlock()
		return false
	}
	s.tokens--
	dropped := s.dropped
	s.dropped = 0
	s.mu.Unlock()
	if dropped > 0 {
		s.logger.Warn("the plugin floods its output; lines were dropped", "lines", dropped)
	}
	return true
}

// parse understands hclog's and the SDK's JSON and takes everything else as text. No key and no type is taken for granted: go-plugin's own
// parser panics on {"@message":1}.
func parse(text string) (slog.Level, string, []slog.Attr) {
	var m map[string]any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &m) != nil {
		return guess(text), text, nil
	}
	msg, ok := m["@message"].(string)
	if !ok {
		return slog.LevelInfo, text, nil
	}
	name, _ := m["@level"].(string)
	var attrs []slog.Attr
	for k, v := range m {
		if strings.HasPrefix(k, "@") || len(attrs) == maxAttrs {
			continue
		}
		attrs = append(attrs, slog.Any(k, v))
	}
	return level(name), msg, attrs
}

func level(name string) slog.Level {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

func guess(text string) slog.Level {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		return slog.LevelError
	}
	return slog.LevelInfo
}
