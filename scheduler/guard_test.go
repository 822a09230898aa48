package scheduler

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/config"
)

// Who a client is, by what it shows: a token, a certificate, both or neither.
func TestGuard_Client(t *testing.T) {
	spiffe, err := url.Parse("spiffe://example.org/ops")
	require.NoError(t, err)
	named := func(cn string) *x509.Certificate { return &x509.Certificate{Subject: pkix.Name{CommonName: cn}} }
	ops := &x509.Certificate{Subject: pkix.Name{CommonName: "whatever"}, URIs: []*url.URL{spiffe}, DNSNames: []string{"ann"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}
	tokens := []clientToken{{sha256.Sum256([]byte("ann's")), "ann"}, {sha256.Sum256([]byte("bob's")), "bob"}}
	certs := []config.Certificate{{CN: "ann", Principal: "ann"}, {SAN: "spiffe://example.org/ops", Principal: "ops"}, {SAN: "10.0.0.1", Principal: "late"}}
	both, onlyTokens, onlyCerts := &guard{clients: tokens, certs: certs}, &guard{clients: tokens}, &guard{certs: certs}
	for name, tc := range map[string]struct {
		g         *guard
		token     string
		cert      *x509.Certificate
		who, says string
	}{
		"nobody is asked":                    {&guard{}, "x", nil, localPrincipal, ""},
		"token":                              {both, "ann's", nil, "ann", ""},
		"certificate":                        {both, "", named("ann"), "ann", ""},
		"by alternative name, the first":     {both, "", ops, "ops", ""},
		"both of one":                        {both, "ann's", named("ann"), "ann", ""},
		"token of another":                   {both, "bob's", named("ann"), "", "another principal's"},
		"wrong token, known certificate":     {both, "x", named("ann"), "", "not known here"},
		"token, unknown certificate":         {both, "bob's", named("x"), "bob", ""},
		"handshake's word":                   {both, certificateToken, named("ann"), "ann", ""},
		"handshake's word, no certificate":   {both, certificateToken, nil, "", "not known here"},
		"neither":                            {both, "", named("x"), "", "asks for a client token"},
		"a name that is only a token's":      {onlyTokens, "", named("ann"), "", "asks for a client token"},
		"unknown certificate, and no tokens": {onlyCerts, "", named("x"), "", "auth.certificates"},
		"token where none is known":          {onlyCerts, "ann's", nil, "", "not known here"},
		"empty common name":                  {onlyCerts, "", named(""), "", "auth.certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			who, no := tc.g.client(t.Context(), tc.token, tc.cert, "metadata")
			require.Equal(t, tc.who, who)
			require.Equal(t, who == "", no != nil)
			if no != nil {
				require.Contains(t, no.why, tc.says)
				require.False(t, no.unavailable)
			}
		})
	}
}
