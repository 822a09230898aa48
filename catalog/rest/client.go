package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// client sends requests with what proves who sends them.
type client struct {
	http    *http.Client
	headers http.Header // header.*
	tokens  *tokens     // nil: none
	signer  *signer     // nil: requests are not signed
	secrets []string    // which no text may hold
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)

func newClient(o Options, base *url.URL) (*client, error) {
	tr, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	c := &client{http: &http.Client{Transport: tr, CheckRedirect: redirect}, headers: http.Header{}}
	for _, s := range o.Secrets {
		if _, after, ok := strings.Cut(s, ":"); ok && after != "" {
			c.secrets = append(c.secrets, after)
		}
		if s != "" {
			c.secrets = append(c.secrets, s)
		}
	}
	slices.SortFunc(c.secrets, func(a, b string) int { return len(b) - len(a) })
	for _, from := range []map[string]string{o.Properties, o.Secrets} {
		for k, v := range from {
			name, ok := strings.CutPrefix(k, headerPrefix)
			if !ok {
				continue
			}
			if !headerName.MatchString(name) || strings.ContainsFunc(v, unicode.IsControl) {
				return nil, fmt.Errorf("%s: no name and value of an HTTP header", k)
			}
			c.headers.Set(name, v)
		}
	}
	if c.tokens, err = newTokens(o, base, c.http); err != nil {
		return nil, err
	}
	c.signer, err = newSigner(o)
	return c, err
}

// call is one request to the catalog.
type call struct {
	method string
	url    string
	header http.Header
	body   []byte
}

// send sends a call, and sends it again only where the server said that it did not take it, because of a token or a clock.
func (c *client) send(ctx context.Context, r call) (*answer, error) {
	a, token, err := c.try(ctx, r)
	if err != nil {
		return nil, err
	}
	switch {
	case (a.status == http.StatusUnauthorized || a.status == statusTokenExpired) && c.tokens.renew(token):
	case c.signer != nil && (a.status == http.StatusForbidden || a.status == http.StatusUnauthorized) && c.signer.learn(a):
	default:
		return a, nil
	}
	again, _, err := c.try(ctx, r)
	if unsent(err) { // the first was refused, so that nothing was taken all the same
		return nil, unsentError{fmt.Errorf("%w; before, the catalog refused the token that was valid until then (status %d)", err, a.status)}
	}
	return again, err
}

// statusTokenExpired is what Iceberg's protocol uses for a token that has expired.
const statusTokenExpired = 419

func (c *client) try(ctx context.Context, r call) (*answer, string, error) {
	h := c.headers.Clone()
	for k, v := range r.header {
		h[k] = v
	}
	h.Set("Accept", "application/json")
	if r.body != nil {
		h.Set("Content-Type", "application/json")
	}
	token, err := c.tokens.get(ctx)
	if err != nil {
		return nil, "", unsentError{err}
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	if c.signer != nil {
		if err := c.signer.sign(ctx, r, h); err != nil {
			return nil, "", unsentError{err}
		}
	}
	a, err := c.once(ctx, r.method, r.url, h, r.body)
	return a, token, c.hide(err)
}

// hide keeps secrets out of a text. None of ours holds one; a server's might.
func (c *client) hide(err error) error {
	if err == nil || c.clean(err.Error()) == err.Error() {
		return err
	}
	text := errors.New(c.clean(err.Error()))
	if unsent(err) {
		return unsentError{text}
	}
	return text
}

func (c *client) clean(text string) string {
	for _, s := range c.secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
