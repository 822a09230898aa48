package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// errTooSoon: the issuer was asked a moment ago.
var errTooSoon = errors.New("asked a moment ago")

// limited sends a request to one address once in a while: a key that is not known makes the library ask for new ones, and anybody can make up the name of a key.
type limited struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	last map[string]asked
}

// asked is how the last request went.
type asked struct {
	at  time.Time
	err error
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.URL.String()
	l.mu.Lock()
	last, was := l.last[key]
	l.mu.Unlock()
	if was && l.now().Sub(last.at) < pause {
		if last.err != nil {
			return nil, last.err
		}
		return nil, errTooSoon
	}
	resp, err := l.next.RoundTrip(r)
	note := asked{l.now(), err}
	if err == nil {
		resp.Body = &limitedBody{io.LimitReader(resp.Body, maxDocument), resp.Body}
		if resp.StatusCode != http.StatusOK {
			note.err = fmt.Errorf("it answered %s", resp.Status)
		}
	}
	l.mu.Lock()
	l.last[key] = note
	l.mu.Unlock()
	return resp, err
}

type limitedBody struct {
	io.Reader
	io.Closer
}

// keySet notes why the issuer's keys could not be had, which the library's errors do not keep.
type keySet struct{ oidc.KeySet }

type fetchKey struct{}

type failedFetch struct{ err error }

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if errors.Is(err, errTooSoon) { // keys may have come in between the look at those that are known and the request for others
		payload, err = k.KeySet.VerifySignature(ctx, jwt)
	}
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys") {
		if f, ok := ctx.Value(fetchKey{}).(*failedFetch); ok {
			f.err = err
		}
	}
	return payload, err
}
