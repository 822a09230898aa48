package exchange_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/signet-io/signet/executor/exchange"
	"github.com/signet-io/signet/internal/exchangeclient"
)

type pair struct{ server, client *tls.Config }

// certificate is for exec-1.example.org, and signs itself.
func certificate(t testing.TB) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"exec-1.example.org"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return pair{
		&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "scheduler.example.org"}, // as an executor has it for its scheduler
	}
}

func portOf(pattern string, l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return strings.ReplaceAll(pattern, "PORT", port)
}

// Other machines are spoken to in TLS, and what they are called is what their certificate must say.
func TestFetch_TLSToOtherMachines(t *testing.T) {
	cert, other := certificate(t), certificate(t)
	l, address, err := exchange.Endpoint{Listen: "127.0.0.1:0", Advertise: "exec-1.example.org", TLS: cert.server}.Open()
	require.NoError(t, err)
	n := &node{t: t, store: exchange.NewStore(t.TempDir() + "/outputs"), address: address}
	server := exchange.NewServer(n.store, grpc.Creds(credentials.NewTLS(cert.server)))
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	defer func() { server.Stop(); <-done }()
	part := n.put("a", content(4096))

	try := func(cfg *tls.Config, address string) error {
		d := exchangeclient.NewDialer(exchangeclient.Config{
			TLS: cfg, Tries: 2, MinPause: time.Millisecond, MaxPause: time.Millisecond,
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String()) // as a resolver would
			})},
		})
		defer d.Close()
		p := &bytes.Buffer{}
		part.Address = address
		if err := exchangeclient.Fetch(t.Context(), d, part, p); err != nil {
			return err
		}
		require.Equal(t, content(4096), p.Bytes())
		return nil
	}
	require.NoError(t, try(cert.client, address))
	require.ErrorIs(t, try(nil, address), exchangeclient.ErrNoTLS)
	require.ErrorContains(t, try(other.client, address), "certificate")
	require.ErrorContains(t, try(cert.client, strings.Replace(address, "exec-1", "exec-2", 1)), "exec-2.example.org")
}
