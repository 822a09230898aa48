// Package oidc tells whose a bearer token is that an OpenID Connect issuer has made.
//
// Invariants:
//
//   - Nothing of a token is believed before its signature holds by a key of the issuer, with RS256 or ES256, and its issuer, audience and times do.
//   - What a token says cannot make the scheduler ask anybody but the issuer, nor the issuer more often than once in a while.
//   - No error holds a token.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/signet-io/signet/internal/bounded"
)

// What callers tell apart with errors.Is.
var (
	// ErrToken: the token is none of the issuer's for this audience, now.
	ErrToken = errors.New("the token is not accepted")
	// ErrUnavailable: the issuer cannot be asked for what the token is verified by. Later it may.
	ErrUnavailable = errors.New("the issuer of the token cannot be asked")
)

const (
	// Leeway is how far the issuer's clock and this machine's may be apart.
	Leeway = time.Minute
	// pause is the least time between two requests for the issuer's keys.
	pause = 5 * time.Second
	// keep is how long keys are believed without asking again.
	keep = time.Hour
	// patience is how long the issuer may take to answer.
	patience = 5 * time.Second

	maxToken     = 16 << 10 // bytes
	maxDocument  = 1 << 20  // bytes of what the issuer answers
	maxPrincipal = 128      // bytes
	maxText      = 300      // bytes of what a token or the issuer is quoted with
)

// Options say whose tokens are taken.
type Options struct {
	Issuer   string // https://…; http on loopback only
	Audience string
	Claim    string // that names the principal: "sub"
	Prefix   string // of principals
	CA       string // PEM file; "": the system's authorities
	Now      func() time.Time
}

// Verifier verifies the tokens of one issuer. It is safe for concurrent use, and asks the issuer when the first token comes.
type Verifier struct {
	o      Options
	roots  *x509.CertPool
	dialer http.RoundTripper

	mu    sync.Mutex
	now   *keys // nil: none yet
	tried time.Time
	err   error // of the last try
}

// keys are what the issuer has said of itself at a time.
type keys struct {
	verifier *oidc.IDTokenVerifier
	made     time.Time
}

// CheckIssuer says what is wrong with an issuer's address; "": nothing.
func CheckIssuer(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "want the issuer as its tokens name it, like https://login.example.org/realm"
	case u.Scheme == "http" && !loopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return "want https: whoever can answer for the issuer can be anybody here"
	}
	return ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// New makes a verifier. It asks nobody.
func New(o Options) (*Verifier, error) {
	if problem := CheckIssuer(o.Issuer); problem != "" {
		return nil, fmt.Errorf("issuer: %s", problem)
	}
	if o.Audience == "" || o.Claim == "" || o.Prefix == "" {
		return nil, errors.New("an audience, a claim and a prefix are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	v := &Verifier{o: o}
	t := http.DefaultTransport.(*http.Transport).Clone()
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		v.roots = x509.NewCertPool()
		if !v.roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: %s holds no certificate", o.CA)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: v.roots, MinVersion: tls.VersionTLS12}
	}
	v.dialer = t
	return v, nil
}

// Issuer is what a text that looks like a token says of its issuer, which nobody has verified. false: it looks like none.
func Issuer(token string) (string, bool) {
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return "", false
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(body, &c) != nil || c.Issuer == "" {
		return "", false
	}
	return c.Issuer, true
}

// Issuer of the tokens that are taken.
func (v *Verifier) Issuer() string { return v.o.Issuer }

// Principal verifies a token, and answers whose it is.
func (v *Verifier) Principal(ctx context.Context, token string) (string, error) {
	if len(token) > maxToken {
		return "", fmt.Errorf("%w: it has more than %d bytes", ErrToken, maxToken)
	}
	verifier, err := v.verifier(ctx)
	if err != nil {
		return "", err
	}
	var fetch failedFetch
	t, err := verifier.Verify(context.WithValue(ctx, fetchKey{}, &fetch), token)
	switch {
	case fetch.err != nil && !errors.Is(fetch.err, errTooSoon):
		return "", v.unavailable(fetch.err)
	case fetch.err != nil:
		return "", fmt.Errorf("%w: no key of %s that was known %s ago has signed it; new ones are asked for again then", ErrToken, v.o.Issuer, pause)
	case err != nil:
		return "", fmt.Errorf("%w: %s", ErrToken, bounded.Line(err.Error(), maxText))
	}
	return v.principal(t)
}

// principal is whom a token is about that has been verified.
func (v *Verifier) principal(t *oidc.IDToken) (string, error) {
	var all map[string]any
	if err := t.Claims(&all); err != nil {
		return "", fmt.Errorf("%w: %s", ErrToken, bounded.Line(err.Error(), maxText))
	}
	if nbf, ok := all["nbf"].(float64); ok && v.o.Now().Add(Leeway).Before(time.Unix(int64(nbf), 0)) { // the library allows five minutes
		return "", fmt.Errorf("%w: it is not valid before %s", ErrToken, time.Unix(int64(nbf), 0).UTC().Format(time.RFC3339))
	}
	name, ok := all[v.o.Claim].(string)
	switch {
	case !ok || name == "":
		return "", fmt.Errorf("%w: it has no claim %q that is text (auth.oidc: principal_claim)", ErrToken, v.o.Claim)
	case len(v.o.Prefix)+len(name) > maxPrincipal:
		return "", fmt.Errorf("%w: its claim %q makes a principal of more than %d bytes", ErrToken, v.o.Claim, maxPrincipal)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsPrint(r) }):
		return "", fmt.Errorf("%w: its claim %q has characters that cannot be seen", ErrToken, v.o.Claim)
	}
	if verified, told := all["email_verified"]; v.o.Claim == "email" && told && verified != true && verified != "true" {
		return "", fmt.Errorf("%w: its e-mail address is not verified by the issuer", ErrToken)
	}
	return v.o.Prefix + name, nil
}

func (v *Verifier) unavailable(err error) error {
	return fmt.Errorf("%w: %s: %s", ErrUnavailable, v.o.Issuer, bounded.Line(err.Error(), maxText))
}

// verifier asks the issuer about itself where that has not been done for a while. While it cannot be asked, what it has said before counts.
func (v *Verifier) verifier(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.o.Now()
	if v.now != nil && now.Sub(v.now.made) < keep {
		return v.now.verifier, nil
	}
	if now.Sub(v.tried) >= pause {
		var made *oidc.IDTokenVerifier
		made, v.err = v.discover(ctx)
		v.tried = now
		if v.err == nil {
			v.now = &keys{verifier: made, made: now}
		}
	}
	if v.now == nil {
		return nil, v.unavailable(v.err)
	}
	return v.now.verifier, nil
}

func (v *Verifier) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	client := &http.Client{
		Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &limited{next: v.dialer, now: v.o.Now, last: map[string]asked{}},
	}
	within := oidc.ClientContext(context.WithoutCancel(ctx), client) // whoever asks first does not decide for the others
	p, err := oidc.NewProvider(within, v.o.Issuer)
	if err != nil {
		return nil, err
	}
	var about struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&about); err != nil {
		return nil, err
	}
	u, err := url.Parse(about.Keys)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, errors.New("its jwks_uri is no https address")
	}
	return oidc.NewVerifier(v.o.Issuer, &keySet{oidc.NewRemoteKeySet(within, about.Keys)}, &oidc.Config{
		ClientID: v.o.Audience, SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256}, Now: func() time.Time { return v.o.Now().Add(-Leeway) },
	}), nil
}
