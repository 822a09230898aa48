package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/pki"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func leaf(t *testing.T, p pki.Pair) *x509.Certificate {
	t.Helper()
	_, err := tls.X509KeyPair(p.Cert, p.Key)
	require.NoError(t, err, "certificate and key belong together")
	b, _ := pem.Decode(p.Cert)
	c, err := x509.ParseCertificate(b.Bytes)
	require.NoError(t, err)
	return c
}

func TestAuthority_IssuesWhatItsPoolVerifies(t *testing.T) {
	a, err := pki.NewAuthority("a cluster", now, 825)
	require.NoError(t, err)
	other, err := pki.NewAuthority("a cluster", now, 825)
	require.NoError(t, err)
	pool, foreign := x509.NewCertPool(), x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(a.Pair().Cert))
	require.True(t, foreign.AppendCertsFromPEM(other.Pair().Cert))

	server, err := a.Issue(pki.Subject{Name: "scheduler", Hosts: []string{"db-1.example.org", "127.0.0.1", "::1"}, Server: true}, now, 825)
	require.NoError(t, err)
	client, err := a.Issue(pki.Subject{Name: "admin", Client: true}, now, 5000)
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		pair  pki.Pair
		roots *x509.CertPool
		host  string
		use   x509.ExtKeyUsage
		at    time.Time
		fails string
	}{
		{"by name", server, pool, "db-1.example.org", x509.ExtKeyUsageServerAuth, now, ""},
		{"by address", server, pool, "127.0.0.1", x509.ExtKeyUsageServerAuth, now, ""},
		{"by IPv6 address", server, pool, "::1", x509.ExtKeyUsageServerAuth, now, ""},
		{"other host", server, pool, "db-2.example.org", x509.ExtKeyUsageServerAuth, now, "not db-2"},
		{"server as client", server, pool, "", x509.ExtKeyUsageClientAuth, now, "key usage"},
		{"client", client, pool, "", x509.ExtKeyUsageClientAuth, now, ""},
		{"client as server", client, pool, "", x509.ExtKeyUsageServerAuth, now, "key usage"},
		{"other authority of that name", client, foreign, "", x509.ExtKeyUsageClientAuth, now, "unknown authority"},
		{"last day", client, pool, "", x509.ExtKeyUsageClientAuth, now.AddDate(0, 0, 825).Add(-time.Minute), ""},
		{"expired, with its authority", client, pool, "", x509.ExtKeyUsageClientAuth, now.AddDate(0, 0, 825).Add(time.Minute), "expired"},
		{"clock a little late", client, pool, "", x509.ExtKeyUsageClientAuth, now.Add(-time.Minute), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := leaf(t, tc.pair).Verify(x509.VerifyOptions{Roots: tc.roots, DNSName: tc.host, KeyUsages: []x509.ExtKeyUsage{tc.use}, CurrentTime: tc.at})
			if tc.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.fails)
			}
		})
	}
	require.NotEqual(t, leaf(t, server).SerialNumber, leaf(t, client).SerialNumber)
	require.False(t, leaf(t, server).IsCA)
}

func TestAuthority_RefusesWhatNoCertificateHas(t *testing.T) {
	for _, tc := range []struct {
		name string
		days int
	}{{"", 1}, {string(make([]byte, 65)), 1}, {"a", 0}, {"a", -1}} {
		_, err := pki.NewAuthority(tc.name, now, tc.days)
		require.Error(t, err)
	}
	a, err := pki.NewAuthority("a", now, 1)
	require.NoError(t, err)
	for _, h := range []string{"", "a:7070", "https://a", "a b", "-a", "a-", "a..b", "*.example.org", "1.2.3.400", "10.0", "é.org"} {
		_, err := a.Issue(pki.Subject{Name: "x", Hosts: []string{h}, Server: true}, now, 1)
		require.ErrorContains(t, err, "host", h)
	}
}

// A renewed certificate is shown without a restart; what cannot be read leaves the one before.
func TestKeeper_ReadsRenewedFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a, err := pki.NewAuthority("a", time.Now(), 10)
	require.NoError(t, err)
	_, err = pki.Keep(cert, key, nil)
	require.ErrorContains(t, err, cert)
	touched := time.Now()
	put := func(p pki.Pair) {
		touched = touched.Add(time.Second)
		for path, b := range map[string][]byte{cert: p.Cert, key: p.Key} {
			require.NoError(t, os.WriteFile(path, b, 0o600))
			require.NoError(t, os.Chtimes(path, touched, touched))
		}
	}
	first, err := a.Issue(pki.Subject{Name: "first", Client: true}, time.Now(), 1)
	require.NoError(t, err)
	put(first)
	var told []error
	k, err := pki.Keep(cert, key, func(err error) { told = append(told, err) })
	require.NoError(t, err)
	require.Equal(t, "first", k.Current().Leaf.Subject.CommonName)
	put(pki.Pair{Cert: first.Cert, Key: a.Pair().Key})
	for range 3 {
		require.Equal(t, "first", k.Current().Leaf.Subject.CommonName)
	}
	require.Len(t, told, 1, "once for each change")
	second, err := a.Issue(pki.Subject{Name: "second", Client: true}, time.Now(), 1)
	require.NoError(t, err)
	put(second)
	require.Equal(t, "second", k.Current().Leaf.Subject.CommonName)
	require.NoError(t, os.Remove(key))
	require.Equal(t, "second", k.Current().Leaf.Subject.CommonName)
	require.Len(t, told, 2)
}
