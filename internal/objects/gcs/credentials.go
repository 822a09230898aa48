package gcs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"

	"github.com/signet-io/signet/internal/objects"
)

const (
	storageScope = "https://www.googleapis.com/auth/devstorage.read_write"
	cloudScope   = "https://www.googleapis.com/auth/cloud-platform" // IAM's signatures need it
	iamHost      = "https://iamcredentials.googleapis.com"
	patience     = 30 * time.Second // for a token or a signature
)

// tokens gives the tokens of requests, and signs for an account.
type tokens struct {
	account string // whose signatures IAM makes, where it is told
	iam     string

	mu     sync.Mutex
	source oauth2.TokenSource // nil: not found yet
	key    *jwt.Config        // nil: none, IAM signs
	keyed  *keyed
}

func newTokens(p objects.Props) (*tokens, error) {
	t := &tokens{account: p[Impersonate], iam: iamHost}
	if token := p[Token]; token != "" {
		fixed := &oauth2.Token{AccessToken: token}
		if text := p[TokenExpires]; text != "" {
			ms, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("property %s = %q: want milliseconds since 1970", TokenExpires, text)
			}
			fixed.Expiry = time.UnixMilli(ms)
		}
		t.source = &fixedToken{fixed}
	}
	if key := p[JSONKey]; key != "" {
		if err := t.use([]byte(key)); err != nil {
			return nil, fmt.Errorf("secret %s: %w", JSONKey, err)
		}
	}
	return t, nil
}

// use takes a service account's key.
func (t *tokens) use(key []byte) error {
	c, err := google.JWTConfigFromJSON(key, storageScope)
	if err != nil {
		return errors.New("not the key of a service account, as Google Cloud hands it out (JSON with \"type\": \"service_account\")")
	}
	k, err := parseKey(c.PrivateKey)
	if err != nil {
		return err
	}
	t.key, t.keyed = c, &keyed{account: c.Email, key: k}
	if t.source == nil {
		t.source = c.TokenSource(background())
	}
	return nil
}

// background bounds what a token source does: it has no context of a request.
func background() context.Context {
	return context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: patience})
}

func parseKey(text []byte) (*rsa.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	if k, err := x509.ParsePKCS1PrivateKey(text); err == nil {
		return k, nil
	}
	k, err := x509.ParsePKCS8PrivateKey(text)
	if rk, ok := k.(*rsa.PrivateKey); err == nil && ok {
		return rk, nil
	}
	return nil, errors.New("its private_key is no RSA key in PEM")
}

// fixedToken is one that is not renewed.
type fixedToken struct{ token *oauth2.Token }

func (f *fixedToken) Token() (*oauth2.Token, error) {
	if !f.token.Expiry.IsZero() && time.Now().After(f.token.Expiry) {
		return nil, fmt.Errorf("%w: %s is over since %s", objects.ErrExpired, Token, f.token.Expiry.UTC().Format(time.RFC3339))
	}
	return f.token, nil
}

// found is where tokens come from: what was configured, or what the machine has.
func (t *tokens) found(ctx context.Context) (oauth2.TokenSource, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source != nil {
		return t.source, nil
	}
	c, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), cloudScope)
	if err != nil {
		return nil, fmt.Errorf("no credentials for Google Cloud Storage: neither secret has %s or %s, nor has the machine any of its own", JSONKey, Token)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(c.JSON, &kind) == nil && kind.Type == "service_account" {
		if err := t.use(c.JSON); err != nil {
			return nil, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: %w", err)
		}
		return t.source, nil
	}
	t.source = c.TokenSource
	return t.source, nil
}

func (t *tokens) token(ctx context.Context) (string, error) {
	source, err := t.found(ctx)
	if err != nil {
		return "", err
	}
	token, err := source.Token()
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil { // its text holds the whole answer
			return "", fmt.Errorf("no token is given: the answer is %s", strings.TrimSpace(fmt.Sprint(refused.Response.StatusCode, " ", refused.ErrorCode)))
		}
		return "", err
	}
	return token.AccessToken, nil
}

// signer is who signs: the account with a key, or one for which IAM does.
func (t *tokens) signer(ctx context.Context) (signer, error) {
	if _, err := t.found(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keyed != nil {
		return t.keyed, nil
	}
	if t.account == "" {
		account, err := "", errors.New("none")
		if metadata.OnGCEWithContext(ctx) {
			account, err = metadata.EmailWithContext(ctx, "default")
		}
		if err != nil || account == "" {
			return nil, fmt.Errorf("nothing signs requests for executors: set secret %s, or property %s to an account for which the credentials may sign "+
				"(roles/iam.serviceAccountTokenCreator)", JSONKey, Impersonate)
		}
		t.account = account
	}
	return &blobs{t: t, account: t.account}, nil
}

// keyed signs with a key.
type keyed struct {
	account string
	key     *rsa.PrivateKey
}

func (k *keyed) email() string { return k.account }

func (k *keyed) sign(_ context.Context, what []byte) ([]byte, error) {
	sum := sha256.Sum256(what)
	return rsa.SignPKCS1v15(rand.Reader, k.key, crypto.SHA256, sum[:])
}

// blobs has IAM sign: one request for each signature.
type blobs struct {
	t       *tokens
	account string
}

func (b *blobs) email() string { return b.account }

func (b *blobs) sign(ctx context.Context, what []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	token, err := b.t.token(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string][]byte{"payload": what})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.t.iam+"/v1/projects/-/serviceAccounts/"+url.PathEscape(b.account)+":signBlob", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("IAM signs nothing: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		SignedBlob []byte `json:"signedBlob"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("IAM does not sign for %s: it answers %d; grant the account that asks roles/iam.serviceAccountTokenCreator on it", b.account, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil || len(answer.SignedBlob) == 0 {
		return nil, errors.New("IAM's answer is no signature")
	}
	return answer.SignedBlob, nil
}
