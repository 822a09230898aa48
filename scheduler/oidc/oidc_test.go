package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/scheduler/oidc"
	"github.com/signet-io/signet/scheduler/oidc/oidctest"
)

// clock is one that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func verifier(t *testing.T, i *oidctest.Issuer, change ...func(*oidc.Options)) (*oidc.Verifier, *clock) {
	t.Helper()
	c := &clock{at: time.Now()}
	o := oidc.Options{Issuer: i.URL, Audience: oidctest.Audience, Claim: "sub", Prefix: "oidc:", Now: c.now}
	for _, f := range change {
		f(&o)
	}
	v, err := oidc.New(o)
	require.NoError(t, err)
	return v, c
}

func unsigned(t *testing.T, header string, claims map[string]any) string {
	t.Helper()
	b, err := json.Marshal(claims)
	require.NoError(t, err)
	e := base64.RawURLEncoding
	return e.EncodeToString([]byte(header)) + "." + e.EncodeToString(b) + "."
}

func TestPrincipal_WhoseTokens(t *testing.T) {
	i := oidctest.Start(t)
	other := oidctest.Start(t)
	now := time.Now().Unix()
	m := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for n := 0; n < len(pairs); n += 2 {
			out[pairs[n].(string)] = pairs[n+1]
		}
		return out
	}
	stolen, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&i.Key("rsa-1").(*rsa.PrivateKey).PublicKey)
	require.NoError(t, err)
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := i.Token(t, "ec-1", nil)
	head, rest, _ := strings.Cut(good, ".")
	body, signature, _ := strings.Cut(rest, ".")
	changed, err := json.Marshal(i.Claims(m("sub", "root")))
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		token string
		who   string // "": refused
		says  string
	}{
		"RS256":                      {token: i.Token(t, "rsa-1", nil), who: "oidc:ann"},
		"ES256":                      {token: good, who: "oidc:ann"},
		"several audiences":          {token: i.Token(t, "ec-1", m("aud", []string{"x", oidctest.Audience})), who: "oidc:ann"},
		"another audience":           {token: i.Token(t, "ec-1", m("aud", "x")), says: "audience"},
		"no audience":                {token: i.Token(t, "ec-1", m("aud", nil)), says: "audience"},
		"another issuer's":           {token: other.Token(t, "ec-1", nil), says: "signature"},
		"another issuer, this key":   {token: i.Token(t, "ec-1", m("iss", other.URL)), says: "issued by a different provider"},
		"expired":                    {token: i.Token(t, "ec-1", m("exp", now-120)), says: "expired"},
		"expired within the leeway":  {token: i.Token(t, "ec-1", m("exp", now-20)), who: "oidc:ann"},
		"no expiry":                  {token: i.Token(t, "ec-1", m("exp", nil)), says: "expired"},
		"not yet":                    {token: i.Token(t, "ec-1", m("nbf", now+120)), says: "not valid before"},
		"not yet, within the leeway": {token: i.Token(t, "ec-1", m("nbf", now+20)), who: "oidc:ann"},
		"alg none":                   {token: unsigned(t, `{"alg":"none"}`, i.Claims(nil)), says: "none"},
		"alg None":                   {token: unsigned(t, `{"alg":"None","kid":"rsa-1"}`, i.Claims(nil)), says: "malformed"},
		"no signature":               {token: head + "." + body + ".", says: "signature"},
		"HS256 with the public key":  {token: oidctest.Sign(t, jose.HS256, asPEM, "rsa-1", i.Claims(nil)), says: "HS256"},
		"RS512":                      {token: oidctest.Sign(t, jose.RS512, i.Key("rsa-1"), "rsa-1", i.Claims(nil)), says: "RS512"},
		"a key of nobody":            {token: oidctest.Sign(t, jose.ES256, stolen, "ec-1", i.Claims(nil)), says: "signature"},
		"other claims":               {token: head + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + signature, says: "signature"},
		"another's key name":         {token: oidctest.Sign(t, jose.ES256, i.Key("ec-1"), "rsa-1", i.Claims(nil)), says: "signature"},
		"no key name":                {token: oidctest.Sign(t, jose.ES256, i.Key("ec-1"), "", i.Claims(nil)), who: "oidc:ann"},
		"no claim":                   {token: i.Token(t, "ec-1", m("sub", nil)), says: `claim "sub"`},
		"empty claim":                {token: i.Token(t, "ec-1", m("sub", "")), says: `claim "sub"`},
		"a claim that is no text":    {token: i.Token(t, "ec-1", m("sub", 7)), says: "sub"},
		"a list":                     {token: i.Token(t, "ec-1", m("sub", []string{"root"})), says: "sub"},
		"a long name":                {token: i.Token(t, "ec-1", m("sub", strings.Repeat("x", 124))), says: "128 bytes"},
		"a line break":               {token: i.Token(t, "ec-1", m("sub", "a\nb")), says: "cannot be seen"},
		"text from right to left":    {token: i.Token(t, "ec-1", m("sub", "a\u202eb")), says: "cannot be seen"},
		"a stroke":                   {token: i.Token(t, "ec-1", m("sub", "ops|ann")), who: "oidc:ops|ann"},
		"nothing":                    {token: "", says: "malformed"},
		"points":                     {token: "..", says: "malformed"},
		"large":                      {token: i.Token(t, "ec-1", m("x", strings.Repeat("x", 17<<10))), says: "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := verifier(t, i)
			who, err := v.Principal(t.Context(), tc.token)
			if tc.who != "" {
				require.NoError(t, err)
				require.Equal(t, tc.who, who)
				return
			}
			require.ErrorIs(t, err, oidc.ErrToken)
			require.ErrorContains(t, err, tc.says)
			require.Empty(t, who)
			if len(tc.token) > 20 {
				require.NotContains(t, err.Error(), tc.token[len(tc.token)-20:])
			}
		})
	}
}

func TestPrincipal_Email(t *testing.T) {
	i := oidctest.Start(t)
	v, _ := verifier(t, i, func(o *oidc.Options) { o.Claim = "email" })
	for verified, ok := range map[any]bool{true: true, "true": true, false: false, "false": false, nil: true} {
		who, err := v.Principal(t.Context(), i.Token(t, "ec-1", map[string]any{"email": "ann@example.org", "email_verified": verified}))
		require.Equal(t, ok, err == nil, verified)
		require.Equal(t, ok, who == "oidc:ann@example.org")
	}
}

// A new key is asked for once, and made-up names of keys do not make anybody ask again and again.
func TestKeys_Rotate(t *testing.T) {
	i := oidctest.Start(t)
	v, clock := verifier(t, i)
	who := func(token string) error {
		_, err := v.Principal(t.Context(), token)
		return err
	}
	require.Zero(t, i.Requests("/keys"), "nobody is asked before the first token")
	require.NoError(t, who(i.Token(t, "ec-1", nil)))
	require.Equal(t, 1, i.Requests("/keys"))

	i.Add(t, "ec-2")
	clock.pass(10 * time.Second)
	require.NoError(t, who(i.Token(t, "ec-2", nil)))
	require.Equal(t, 2, i.Requests("/keys"))
	stolen, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for range 50 {
		require.ErrorIs(t, who(oidctest.Sign(t, jose.ES256, stolen, "made-up", i.Claims(nil))), oidc.ErrToken)
	}
	require.NoError(t, who(i.Token(t, "ec-1", nil)), "known keys go on")
	require.Equal(t, 2, i.Requests("/keys"))

	// What the issuer takes back is believed for an hour at most.
	gone := i.Token(t, "ec-1", map[string]any{"exp": time.Now().Add(5 * time.Hour).Unix()})
	i.Withdraw("ec-1")
	require.NoError(t, who(gone))
	clock.pass(time.Hour)
	require.ErrorIs(t, who(gone), oidc.ErrToken)
}

func TestIssuer_Down(t *testing.T) {
	i := oidctest.Start(t)
	v, clock := verifier(t, i)
	token := i.Token(t, "ec-1", map[string]any{"exp": time.Now().Add(5 * time.Hour).Unix()})
	i.Down(true)
	for range 20 {
		_, err := v.Principal(t.Context(), token)
		require.ErrorIs(t, err, oidc.ErrUnavailable)
		require.ErrorContains(t, err, i.URL)
	}
	require.Equal(t, 1, i.Requests("/.well-known/openid-configuration"), "it is not asked more often for being down")
	i.Down(false)
	clock.pass(10 * time.Second)
	who, err := v.Principal(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, "oidc:ann", who)

	i.Down(true)
	clock.pass(30 * time.Second)
	_, err = v.Principal(t.Context(), token)
	require.NoError(t, err, "keys that are known need nobody")
	i.Add(t, "ec-2")
	unknown := i.Token(t, "ec-2", nil)
	// The library lets others join a request until a moment after its end: what joins the one of above is refused, without asking again.
	require.Eventually(t, func() bool {
		_, err := v.Principal(t.Context(), unknown)
		return errors.Is(err, oidc.ErrUnavailable)
	}, time.Minute, time.Millisecond)
	for range 3 {
		_, err = v.Principal(t.Context(), unknown)
		require.ErrorIs(t, err, oidc.ErrUnavailable, "of a key that is not known nobody can say whose it is")
	}
	clock.pass(2 * time.Hour)
	_, err = v.Principal(t.Context(), token)
	require.NoError(t, err, "and what it has said before counts while it cannot be asked")
}

func TestPrincipal_ManyAtOnce(t *testing.T) {
	i := oidctest.Start(t)
	v, _ := verifier(t, i)
	token := i.Token(t, "rsa-1", nil)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			_, err := v.Principal(t.Context(), token)
			assert.NoError(t, err)
		})
	}
	group.Wait()
	require.Equal(t, 1, i.Requests("/.well-known/openid-configuration"))
}

func TestNew_Refuses(t *testing.T) {
	for issuer, says := range map[string]string{
		"": "want the issuer", "login.example.org": "want the issuer", "http://login.example.org": "want https", "https://u:p@x": "want the issuer", "https://x?y": "want the issuer", "ftp://x": "want https",
	} {
		_, err := oidc.New(oidc.Options{Issuer: issuer, Audience: "a", Claim: "sub", Prefix: "p"})
		require.ErrorContains(t, err, says, issuer)
	}
	_, err := oidc.New(oidc.Options{Issuer: "https://x", Audience: "a", Claim: "sub", Prefix: "p", CA: "/nowhere"})
	require.ErrorContains(t, err, "/nowhere")
	_, ok := oidc.Issuer("a.b.c")
	require.False(t, ok)
	_, ok = oidc.Issuer(strings.Repeat("x", 20<<10))
	require.False(t, ok)
}
