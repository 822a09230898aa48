package broker

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"

	hostv1 "github.com/signet-io/signet/api/host/v1"
)

// Bounds of what a plugin may put into one log line.
const (
	maxLogMessage   = 4 << 10
	maxLogValue     = 1 << 10
	maxLogAttribute = 32
)

// logService serves host.v1.Log.
type logService struct {
	hostv1.UnimplementedLogServer
	b *Broker
}

// Write passes a line on, bounded, under the plugin's name.
func (s *logService) Write(ctx context.Context, r *hostv1.WriteRequest) (*hostv1.WriteResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.live(); err != nil {
		return nil, err
	}
	attrs := []slog.Attr{slog.String("plugin", l.spec.pluginName()), slog.String("job", l.spec.JobID)}
	keys := make([]string, 0, len(r.GetAttributes()))
	for k := range r.GetAttributes() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys[:min(len(keys), maxLogAttribute)] {
		attrs = append(attrs, slog.String("sink."+clip(k, maxLogValue), clip(r.GetAttributes()[k], maxLogValue)))
	}
	s.b.log.LogAttrs(ctx, logLevel(r.GetLevel()), clip(r.GetMessage(), maxLogMessage), attrs...)
	return &hostv1.WriteResponse{}, nil
}

// logLevel reads a level; anything else is information.
func logLevel(s string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// clip shortens text. Line ends are the log handler's to escape.
func clip(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// progressService serves host.v1.Progress.
type progressService struct {
	hostv1.UnimplementedProgressServer
	b *Broker
}

// Update tells the user how far a sink is.
func (s *progressService) Update(ctx context.Context, r *hostv1.UpdateRequest) (*hostv1.UpdateResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.live(); err != nil {
		return nil, err
	}
	f := r.GetFraction()
	if math.IsNaN(f) {
		f = 0
	}
	if s.b.cfg.Progress != nil {
		s.b.cfg.Progress(l.spec.JobID, clip(r.GetPhase(), 64), min(max(f, 0), 1))
	}
	return &hostv1.UpdateResponse{}, nil
}
