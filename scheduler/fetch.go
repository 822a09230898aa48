package scheduler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	"github.com/signet-io/signet/internal/exchangeclient"
	"github.com/signet-io/signet/scheduler/config"
	"github.com/signet-io/signet/scheduler/root"
)

// newDialer makes the client with which this scheduler fetches what tasks have left: for its roots, for cached tables,
// and for clients. parallel fetches run at a time; 0: the usual number.
func newDialer(cfg *config.Config, parallel int) (*exchangeclient.Dialer, error) {
	out := exchangeclient.Config{Parallel: parallel}
	if cfg.TLS.CA != "" {
		pem, err := os.ReadFile(cfg.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", cfg.TLS.CA)
		}
		out.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return exchangeclient.NewDialer(out), nil
}

// fetchPart reads a job's parts from their executors, remotely also where one shares this host (S11).
func (s *Server) fetchPart(job string) root.Fetch {
	return func(ctx context.Context, part *planv1.ExchangePart, w io.Writer) error {
		err := exchangeclient.Fetch(ctx, s.exchanges, part, w)
		var lost *exchangeclient.LostError
		switch {
		case errors.As(err, &lost):
			s.log.Warn("an output cannot be fetched", "job", job, "attempt", part.AttemptId, "executor", part.ExecutorId, "error", err)
			return fail(codeInternal, "submit the statement again", "%w", err)
		case errors.Is(err, exchangeclient.ErrNoTLS):
			return fail(codeUser, "name the certificate authority of the executors in tls.ca", "%w", err)
		}
		return err
	}
}
