package azure_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/azure"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

func client(t *testing.T, p objects.Props) objects.Client {
	t.Helper()
	i, err := azure.NewIdentity(p)
	require.NoError(t, err)
	c, err := i.Unhurried(objectstest.AzureBucket)
	require.NoError(t, err)
	return c
}

func TestClient(t *testing.T) {
	objectstest.Run(t, "abfss", func(t *testing.T) (*objectstest.Server, objects.Client) {
		s := objectstest.StartAzure(t)
		return s, client(t, s.AzureProps())
	})
}

// D6: Azure says 409 where S3 says 412, and 403 to who may only create.
func TestCreateOnExisting(t *testing.T) {
	s := objectstest.StartAzure(t)
	c := client(t, s.AzureProps())
	file := objects.FilePut{Name: "f", Size: 1, CRC32C: []byte{1, 2, 3, 4}}
	what := file.Signing("attempt")
	what.Key, what.For = "dir/f", time.Minute
	r, err := c.Sign(t.Context(), what)
	require.NoError(t, err)
	send := func(condition bool) int {
		q, err := http.NewRequestWithContext(t.Context(), r.Method, r.URL, http.NoBody)
		require.NoError(t, err)
		q.Header = r.Header.Clone()
		if !condition {
			q.Header.Del("If-None-Match")
		}
		resp, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusCreated, send(true))
	require.Equal(t, http.StatusForbidden, send(true))
	require.Equal(t, http.StatusForbidden, send(false), "the signature permits to create, not to replace, whatever the headers")
}

// With an application's secret, tokens are fetched; the account lends a key to sign with.
func TestEntra(t *testing.T) {
	s := objectstest.StartAzure(t)
	lent := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/tenant/oauth2/v2.0/token":
			require.NoError(t, r.ParseForm())
			if r.Form.Get("client_secret") != "canary" {
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"error":"invalid_client"}`)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, objectstest.GCSToken)
		case r.URL.Query().Get("comp") == "userdelegationkey":
			lent++
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, `<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService>`+
				`<SignedVersion>2020-02-10</SignedVersion><Value>%s</Value></UserDelegationKey>`, time.Now().UTC().Format(time.RFC3339), time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), objectstest.AzureKey)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	p := objects.Props{
		azure.Connection: "BlobEndpoint=" + front.URL + "/" + objectstest.AzureAccount, azure.Account: objectstest.AzureAccount, azure.AuthorityHost: front.URL, azure.TenantID: "tenant",
		azure.ClientID: "app", azure.ClientSecret: "canary",
	}
	c := client(t, p)
	_, err := c.Put(t.Context(), "k", objects.Bytes([]byte("x")), objects.PutOptions{})
	require.NoError(t, err)
	for range 3 {
		r, err := c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Minute})
		require.NoError(t, err)
		u, err := url.Parse(r.URL)
		require.NoError(t, err)
		require.Equal(t, "o", u.Query().Get("skoid"))
		require.Equal(t, "r", u.Query().Get("sp"))
	}
	require.Equal(t, 1, lent)
	p[azure.ClientSecret] = "wrong-canary"
	_, err = client(t, p).Head(t.Context(), "k")
	require.ErrorContains(t, err, azure.ClientSecret)
	require.NotContains(t, err.Error(), "wrong-canary")
}

func TestPlace(t *testing.T) {
	key := objects.Props{azure.Account: "acct", azure.Key: objectstest.AzureKey}
	for authority, want := range map[string]string{
		"c@acct.dfs.core.windows.net":      "https://acct.blob.core.windows.net",
		"c@acct.blob.core.windows.net":     "https://acct.blob.core.windows.net",
		"c@acct.dfs.core.chinacloudapi.cn": "https://acct.blob.core.chinacloudapi.cn",
		"c@acct":                           "https://acct.blob.core.windows.net",
		"c":                                "https://acct.blob.core.windows.net",
	} {
		i, err := azure.NewIdentity(key)
		require.NoError(t, err)
		container, endpoint, err := i.Place(authority)
		require.NoError(t, err, authority)
		require.Equal(t, "c", container)
		require.Equal(t, want, endpoint, authority)
	}
	i, err := azure.NewIdentity(key)
	require.NoError(t, err)
	_, err = i.Client("c@other.dfs.core.windows.net")
	require.ErrorContains(t, err, "account other")
	for name, x := range map[string]struct {
		props objects.Props
		says  string
	}{
		"nothing":    {objects.Props{}, azure.Key},
		"whose key":  {objects.Props{azure.Key: "canary"}, azure.Account},
		"two":        {objects.Props{azure.Account: "a", azure.Key: "canary", azure.SAS: "sig=canary"}, "one of"},
		"half":       {objects.Props{azure.ClientSecret: "canary"}, azure.TenantID},
		"connection": {objects.Props{azure.Connection: "canary"}, azure.Connection},
		"endpoint":   {objects.Props{azure.Connection: "AccountName=a;AccountKey=x;BlobEndpoint=http://u:canary@h"}, "BlobEndpoint"},
		"scheme":     {objects.Props{azure.Account: "a", azure.Key: "x", azure.Scheme: "ftp"}, azure.Scheme},
		"not a key":  {objects.Props{azure.Account: "acct", azure.Key: "canary!"}, azure.Key},
	} {
		i, err := azure.NewIdentity(x.props)
		if err == nil {
			_, err = i.Client("c@acct.dfs.core.windows.net")
		}
		require.ErrorContains(t, err, x.says, name)
		require.NotContains(t, err.Error(), "canary", name)
	}
	i, err = azure.NewIdentity(objects.Props{azure.Account: "acct", azure.SAS: "?sv=1&sig=canary"})
	require.NoError(t, err)
	c, err := i.Client("c@acct.dfs.core.windows.net")
	require.NoError(t, err)
	_, err = c.Sign(t.Context(), objects.Signing{Method: http.MethodGet, Key: "k", For: time.Minute})
	require.ErrorContains(t, err, "signs no requests")
	require.NotContains(t, err.Error(), "canary")
}

// Against a server of Azure's protocol that is not this project's, as Azurite: SIGNET_TEST_AZURE is a connection string, with a container "lake" or the right to make one. `make test-azure` starts Azurite for it.
func TestReal(t *testing.T) {
	connection := os.Getenv("SIGNET_TEST_AZURE")
	if connection == "" {
		t.Skip("SIGNET_TEST_AZURE is not set: make test-azure sets it")
	}
	i, err := azure.NewIdentity(objects.Props{azure.Connection: connection})
	require.NoError(t, err)
	require.NoError(t, i.MakeContainer(t.Context(), objectstest.Bucket))
	objectstest.Run(t, "abfss", func(t *testing.T) (*objectstest.Server, objects.Client) {
		s := objectstest.StartProxy(t, i.Endpoint())
		front, err := i.Through(s.URL)
		require.NoError(t, err)
		c, err := front.Unhurried(objectstest.Bucket)
		require.NoError(t, err)
		_, err = c.RemoveAll(t.Context(), "", time.Time{})
		require.NoError(t, err)
		s.Log()
		return s, c
	})
}
