package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A Flight SQL listener that others can reach demands TLS and tokens; by default there is none.
func TestFlight_OpenAddressesNeedTLSAndTokens(t *testing.T) {
	require.Empty(t, Embedded(t.TempDir()).Flight.Listen)
	for listen, want := range map[string]string{
		"": "", "127.0.0.1:0": "", "[::1]:7430": "", "localhost:7430": "", "0.0.0.0:7430": "tls.cert and tls.key, auth.tokens", ":7430": "auth.tokens", "nonsense": "host:port", "127.0.0.1:x": "host:port",
	} {
		c := Embedded(t.TempDir())
		c.Flight.Listen = listen
		err := c.Validate()
		if want == "" {
			require.NoError(t, err, listen)
			continue
		}
		require.ErrorContains(t, err, "flight.listen", listen)
		require.ErrorContains(t, err, want, listen)
	}
	cert := write(t, "a certificate")
	c := Embedded(t.TempDir())
	c.Flight.Listen, c.TLS = "0.0.0.0:7430", TLS{Cert: cert, Key: cert}
	require.ErrorContains(t, c.Validate(), "auth.tokens")
	c.Auth.Tokens = []Token{{Principal: "ann", Token: SecretEnv("X")}}
	require.NoError(t, c.Validate())
	for size, ok := range map[Bytes]bool{0: true, 1 << 20: true, 1 << 30: true, 1<<20 - 1: false, 1<<30 + 1: false, -1: false} {
		c.Flight.MaxMessageBytes = size
		require.Equal(t, ok, c.Validate() == nil, size)
	}
}
