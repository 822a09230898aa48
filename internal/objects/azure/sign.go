package azure

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/signet-io/signet/internal/objects"
)

// maxLife is how long a delegated key, and so what it signs, can be good.
const maxLife = 7 * 24 * time.Hour

// uploadID is the id of a new upload whose blob will have the nonce.
func uploadID(nonce string) string { return nonce + "." + rand.Text() }

func nonceOf(upload string) string {
	if i := strings.LastIndexByte(upload, '.'); i >= 0 {
		return upload[:i]
	}
	return ""
}

// sign makes a shared access signature of one blob, with the headers that the request needs. To begin and to abort an upload nothing has to be sent.
func (a *api) sign(ctx context.Context, s objects.Signing, query url.Values, now time.Time) (objects.Signed, error) {
	life := min(s.For, maxLife).Truncate(time.Second)
	if life < time.Second {
		return objects.Signed{}, fmt.Errorf("%w, or expire in less than a second", objects.ErrExpired)
	}
	mark := s.Header.Get(objects.NonceHeader)
	q, h, method, allow := url.Values{}, http.Header{}, s.Method, sas.BlobPermissions{}
	switch {
	case s.Begin:
		h.Set("X-Ms-Meta-"+nonceKey, mark)
		return objects.Signed{UploadID: uploadID(mark), Header: h, Until: now.Add(life)}, nil
	case s.Method == http.MethodDelete:
		return objects.Signed{UploadID: s.UploadID, Until: now.Add(life)}, nil
	case s.Method == http.MethodGet || s.Method == http.MethodHead:
		allow.Read = true
	case s.Part > 0:
		allow.Create, allow.Write = true, true // a block is written, not created
		q.Set("comp", "block")
		q.Set("blockid", blockID(s.UploadID, int32(s.Part))) //nolint:gosec // checked to be 1 to 10,000
	case s.UploadID != "":
		allow.Create, allow.Write = true, true
		method, mark = http.MethodPut, nonceOf(s.UploadID)
		q.Set("comp", "blocklist")
		h.Set("If-None-Match", "*")
	default:
		allow.Create = true
		h.Set("X-Ms-Blob-Type", "BlockBlob")
		h.Set("If-None-Match", "*")
	}
	if mark != "" && method == http.MethodPut && s.Part == 0 {
		h.Set("X-Ms-Meta-"+nonceKey, mark)
	}
	if query.Has("uploads") {
		return objects.Signed{}, errors.New("an upload that is not begun")
	}
	v := sas.BlobSignatureValues{ContainerName: a.container, BlobName: s.Key, Permissions: allow.String(), ExpiryTime: now.Add(life).UTC(), Protocol: sas.ProtocolHTTPS}
	if strings.HasPrefix(a.endpoint, "http://") {
		v.Protocol = sas.ProtocolHTTPSandHTTP
	}
	signature, err := a.signature(ctx, v, now)
	if err != nil {
		return objects.Signed{}, objects.SourceFailed(err)
	}
	text := a.endpoint + "/" + a.container + "/" + objects.Escape(s.Key) + "?" + signature
	if len(q) > 0 {
		text += "&" + q.Encode()
	}
	return objects.Signed{Method: method, URL: text, Header: h, Until: time.Now().Add(life)}, nil
}

// delegation is a key that the account lends to an identity, to sign with.
type delegation struct {
	key   *service.UserDelegationCredential
	until time.Time
}

func (a *api) signature(ctx context.Context, v sas.BlobSignatureValues, now time.Time) (string, error) {
	switch {
	case a.shared != nil:
		q, err := v.SignWithSharedKey(a.shared)
		return q.Encode(), err
	case a.who.sas != "":
		return "", fmt.Errorf("%s signs no requests for executors: set %s, or %s with %s and %s", SAS, Key, ClientSecret, ClientID, TenantID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.delegated == nil || !v.ExpiryTime.Before(a.delegated.until) {
		from, until := now.Add(-5*time.Minute).UTC(), now.Add(24*time.Hour).UTC()
		start, end := from.Format(sas.TimeFormat), until.Format(sas.TimeFormat)
		key, err := a.service.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
		if err != nil {
			return "", fmt.Errorf("the account lends no key to sign with (role Storage Blob Delegator): %w", said(err))
		}
		a.delegated = &delegation{key, until}
	}
	q, err := v.SignWithUserDelegation(a.delegated.key)
	return q.Encode(), err
}
