package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	hostv1 "github.com/signet-io/signet/api/host/v1"
)

// dialChunk is how much of a connection goes into one message, in bytes.
const dialChunk = 64 << 10

// Dial connects to an address that the operator listed for this plugin under a name (plugins.dial). The host is in the middle: a plugin has no network.
// Whether the address can be reached shows at the first Read or Write, as the refusal that the host gave. The connection has deadlines and ends with the call
// whose context this is; the caller closes it. For an http.Transport or a database driver it is what their DialContext returns.
func (h *Host) Dial(ctx context.Context, name string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(h.bind(ctx))
	stream, err := h.dial.Dial(ctx)
	if err == nil {
		err = stream.Send(&hostv1.DialRequest{Name: name})
	}
	if err != nil {
		cancel()
		return nil, FromStatus(err)
	}
	near, far := net.Pipe()
	c := &conn{Conn: near}
	go outgoing(stream, far)
	go func() {
		defer cancel()
		c.end(incoming(stream, far))
		_ = far.Close()
	}()
	return c, nil
}

// outgoing sends what is written until the connection is closed.
func outgoing(stream hostv1.Dial_DialClient, far net.Conn) {
	buf := make([]byte, dialChunk)
	for {
		n, err := far.Read(buf)
		if n > 0 {
			if stream.Send(&hostv1.DialRequest{Data: append([]byte(nil), buf[:n]...)}) != nil {
				return // the reason comes to incoming
			}
		}
		if err != nil {
			_ = stream.CloseSend()
			return
		}
	}
}

// incoming receives until the other end closes, or somebody has cut the connection.
func incoming(stream hostv1.Dial_DialClient, far net.Conn) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return FromStatus(err)
		}
		if _, err := far.Write(m.GetData()); err != nil {
			return err
		}
	}
}

// conn is the near end of a pipe, which has deadlines, with the host's reason for its end.
type conn struct {
	net.Conn
	mu  sync.Mutex
	why error
}

func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = err
}

func (c *conn) reason(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe); ended && c.why != nil {
		return c.why
	}
	return err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.reason(err)
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.reason(err)
}
