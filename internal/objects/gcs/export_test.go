package gcs

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/signet-io/signet/internal/objects"
)

// Unhurried is a client that waits for nothing.
func (i *Identity) Unhurried(bucket string) (objects.Client, error) {
	return i.client(bucket, func(ctx context.Context, _ int, _ time.Duration) error { return ctx.Err() })
}

// At makes IAM be somewhere else.
func (i *Identity) At(iam string) { i.tokens.iam = iam }

// StringToSign is what an account has to sign to presign a request.
func StringToSign(ctx context.Context, account, method string, u *url.URL, query url.Values, header http.Header, life time.Duration, now time.Time) (string, error) {
	r := &recorder{account: account}
	_, err := presign(ctx, r, method, u, query, header, life, now)
	return r.what, err
}

type recorder struct{ account, what string }

func (r *recorder) email() string { return r.account }

func (r *recorder) sign(_ context.Context, what []byte) ([]byte, error) {
	r.what = string(what)
	return what, nil
}
