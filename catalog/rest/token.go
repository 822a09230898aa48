package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	defaultScope  = "catalog"
	defaultLife   = time.Hour // of a token that comes without
	tokenAnswerIn = 30 * time.Second
)

// tokens holds the bearer token: one that the operator wrote, or those that client credentials (OAuth2) get.
type tokens struct {
	conf *clientcredentials.Config // nil: the token is the operator's
	http *http.Client
	gate chan struct{} // held by whoever asks for one

	mu    sync.Mutex
	token string
	until time.Time // when to get another; zero: never
}

func newTokens(o Options, base *url.URL, client *http.Client) (*tokens, error) {
	credential, token := o.Secrets[secretCredential], o.Secrets[secretToken]
	switch {
	case credential != "" && token != "":
		return nil, errors.New("secret: credential and token: give one of them")
	case token != "":
		if strings.ContainsAny(token, "\r\n\x00") {
			return nil, errors.New("secret.token: it has more than one line")
		}
		return &tokens{token: token}, nil
	case credential == "":
		return nil, nil
	}
	at := base.JoinPath("v1", "oauth", "tokens")
	if own := o.Properties[propTokenURI]; own != "" {
		var err error
		if at, err = parseBase(propTokenURI, own); err != nil {
			return nil, err
		}
	}
	id, secret, ok := strings.Cut(credential, ":")
	if !ok {
		id, secret = "", credential
	}
	scope := o.Properties[propScope]
	if scope == "" {
		scope = defaultScope
	}
	more := url.Values{}
	for _, name := range []string{propAudience, propResource} {
		if v := o.Properties[name]; v != "" {
			more.Set(name, v)
		}
	}
	return &tokens{
		conf: &clientcredentials.Config{
			ClientID: id, ClientSecret: secret, TokenURL: at.String(), Scopes: strings.Fields(scope), EndpointParams: more, AuthStyle: oauth2.AuthStyleInParams,
		},
		http: client, gate: make(chan struct{}, 1),
	}, nil
}

// get returns the token to use, "" for none.
func (t *tokens) get(ctx context.Context) (string, error) {
	if t == nil {
		return "", nil
	}
	if token, ok := t.valid(); ok {
		return token, nil
	}
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if token, ok := t.valid(); ok { // somebody else's answer
		return token, nil
	}
	return t.fetch(ctx)
}

func (t *tokens) valid() (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token, t.token != "" && (t.until.IsZero() || time.Now().Before(t.until))
}

func (t *tokens) fetch(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenAnswerIn)
	defer cancel()
	asked := time.Now()
	got, err := t.conf.Token(context.WithValue(ctx, oauth2.HTTPClient, t.http))
	if err != nil {
		return "", fmt.Errorf("get a token from %s: %w", t.conf.TokenURL, refusedToken(ctx, err))
	}
	life := defaultLife
	if got.ExpiresIn > 0 {
		life = time.Duration(got.ExpiresIn) * time.Second
	} else if !got.Expiry.IsZero() {
		life = got.Expiry.Sub(asked)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.until = got.AccessToken, asked.Add(life*4/5)
	return t.token, nil
}

// refusedToken says what a token endpoint answered, and nothing that was sent to it.
func refusedToken(ctx context.Context, err error) error {
	var r *oauth2.RetrieveError
	if !errors.As(err, &r) {
		return cause(ctx, err)
	}
	status := 0
	if r.Response != nil {
		status = r.Response.StatusCode
	}
	if r.ErrorCode == "" {
		return fmt.Errorf("status %d", status)
	}
	return fmt.Errorf("status %d: %.100q: %.200q; see secret.credential and scope", status, r.ErrorCode, r.ErrorDescription)
}

// renew forgets a token that was refused. false: another will not be had.
func (t *tokens) renew(refused string) bool {
	if t == nil || t.conf == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == refused {
		t.token = ""
	}
	return true
}
