package sdk

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// stderr is the process's own, kept because go-plugin exchanges os.Stderr for a stream that dies with the connection: the last words of a
// crash would be lost.
var stderr io.Writer = os.Stderr

// NewHandler is a slog handler that writes what the host parses: one JSON object a line with @level, @message and @timestamp. Serve installs
// it as the default.
func NewHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewJSONHandler(&lineWriter{w: w}, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		switch a.Key {
		case slog.TimeKey:
			return slog.String("@timestamp", a.Value.Time().UTC().Format(time.RFC3339Nano))
		case slog.LevelKey:
			return slog.String("@level", levelName(a.Value))
		case slog.MessageKey:
			return slog.String("@message", a.Value.String())
		}
		return a
	}})
}

func levelName(v slog.Value) string {
	l, _ := v.Any().(slog.Level)
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}

// maxLine is what the host keeps of a line; a longer one would be cut into something that is no JSON.
const maxLine = 15 << 10

// lineWriter keeps a line whole: one write, shortened where it is too long.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) > maxLine {
		return len(p), l.shortened(p)
	}
	return l.w.Write(p)
}

func (l *lineWriter) shortened(p []byte) error {
	var m map[string]any
	if err := json.Unmarshal(p, &m); err != nil {
		return err
	}
	for k, v := range m {
		if s, ok := v.(string); ok && len(s) > 2<<10 {
			m[k] = s[:2<<10] + "…"
		}
	}
	b, err := json.Marshal(m)
	if err != nil || len(b) > maxLine {
		b, err = json.Marshal(map[string]any{"@level": m["@level"], "@message": m["@message"], "@timestamp": m["@timestamp"], "cut": true})
	}
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	return err
}

var ownLog = sync.OnceValue(func() *slog.Logger { return slog.New(NewHandler(stderr, slog.LevelDebug)) })

// log is the SDK's own logger.
func log() *slog.Logger { return ownLog() }
