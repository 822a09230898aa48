package signed

import (
	"context"
	"io"
	"sync/atomic"
)

// Traffic counts the bytes of bodies on their way to and from stores, of requests whose context is Counted. Safe for concurrent use.
type Traffic struct {
	Received, Sent atomic.Int64
	Copied         atomic.Int64 // by the store itself
}

type trafficKey struct{}

// Counted makes requests count their bytes.
func Counted(ctx context.Context, t *Traffic) context.Context {
	return context.WithValue(ctx, trafficKey{}, t)
}

// TrafficOf is what counts the bytes of a context; never nil.
func TrafficOf(ctx context.Context) *Traffic {
	if t, ok := ctx.Value(trafficKey{}).(*Traffic); ok {
		return t
	}
	return &Traffic{}
}

// metered counts what is read.
type metered struct {
	io.Reader
	n *atomic.Int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.n.Add(int64(n))
	return n, err
}
