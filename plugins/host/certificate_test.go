package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
)

// Plugins in languages whose gRPC is built on BoringSSL refuse other curves; and nobody is believed before the handshake.
func TestCertificate(t *testing.T) {
	config, text, err := certificate()
	require.NoError(t, err)
	block, rest := pem.Decode([]byte(text))
	require.Empty(t, rest)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.Equal(t, elliptic.P256(), cert.PublicKey.(*ecdsa.PublicKey).Curve)
	require.NoError(t, cert.VerifyHostname(config.ServerName))
	require.Equal(t, config.Certificates[0].Certificate[0], cert.Raw)
	for _, pool := range []*x509.CertPool{config.RootCAs, config.ClientCAs} {
		require.True(t, pool.Equal(x509.NewCertPool()))
	}
	_, other, err := certificate()
	require.NoError(t, err)
	require.NotEqual(t, text, other, "each run of a plugin has its own")
}
