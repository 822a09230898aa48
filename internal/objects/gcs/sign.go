package gcs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// maxLife is how long a presigned request can be good.
const maxLife = 7 * 24 * time.Hour

const (
	algorithm = "GOOG4-RSA-SHA256"
	stamp     = "20060102T150405Z"
)

// sign makes a V4 signature of a request: https://cloud.google.com/storage/docs/authentication/canonical-requests.
func (c *client) sign(ctx context.Context, s objects.Signing, query url.Values, now time.Time) (objects.Signed, error) {
	i := c.who
	if i.tokens == nil {
		return objects.Signed{}, errors.New("there are no credentials to sign with")
	}
	life := min(s.For, maxLife).Truncate(time.Second)
	if life < time.Second {
		return objects.Signed{}, fmt.Errorf("%w, or expire in less than a second", objects.ErrExpired)
	}
	header := http.Header{}
	if err := translate(header, s.Header); err != nil {
		return objects.Signed{}, err
	}
	for name := range s.Header {
		if name = http.CanonicalHeaderKey(name); !strings.HasPrefix(name, "X-Amz-") && name != "If-None-Match" {
			return objects.Signed{}, fmt.Errorf("header %s is not signed for others", name)
		}
	}
	if s.Method == http.MethodPut && s.Part == 0 {
		header.Set("X-Goog-Content-Length-Range", fmt.Sprintf("%d,%d", s.Size, s.Size))
	}
	if payer := i.props[UserProject]; payer != "" {
		query.Set("userProject", payer)
	}
	who, err := i.tokens.signer(ctx)
	if err != nil {
		return objects.Signed{}, objects.SourceFailed(err)
	}
	u, err := url.Parse(c.host + "/" + c.bucket + "/" + objects.Escape(s.Key))
	if err != nil {
		return objects.Signed{}, err
	}
	text, err := presign(ctx, who, s.Method, u, query, header, life, now)
	if err != nil {
		return objects.Signed{}, objects.SourceFailed(err)
	}
	return objects.Signed{Method: s.Method, URL: text, Header: header, Until: time.Now().Add(life)}, nil
}

// signer signs for an account.
type signer interface {
	email() string
	sign(ctx context.Context, what []byte) ([]byte, error) // RSA of its SHA-256
}

func presign(ctx context.Context, who signer, method string, u *url.URL, query url.Values, header http.Header, life time.Duration, now time.Time) (string, error) {
	now = now.UTC()
	scope := now.Format("20060102") + "/auto/storage/goog4_request"
	names, lines := signedHeaders(u.Host, header)
	query.Set("X-Goog-Algorithm", algorithm)
	query.Set("X-Goog-Credential", who.email()+"/"+scope)
	query.Set("X-Goog-Date", now.Format(stamp))
	query.Set("X-Goog-Expires", strconv.Itoa(int(life/time.Second)))
	query.Set("X-Goog-SignedHeaders", names)
	asked := strings.ReplaceAll(query.Encode(), "+", "%20")
	canonical := strings.Join([]string{method, u.EscapedPath(), asked, lines, names, "UNSIGNED-PAYLOAD"}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	signature, err := who.sign(ctx, []byte(strings.Join([]string{algorithm, now.Format(stamp), scope, hex.EncodeToString(sum[:])}, "\n")))
	if err != nil {
		return "", err
	}
	out := *u
	out.RawQuery = asked + "&X-Goog-Signature=" + hex.EncodeToString(signature)
	return out.String(), nil
}

// signedHeaders are the names, and the lines of the canonical request, each with its end.
func signedHeaders(host string, header http.Header) (names, lines string) {
	all := map[string]string{"host": host}
	sorted := []string{"host"}
	for name, values := range header {
		name = strings.ToLower(name)
		all[name] = strings.Join(strings.Fields(strings.Join(values, ",")), " ")
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name + ":" + all[name] + "\n")
	}
	return strings.Join(sorted, ";"), b.String()
}
