package gcs_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/gcs"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

func client(t *testing.T, p objects.Props) objects.Client {
	t.Helper()
	i, err := gcs.NewIdentity(p)
	require.NoError(t, err)
	c, err := i.Unhurried(objectstest.Bucket)
	require.NoError(t, err)
	return c
}

func TestClient(t *testing.T) {
	objectstest.Run(t, "gs", func(t *testing.T) (*objectstest.Server, objects.Client) {
		s := objectstest.StartGCS(t)
		return s, client(t, s.GCSProps(t))
	})
}

// Without a key IAM signs, for the account that is named.
func TestSign_ByIAM(t *testing.T) {
	s := objectstest.StartGCS(t)
	p := objects.Props{gcs.ServiceHost: s.URL, gcs.Token: objectstest.Token, gcs.Impersonate: objectstest.GCSAccount}
	i, err := gcs.NewIdentity(p)
	require.NoError(t, err)
	i.At(s.URL)
	c, err := i.Client(objectstest.Bucket)
	require.NoError(t, err)
	_, err = c.Put(t.Context(), "k", objects.Bytes([]byte("x")), objects.PutOptions{})
	require.NoError(t, err)
	get := func() int {
		r, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Minute})
		require.NoError(t, err)
		resp, err := http.Get(r.URL) //nolint:noctx // of a server that ends with the test
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, get())

	p[gcs.Token] = "another"
	i, err = gcs.NewIdentity(p)
	require.NoError(t, err)
	i.At(s.URL)
	c, err = i.Client(objectstest.Bucket)
	require.NoError(t, err)
	_, err = c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Minute})
	require.ErrorContains(t, err, "roles/iam.serviceAccountTokenCreator")
	_, err = c.Head(t.Context(), "k")
	require.ErrorIs(t, err, objects.ErrDenied)
	require.ErrorContains(t, err, gcs.Token)
	require.NotContains(t, err.Error(), "another")
}

func TestBadCredentials(t *testing.T) {
	s := objectstest.StartGCS(t)
	for name, x := range map[string]struct {
		props objects.Props
		says  string
	}{
		"key that is none":     {objects.Props{gcs.JSONKey: `{"type":"authorized_user"}`}, "not the key of a service account"},
		"key without a key":    {objects.Props{gcs.JSONKey: `{"type":"service_account","client_email":"a@b","private_key":"canary"}`}, "no RSA key"},
		"expiry":               {objects.Props{gcs.Token: "x", gcs.TokenExpires: "tomorrow"}, gcs.TokenExpires},
		"whether there is any": {objects.Props{gcs.NoAuth: "maybe"}, gcs.NoAuth},
	} {
		_, err := gcs.NewIdentity(x.props)
		require.ErrorContains(t, err, x.says, name)
		require.NotContains(t, err.Error(), "canary", name)
	}
	for _, host := range []string{"storage", "ftp://x", "http://user:canary@host", "http://"} {
		i, err := gcs.NewIdentity(objects.Props{gcs.ServiceHost: host, gcs.Token: "x"})
		require.NoError(t, err)
		_, err = i.Client("b")
		require.ErrorContains(t, err, gcs.ServiceHost, host)
		require.NotContains(t, err.Error(), "canary")
	}
	c := client(t, objects.Props{gcs.ServiceHost: s.URL, gcs.Token: objectstest.Token, gcs.TokenExpires: "1000"})
	_, err := c.Head(t.Context(), "k")
	require.ErrorIs(t, err, objects.ErrExpired)
	require.Empty(t, s.Log())
	c = client(t, objects.Props{gcs.ServiceHost: s.URL, gcs.NoAuth: "true"})
	_, err = c.Head(t.Context(), "k")
	require.ErrorIs(t, err, objects.ErrDenied)
	_, err = c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Minute})
	require.ErrorContains(t, err, "no credentials")
}

// What Google publishes for those who make signatures: https://github.com/googleapis/conformance-tests, Apache License 2.0; a selection of it, without the signatures.
func TestSign_Vectors(t *testing.T) {
	text, err := os.ReadFile("testdata/v4_signatures.json")
	require.NoError(t, err)
	var vectors []struct {
		Description, Bucket, Object, Method string
		Expiration                          int
		Timestamp                           time.Time
		Headers, QueryParameters            map[string]string
		ExpectedStringToSign                string
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.Greater(t, len(vectors), 8)
	for _, x := range vectors {
		u := &url.URL{Scheme: "https", Host: "storage.googleapis.com", Path: "/" + x.Bucket + "/" + x.Object, RawPath: "/" + x.Bucket + "/" + objects.Escape(x.Object)}
		query, header := url.Values{}, http.Header{}
		for k, v := range x.QueryParameters {
			query.Set(k, v)
		}
		for k, v := range x.Headers {
			header.Set(k, v)
		}
		got, err := gcs.StringToSign(t.Context(), "test-iam-credentials@dummy-project-id.iam.gserviceaccount.com", x.Method, u, query, header, time.Duration(x.Expiration)*time.Second, x.Timestamp)
		require.NoError(t, err)
		require.Equal(t, x.ExpectedStringToSign, got, x.Description)
	}
}
