package scheduler

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc/credentials"

	"github.com/signet-io/signet/internal/pki"
	"github.com/signet-io/signet/scheduler/config"
)

// serverTLS is nil where the listener is plain.
func (s *Server) serverTLS() (credentials.TransportCredentials, error) {
	tc, err := tlsConfig(s.cfg, s.log)
	if tc == nil || err != nil {
		return nil, err
	}
	return &watchedTLS{credentials.NewTLS(tc), s.refusedHandshake}, nil
}

// watchedTLS tells of handshakes that fail: those of callers without a certificate, for instance.
type watchedTLS struct {
	credentials.TransportCredentials
	failed func(peer net.Addr, err error)
}

// ServerHandshake implements credentials.TransportCredentials.
func (w *watchedTLS) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	out, info, err := w.TransportCredentials.ServerHandshake(c)
	if err != nil && !errors.Is(err, io.EOF) { // who only looks whether somebody listens says nothing
		w.failed(c.RemoteAddr(), err)
	}
	return out, info, err
}

// Clone implements credentials.TransportCredentials.
func (w *watchedTLS) Clone() credentials.TransportCredentials {
	return &watchedTLS{w.TransportCredentials.Clone(), w.failed}
}

// tlsConfig is what all listeners share; nil where they are plain.
func tlsConfig(cfg *config.Config, log *slog.Logger) (*tls.Config, error) {
	if !cfg.TLS.Enabled() {
		return nil, nil //nolint:nilnil // no TLS is a valid answer
	}
	own, err := pki.Keep(cfg.TLS.Cert, cfg.TLS.Key, func(err error) { log.Error("the scheduler's certificate", "error", err) })
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	tc := &tls.Config{MinVersion: tls.VersionTLS13}
	own.Serve(tc)
	if cfg.TLS.ClientCA != "" {
		pem, err := os.ReadFile(cfg.TLS.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		tc.ClientCAs = x509.NewCertPool()
		if !tc.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.client_ca: %s holds no certificate", cfg.TLS.ClientCA)
		}
		tc.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return tc, nil
}
