package scheduler

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

	"google.golang.org/grpc/credentials"

	"github.com/signet-io/signet/internal/pki"
	"github.com/signet-io/signet/scheduler/config"
)

// serverTLS is nil where the listener is plain.
func serverTLS(cfg *config.Config, log *slog.Logger) (credentials.TransportCredentials, error) {
	tc, err := tlsConfig(cfg, log)
	if tc == nil || err != nil {
		return nil, err
	}
	return credentials.NewTLS(tc), nil
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
