package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"

	hostv1 "github.com/signet-io/signet/api/host/v1"
)

// secretsService serves host.v1.Secrets.
type secretsService struct {
	hostv1.UnimplementedSecretsServer
	b *Broker
}

// GetSecret hands out a secret that the operator listed for this plugin. A name that is not listed and one that does not exist look the same.
func (s *secretsService) GetSecret(ctx context.Context, r *hostv1.GetSecretRequest) (*hostv1.GetSecretResponse, error) {
	l, err := s.b.lease(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.live(); err != nil {
		return nil, err
	}
	read := s.b.cfg.Secrets[l.spec.pluginName()][r.GetName()]
	if read == nil {
		return nil, refuse(kindPermanent, "secret %q is not listed for plugin %s: the operator lists secrets under the plugin's name", r.GetName(), l.spec.pluginName())
	}
	v, err := read()
	if err != nil {
		s.b.log.Warn("secret unreadable", "plugin", l.spec.pluginName(), "secret", r.GetName(), "cause", err)
		return nil, refuse(kindRetryable, "secret %q cannot be read", r.GetName())
	}
	return &hostv1.GetSecretResponse{Value: v}, nil
}

// dialService serves host.v1.Dial.
type dialService struct {
	hostv1.UnimplementedDialServer
	b *Broker
}

const (
	dialTimeout = 10 * time.Second
	dialBuffer  = 64 << 10
)

type dialStream = grpc.BidiStreamingServer[hostv1.DialRequest, hostv1.DialResponse]

// Dial proxies bytes to an address that the operator listed for this plugin; the plugin never names an address itself.
func (s *dialService) Dial(st dialStream) error {
	l, err := s.b.lease(st.Context())
	if err != nil {
		return err
	}
	if err := l.live(); err != nil {
		return err
	}
	first, err := st.Recv()
	if err != nil {
		return invalid("the first message names the address")
	}
	address, ok := s.b.cfg.Dials[l.spec.pluginName()][first.GetName()]
	if !ok {
		return refuse(kindPermanent, "address %q is not listed for plugin %s: the operator lists addresses under the plugin's name", first.GetName(), l.spec.pluginName())
	}
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(st.Context(), "tcp", address)
	if err != nil {
		s.b.log.Warn("dial failed", "plugin", l.spec.pluginName(), "name", first.GetName(), "cause", err)
		return refuse(kindRetryable, "address %q cannot be reached", first.GetName())
	}
	defer conn.Close()
	// The connection ends with the call and with the lease.
	stopCall := context.AfterFunc(st.Context(), func() { conn.Close() })
	defer stopCall()
	stopLease := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer stopLease()
	return proxy(st, conn, first.GetData())
}

// proxy copies both ways until the far end closes.
func proxy(st dialStream, conn net.Conn, head []byte) error {
	go func() {
		data := head
		for {
			if len(data) > 0 {
				if _, err := conn.Write(data); err != nil {
					conn.Close()
					return
				}
			}
			m, err := st.Recv()
			if err != nil {
				if half, ok := conn.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
					_ = half.CloseWrite() // the reader below ends the call
				} else {
					conn.Close()
				}
				return
			}
			data = m.GetData()
		}
	}()
	buf := make([]byte, dialBuffer)
	for {
		n, err := conn.Read(buf)
		if n > 0 {
			if err := st.Send(&hostv1.DialResponse{Data: append([]byte(nil), buf[:n]...)}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuse(kindRetryable, "the connection was lost")
		}
	}
}
