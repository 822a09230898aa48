package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/signet-io/signet/internal/pki"
	"github.com/signet-io/signet/internal/rpc"
	"github.com/signet-io/signet/internal/tracing"
)

// Option configures Dial.
type Option func(*settings)

type settings struct {
	token      string
	caFile     string
	useTLS     bool
	serverName string
	cert, key  string
	retryFor   time.Duration
	polling    bool
	dial       []grpc.DialOption
}

// WithToken sends a bearer token with every call.
func WithToken(token string) Option { return func(s *settings) { s.token = token } }

// WithTLS encrypts the connection and verifies the scheduler against the system's certificate authorities.
func WithTLS() Option { return func(s *settings) { s.useTLS = true } }

// WithCA encrypts the connection and verifies the scheduler against the authorities in a PEM file.
func WithCA(file string) Option { return func(s *settings) { s.useTLS, s.caFile = true, file } }

// WithClientCert encrypts the connection and shows a certificate, both PEM files, to a scheduler that asks for one (tls.client_ca). The files are read again when they
// have changed.
func WithClientCert(cert, key string) Option {
	return func(s *settings) { s.useTLS, s.cert, s.key = true, cert, key }
}

// WithServerName is the name that the scheduler's certificate must carry, where it is not the address's host.
func WithServerName(name string) Option { return func(s *settings) { s.serverName = name } }

// WithRetry says for how long a scheduler that does not answer is tried again, counted from its last answer (default 30 s).
// Zero: one try.
func WithRetry(d time.Duration) Option { return func(s *settings) { s.retryFor = d } }

// WithPolling asks for the job's status instead of subscribing to it, for networks that cut long streams.
func WithPolling() Option { return func(s *settings) { s.polling = true } }

// WithDialOptions appends gRPC options, for tests and for proxies.
func WithDialOptions(o ...grpc.DialOption) Option {
	return func(s *settings) { s.dial = append(s.dial, o...) }
}

func newSettings(opts []Option) settings {
	s := settings{retryFor: 30 * time.Second}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// reconnect is how a connection that broke is made again. gRPC's own pauses grow to two minutes, in which a scheduler that is back is not seen.
var reconnect = grpc.ConnectParams{
	Backoff: grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.7, Jitter: 0.2, MaxDelay: 2 * time.Second}, MinConnectTimeout: 5 * time.Second,
}

// dialOptions checks that the settings fit the address and turns them into gRPC's.
func (s *settings) dialOptions(addr string) ([]grpc.DialOption, error) {
	out := append(append(rpc.DialOptions(), tracing.DialOptions()...), grpc.WithStatsHandler(sentHandler{}), grpc.WithConnectParams(reconnect))
	switch {
	case s.useTLS:
		cfg := &tls.Config{ServerName: s.serverName, MinVersion: tls.VersionTLS12}
		if s.caFile != "" {
			pool, err := readCA(s.caFile)
			if err != nil {
				return nil, err
			}
			cfg.RootCAs = pool
		}
		if s.cert != "" || s.key != "" {
			own, err := pki.Keep(s.cert, s.key, nil)
			if err != nil {
				return nil, err
			}
			own.Show(cfg)
		}
		out = append(out, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
	case isLoopback(addr):
		out = append(out, grpc.WithTransportCredentials(insecure.NewCredentials()))
	default:
		return nil, fmt.Errorf("%s is not a loopback address, so the connection needs TLS: name the scheduler's certificate authority (--tls-ca FILE)", addr)
	}
	if s.token != "" {
		out = append(out, grpc.WithPerRPCCredentials(bearer{s.token}))
	}
	return append(out, s.dial...), nil
}

func readCA(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificate authority %s: holds no PEM certificate", file)
	}
	return pool, nil
}

// isLoopback also holds for local sockets, which never leave the machine.
func isLoopback(addr string) bool {
	if strings.HasPrefix(addr, "unix:") || strings.HasPrefix(addr, "passthrough:") {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// checkAddr names the mistake in an address that no dial could survive.
func checkAddr(addr string) error {
	if strings.HasPrefix(addr, "unix:") || strings.HasPrefix(addr, "passthrough:") {
		return nil
	}
	if addr == "" {
		return errors.New("the scheduler's address is empty: want host:port")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("scheduler address %q: want host:port", addr)
	}
	return nil
}

// bearer carries the token. Loopback connections are plain text by choice; dialOptions refuses any other.
type bearer struct{ token string }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return false }
