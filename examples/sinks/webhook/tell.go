package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	sinkv1 "github.com/signet-io/signet/api/sink/v1"
	"github.com/signet-io/signet/plugins/sdk"
)

const (
	// tellTime bounds how long a commit that has landed waits for the receiver. What is not told in it is told by the next commit.
	tellTime = 10 * time.Second
	// requestTime bounds one request.
	requestTime = 3 * time.Second
	firstPause  = 100 * time.Millisecond
)

// receiver is whom to tell: the secret "receiver" of this plugin, as JSON.
type receiver struct {
	URL string `json:"url"`
	// SigningKey, if there is one, makes a header Webhook-Signature: the hexadecimal HMAC-SHA256 of the body.
	SigningKey string `json:"signing_key"`
	// CA are certificates in PEM that sign the receiver's, for https: a plugin sees none of those that the machine has.
	CA string `json:"ca"`
}

// receiverOf asks the host for the secret: it is in no file, variable or argument of this process.
func receiverOf(ctx context.Context) (*receiver, error) {
	raw, err := sdk.HostFrom(ctx).Secret(ctx, "receiver")
	if err != nil {
		return nil, err
	}
	r := &receiver{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, sdk.Refuse(sdk.Permanent, `the secret "receiver" of the webhook sink is no JSON object: want {"url": "https://…"}`) // the cause might quote it
	}
	if u, err := url.Parse(r.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, sdk.Refuse(sdk.Permanent, `the secret "receiver" of the webhook sink has no url that begins with http:// or https://`)
	}
	return r, nil
}

// client reaches the receiver through the host, under the name that the operator has listed; the plugin has no network.
func (r *receiver) client() *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return sdk.HostFrom(ctx).Dial(ctx, "receiver")
		},
		DisableKeepAlives: true, // connections end with the call
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if r.CA != "" {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(r.CA))
	}
	return &http.Client{Transport: t, Timeout: requestTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// event is the body of a request.
type event struct {
	Table   string `json:"table"`
	Version string `json:"version"`
	JobID   string `json:"job_id"`
	Rows    int64  `json:"rows"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

// tell tells the receiver of every commit that it has not acknowledged, oldest first, and returns why one of them was not told, for the log and the job's result.
// It cannot fail the commit: that has landed.
func tell(ctx context.Context, ref *sinkv1.TableRef) string {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	err := tellAll(ctx, ref)
	if err == nil {
		return ""
	}
	why := fmt.Sprintf("the receiver was not told, and will be with the next commit: %v", err)
	_ = sdk.HostFrom(outer).Log(outer, "warn", why, map[string]string{"table": nameOf(ref)})
	return why
}

func tellAll(ctx context.Context, ref *sinkv1.TableRef) error {
	t, commits, err := load(ctx, ref)
	if err != nil {
		return err
	}
	r, err := receiverOf(ctx)
	if err != nil {
		return err
	}
	told, err := acknowledged(ctx, t)
	if err != nil {
		return err
	}
	for _, c := range commits {
		if told[c.Version] {
			continue
		}
		if err := r.post(ctx, ref, &c); err != nil {
			return fmt.Errorf("version %s: %w", c.Version, err)
		}
		// A crash right here makes the receiver hear of the commit twice, under one key.
		err := sdk.HostFrom(ctx).PutJSON(ctx, uri(t, "_told", c.Version), map[string]string{"commit_key": c.CommitKey})
		if err != nil && !errors.Is(err, sdk.ErrExists) { // another call has told it at the same time
			return err
		}
	}
	return nil
}

func acknowledged(ctx context.Context, t *sinkv1.DescribeTableResponse) (map[string]bool, error) {
	objects, err := sdk.HostFrom(ctx).List(ctx, t.GetLocation()+"/_told")
	told := map[string]bool{}
	for _, o := range objects {
		told[strings.TrimSuffix(path.Base(o.GetUri()), ".json")] = true
	}
	return told, err
}

// post sends one event until it is acknowledged or the time is up. Only a status of 200 to 299 is an acknowledgement.
func (r *receiver) post(ctx context.Context, ref *sinkv1.TableRef, c *manifest) error {
	body, err := json.Marshal(event{Table: nameOf(ref), Version: c.Version, JobID: c.JobID, Rows: c.Rows, Files: len(c.Files), Bytes: c.Bytes})
	if err != nil {
		return err
	}
	for pause := firstPause; ; pause *= 2 {
		err := r.try(ctx, body, c.CommitKey)
		if err == nil || errors.Is(err, sdk.ErrPermanent) { // the operator has listed no such address
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (r *receiver) try(ctx context.Context, body []byte, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the url is not valid") // it may hold a token
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	if r.SigningKey != "" {
		mac := hmac.New(sha256.New, []byte(r.SigningKey))
		mac.Write(body)
		req.Header.Set("Webhook-Signature", hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := r.client().Do(req)
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err // without the url
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answers %s", resp.Status)
	}
	return nil
}
