// Package oidctest is an issuer of OpenID Connect in memory for tests.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience of the tokens that Token makes.
const Audience = "signet"

// Issuer is a running one.
type Issuer struct {
	*httptest.Server

	mu       sync.Mutex
	keys     []jose.JSONWebKey
	down     bool
	requests map[string]int
}

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// Start runs an issuer with an RSA key "rsa-1" and a P-256 key "ec-1" until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{requests: map[string]int{}}
	r, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	i.keys = []jose.JSONWebKey{{Key: r, KeyID: "rsa-1", Use: "sig"}}
	i.Add(t, "ec-1")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q, "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}`, i.URL, i.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		set := jose.JSONWebKeySet{}
		for _, k := range i.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		_ = json.NewEncoder(w).Encode(set)
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.requests[r.URL.Path]++
		down := i.down
		i.mu.Unlock()
		if down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

// Add makes a new P-256 key, and publishes it.
func (i *Issuer) Add(t testing.TB, kid string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, jose.JSONWebKey{Key: k, KeyID: kid, Use: "sig"})
}

// Withdraw takes a key back.
func (i *Issuer) Withdraw(kid string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, k := range i.keys {
		if k.KeyID == kid {
			i.keys = append(i.keys[:n:n], i.keys[n+1:]...)
			return
		}
	}
}

// Down has every request answered with 502.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Requests counts those for a path.
func (i *Issuer) Requests(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[path]
}

// Key is the private key of a name.
func (i *Issuer) Key(kid string) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.keys {
		if k.KeyID == kid {
			return k.Key
		}
	}
	return nil
}

// Claims are those of a token that is valid for an hour, with changes; a nil value takes a claim out.
func (i *Issuer) Claims(change map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": i.URL, "aud": Audience, "sub": "ann", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token signs claims with a published key.
func (i *Issuer) Token(t testing.TB, kid string, change map[string]any) string {
	t.Helper()
	alg := jose.ES256
	if kid == "rsa-1" {
		alg = jose.RS256
	}
	return Sign(t, alg, i.Key(kid), kid, i.Claims(change))
}

// Sign signs claims with any key.
func Sign(t testing.TB, alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
