package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler takes secrets out of messages and attributes before next sees them.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	return &handler{next, r}
}

type handler struct {
	next slog.Handler
	r    *Redactor
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, h.r.Text(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return &handler{h.next.WithAttrs(clean), h.r}
}

func (h *handler) WithGroup(name string) slog.Handler { return &handler{h.next.WithGroup(name), h.r} }

func (h *handler) attr(a slog.Attr) slog.Attr {
	if SecretName(a.Key) && a.Value.Kind() == slog.KindString && a.Value.String() != "" {
		return slog.String(a.Key, Mark)
	}
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.r.Text(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = h.attr(g)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	case slog.KindAny:
		return slog.Any(a.Key, h.any(v.Any()))
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// any keeps values as they are unless a secret would be printed with them.
func (h *handler) any(v any) any {
	switch v := v.(type) {
	case error:
		return h.r.Text(v.Error())
	case []string:
		return h.r.Texts(v)
	case interface{ String() string }:
		return h.r.Text(v.String())
	}
	text := fmt.Sprintf("%+v", v)
	if clean := h.r.Text(text); clean != text {
		return clean
	}
	return v
}
