package checkup_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/checkup"
	"github.com/signet-io/signet/scheduler/config"
)

// onSource is a configuration whose only place in a store is one that statements read.
func onSource(t *testing.T, store *objectstest.Server) *config.Config {
	c := onStore(t, store.URL)
	lake := c.Catalogs["lake"]
	c.Catalogs = map[string]config.Catalog{}
	c.Sources.Remote = []config.RemoteSource{{Prefix: "s3://" + objectstest.Bucket + "/raw", Properties: lake.Properties, Secret: lake.Secret}}
	return c
}

func put(t *testing.T, store *objectstest.Server, key, text string) {
	props := objects.Props{"s3.endpoint": store.URL, "s3.access-key-id": account().Key, "s3.secret-access-key": account().Secret}
	client, err := objects.NewS3(props, objectstest.Bucket, objects.Static(props))
	require.NoError(t, err)
	_, err = client.Put(t.Context(), key, objects.Bytes([]byte(text)), objects.PutOptions{})
	require.NoError(t, err)
}

func TestCheck_Source(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	store.Demand(account())
	c := onSource(t, store)
	put(t, store, "rawer/f", "not below the prefix")
	bad, all := check(t, c)
	require.Empty(t, bad)
	require.Equal(t, "ok open\nok list\nskipped read\n", all)
	put(t, store, "raw/empty", "")
	put(t, store, "raw/f", "x")
	bad, all = check(t, c)
	require.Empty(t, bad)
	require.Equal(t, "ok open\nok list\nok read\nok read by a signed request\n", all)
	require.Len(t, store.Keys(), 3, "it only reads")
}

// Each thing that may be wrong with a place that statements read is named with its setting.
func TestCheck_SourceWrong(t *testing.T) {
	t.Parallel()
	deny := func(action string) func(*objectstest.Account) {
		return func(a *objectstest.Account) { a.Deny = []string{action} }
	}
	for name, tc := range map[string]struct {
		store           func(*objectstest.Account)
		config          func(*config.RemoteSource)
		step, says, fix string
	}{
		"wrong endpoint": {
			config: func(r *config.RemoteSource) { r.Properties = map[string]string{"s3.endpoint": "http://127.0.0.1:1"} },
			step:   "list", says: "nothing answers there", fix: "sources.remote[0].properties.s3.endpoint",
		},
		"wrong region": {
			store: func(a *objectstest.Account) { a.Region = "eu-west-1" },
			step:  "list", says: "set s3.region to eu-west-1", fix: "sources.remote[0].properties.s3.region",
		},
		"wrong key": {
			store: func(a *objectstest.Account) { a.Key = "another" },
			step:  "list", says: "InvalidAccessKeyId", fix: "sources.remote[0].secret.s3.access-key-id",
		},
		"wrong secret": {
			store: func(a *objectstest.Account) { a.Secret = "another" },
			step:  "list", says: "SignatureDoesNotMatch", fix: "sources.remote[0].secret.s3.secret-access-key",
		},
		"missing bucket": {
			config: func(r *config.RemoteSource) { r.Prefix = "s3://another/raw" },
			step:   "list", says: "no such bucket", fix: "correct sources.remote[0].prefix",
		},
		"may not list": {store: deny("s3:ListBucket"), step: "list", says: "access denied", fix: "s3:ListBucket"},
		"may not read": {store: deny("s3:GetObject"), step: "read", says: "access denied", fix: "s3:GetObject"},
		"no region": {
			config: func(r *config.RemoteSource) { r.Properties = nil },
			step:   "open", says: "s3.region", fix: "sources.remote[0].properties",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, a := objectstest.Start(t), account()
			store.Demand(a)
			put(t, store, "raw/f", "x")
			if tc.store != nil {
				tc.store(&a)
			}
			store.Demand(a)
			c := onSource(t, store)
			if tc.config != nil {
				tc.config(&c.Sources.Remote[0])
			}
			bad, all := check(t, c)
			require.Len(t, bad, 1, all)
			require.Equal(t, tc.step, bad[0].Name)
			require.Equal(t, "sources.remote[0]", bad[0].Catalog)
			require.Equal(t, checkup.Failed, bad[0].State)
			require.Contains(t, bad[0].Detail, tc.says)
			require.Contains(t, bad[0].Fix, tc.fix)
			require.Contains(t, bad[0].Where, "bucket ")
		})
	}
}

// Of a web server it is enough that it answers; a catalog that is named alone is checked alone.
func TestCheck_WebSource(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	c := config.Embedded(t.TempDir())
	c.Catalogs = map[string]config.Catalog{}
	c.Sources.Remote = []config.RemoteSource{{Prefix: srv.URL + "/files"}, {Prefix: "http://127.0.0.1:1/files"}}
	bad, all := check(t, c)
	require.Equal(t, "ok reach the server\nfailed reach the server\n", all)
	require.Equal(t, "sources.remote[1]", bad[0].Catalog)
	require.True(t, strings.HasPrefix(bad[0].Fix, "check sources.remote[1].prefix"), bad[0].Fix)
}
