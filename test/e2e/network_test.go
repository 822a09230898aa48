package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/test/harness"
)

// certificate makes a self-signed certificate for loopback, in PEM files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signet test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	return file(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// A listener that others can reach needs TLS, a join token and client tokens; the error names what is missing.
func TestNetwork_OpenListenerIsRefused(t *testing.T) {
	cert, key := certificate(t)
	secured := fmt.Sprintf("tls: {cert: %s, key: %s}\n", cert, key)
	join := "auth:\n  join_token: {file: " + file(t, "join", "j") + "}\n"
	for name, tc := range map[string]struct{ config, missing string }{
		"nothing":          {"", "tls.cert"},
		"no join token":    {secured, "auth.join_token"},
		"no client tokens": {secured + join, "auth.tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := file(t, "signet.yaml", "data_dir: "+t.TempDir()+"\nlisten: 0.0.0.0:0\n"+tc.config)
			r := harness.RunCommand(t, "", nil, "scheduler", "--config", cfg)
			require.Equal(t, 2, r.Code, r.Err)
			require.Contains(t, r.Err, tc.missing)
			require.NotContains(t, r.Out, "listening")
		})
	}
}

// Tokens and TLS at work: who has none, or a wrong one, is refused and told how; jobs belong to their principal.
func TestNetwork_TokensAndTLS(t *testing.T) {
	cert, key := certificate(t)
	join, alice, bob, wrong := file(t, "join", "j0in"), file(t, "alice", "al1ce"), file(t, "bob", "b0b"), file(t, "wrong", "wr0ng")
	c := harness.New(t, harness.Options{
		Executors:    1,
		ExecutorArgs: []string{"--tls-ca", cert, "--token-file", join},
		ClientArgs:   []string{"--tls-ca", cert, "--token-file", alice},
		Config: fmt.Sprintf("tls: {cert: %s, key: %s}\nauth:\n  join_token: {file: %s}\n  tokens:\n    - {principal: alice, token: {file: %s}}\n    - {principal: bob, token: {file: %s}}\n",
			cert, key, join, alice, bob),
	})
	require.Equal(t, "1", c.Value("SELECT 1"))
	job := c.Jobs()[0].ID

	as := func(args ...string) harness.Result {
		return harness.RunCommand(t, "", nil, append(args, "--scheduler", c.Address)...)
	}
	require.Equal(t, 0, as("job", job, "--tls-ca", cert, "--token-file", alice).Code)
	r := as("job", job, "--tls-ca", cert, "--token-file", bob)
	require.Equal(t, 1, r.Code, "another principal's job is not seen")
	require.Contains(t, r.Err, "no job")
	require.Equal(t, 1, as("cancel", job, "--tls-ca", cert, "--token-file", bob).Code)

	var told []string
	for _, args := range [][]string{{"--tls-ca", cert}, {"--tls-ca", cert, "--token-file", wrong}, {"--tls-ca", cert, "--token-file", join}} {
		r := as(append([]string{"sql", "-q", "SELECT 1"}, args...)...)
		require.Equal(t, 1, r.Code, r.Err)
		require.Contains(t, r.Err, "--token-file")
		told = append(told, r.Err)
	}
	require.Equal(t, told[1], told[2], "a wrong token and a foreign one look the same")
	require.Equal(t, 3, as("sql", "-q", "SELECT 1", "--token-file", alice).Code, "plain text to a TLS listener")

	for _, args := range [][]string{{"--tls-ca", cert}, {"--tls-ca", cert, "--token-file", alice}} {
		r := runExecutor(t, append(args, "--scheduler", c.Address, "--scratch", t.TempDir())...)
		require.NotContains(t, r, "registered", "an executor without the join token does not join")
		require.Contains(t, strings.ToLower(r), "token")
	}
	require.Equal(t, 1, c.Registered())
}

// runExecutor runs an executor that cannot join until it says so, and returns its log.
func runExecutor(t *testing.T, args ...string) string {
	t.Helper()
	var out syncBuffer
	cmd := exec.Command(harness.Path("signet-executor"), args...)
	cmd.Stderr = &out
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	harness.Eventually(t, "the executor is refused", func() bool {
		select {
		case <-done:
			return true
		default:
			return strings.Contains(strings.ToLower(out.String()), "unauthenticated") || strings.Contains(strings.ToLower(out.String()), "token")
		}
	})
	_ = cmd.Process.Kill() // it may have ended
	<-done
	return out.String()
}
