package checkup_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/credentials"
	catalogsql "github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/checkup"
	"github.com/signet-io/signet/scheduler/config"
)

// vendor is a REST catalog that vends sessions of a role for its tables.
type vendor struct {
	t     *testing.T
	store *objectstest.Server
	sts   *credentials.STS
	cat   *catalogsql.Catalog
	gives func(location string) (keys map[string]string) // nil: nothing is given
}

// newVendor has as many tables in demo.
func newVendor(t *testing.T, tables int) (*vendor, *config.Config) {
	store := objectstest.Start(t)
	store.Demand(account())
	own := objects.Props{"s3.endpoint": store.URL, "s3.access-key-id": account().Key, "s3.secret-access-key": account().Secret}
	v := &vendor{t: t, store: store}
	var err error
	v.sts, err = credentials.NewSTS(credentials.STSOptions{RoleARN: role, Endpoint: store.URL, Source: objects.Static(own)})
	require.NoError(t, err)
	opener, err := storage.NewOpener(storage.Root{Props: own, Source: objects.Static(own)})
	require.NoError(t, err)
	v.cat, err = catalogsql.Open(t.Context(), catalogsql.Options{
		Name: "behind", URI: "sqlite://" + filepath.Join(t.TempDir(), "c.db"), Warehouse: "s3://" + objectstest.Bucket + "/wh", Stores: opener,
	})
	require.NoError(t, err)
	require.NoError(t, v.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	for i := range tables {
		_, err := v.cat.Create(t.Context(), catalog.Ident{"demo", fmt.Sprintf("t%d", i)}, catalogtest.Spec())
		require.NoError(t, err)
	}
	v.gives = func(location string) map[string]string {
		_, below, _ := strings.Cut(location, objectstest.Bucket+"/")
		return v.session(fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Action":["s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload"],"Resource":["arn:aws:s3:::%[1]s/%[2]s/*"]},
			{"Effect":"Allow","Action":["s3:ListBucket","s3:ListBucketMultipartUploads"],"Resource":["arn:aws:s3:::%[1]s"],"Condition":{"StringLike":{"s3:prefix":["%[2]s/*"]}}}]}`, objectstest.Bucket, below))
	}
	srv := httptest.NewServer(v)
	t.Cleanup(func() { srv.Close(); require.NoError(t, v.cat.Close()) })
	c := config.Embedded(t.TempDir())
	c.Catalogs = map[string]config.Catalog{"lake": {Type: config.CatalogREST, Name: "lake", URI: srv.URL, Credentials: config.Credentials{Mode: config.CredentialsVended, Duration: time.Hour}}}
	return v, c
}

func (v *vendor) session(policy string) map[string]string {
	keys, _, err := v.sts.Session(v.t.Context(), "vended", policy, time.Hour)
	require.NoError(v.t, err)
	return map[string]string{"s3.access-key-id": keys.AccessKeyID, "s3.secret-access-key": keys.SecretAccessKey, "s3.session-token": keys.SessionToken}
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{}
	table := strings.TrimPrefix(r.URL.Path, "/v1/namespaces/demo/tables/")
	switch r.URL.Path {
	case "/v1/config":
		answer["defaults"] = map[string]string{}
	case "/v1/namespaces":
		answer["namespaces"] = [][]string{}
		if r.URL.Query().Get("parent") == "" {
			answer["namespaces"] = [][]string{{"demo"}}
		}
	case "/v1/namespaces/demo/tables":
		ids, _ := v.cat.Tables(r.Context(), []string{"demo"})
		var all []any
		for _, id := range ids {
			all = append(all, map[string]any{"namespace": id.Namespace(), "name": id.Table()})
		}
		answer["identifiers"] = all
	default:
		t, err := v.cat.Load(r.Context(), catalog.Ident{"demo", table})
		if err != nil {
			http.Error(w, `{"error":{"type":"NoSuchTableException","code":404}}`, http.StatusNotFound)
			return
		}
		raw, _ := v.cat.RawMetadata(r.Context(), t)
		answer["metadata-location"], answer["metadata"] = t.MetadataLocation, json.RawMessage(raw)
		if r.Header.Get("X-Iceberg-Access-Delegation") == "vended-credentials" && v.gives != nil {
			given := v.gives(t.Location)
			given["s3.endpoint"] = v.store.URL
			answer["storage-credentials"] = []any{map[string]any{"prefix": t.Location, "config": given}}
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestCheck_Vended(t *testing.T) {
	t.Parallel()
	v, c := newVendor(t, 2)
	before := v.store.Keys()
	bad, all := check(t, c)
	require.Empty(t, bad, all)
	require.Equal(t, `ok open
ok list namespaces
ok find a table
ok get credentials of a table
ok open storage
ok reach the bucket
ok clock
ok may remove
ok write
ok write only what is not there
ok read
ok list
ok read by a signed request
ok refuse to read without a signature
ok write by a signed request
ok a signed request replaces nothing
ok refuse to write without a signature
ok a signature is for one object
ok upload in parts by signed requests
skipped sessions of a role
ok remove
ok credentials of a table reach no other
ok permissions
`, all)
	require.Equal(t, before, v.store.Keys(), "nothing stays")
}

// A catalog that gives nothing, too little, too much, or keys that the store does not know.
func TestCheck_VendedWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gives          func(v *vendor) func(string) map[string]string
		step           string
		state          checkup.State
		says, fix, not string
	}{
		"nothing": {
			gives: func(*vendor) func(string) map[string]string { return nil },
			step:  "get credentials of a table", state: checkup.Failed, says: "gives no credentials", fix: "set up vending",
		},
		"too little": {
			gives: func(v *vendor) func(string) map[string]string {
				return func(string) map[string]string {
					return v.session(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject"],"Resource":["*"]}]}`)
				}
			},
			step: "may remove", state: checkup.Failed, says: "access denied", fix: "what the catalog's server gives has to allow the scheduler to remove", not: "catalogs.lake.secret",
		},
		"too much": {
			gives: func(v *vendor) func(string) map[string]string {
				return func(string) map[string]string {
					return map[string]string{"s3.access-key-id": account().Key, "s3.secret-access-key": account().Secret}
				}
			},
			step: "credentials of a table reach no other", state: checkup.Warning, says: "can also write, read, list, remove beside the table", fix: "narrow what it gives",
		},
		"foreign keys": {
			gives: func(v *vendor) func(string) map[string]string {
				return func(string) map[string]string {
					return map[string]string{"s3.access-key-id": "another", "s3.secret-access-key": "canary"}
				}
			},
			step: "reach the bucket", state: checkup.Failed, says: "InvalidAccessKeyId", fix: "the store does not take what the catalog's server gives", not: "catalogs.lake.secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, c := newVendor(t, 2)
			before := v.store.Keys()
			v.gives = tc.gives(v)
			bad, all := check(t, c)
			require.Len(t, bad, 1, all)
			require.Equal(t, tc.step, bad[0].Name)
			require.Equal(t, tc.state, bad[0].State)
			require.Contains(t, bad[0].Detail, tc.says)
			require.Contains(t, bad[0].Fix, tc.fix)
			if tc.not != "" {
				require.NotContains(t, bad[0].Fix, tc.not)
			}
			require.Equal(t, before, v.store.Keys(), "nothing stays, and nothing is gone")
		})
	}
}

func TestCheck_VendedWithoutTables(t *testing.T) {
	t.Parallel()
	_, c := newVendor(t, 0)
	bad, all := check(t, c)
	require.Empty(t, bad)
	require.Contains(t, all, "skipped vended credentials\n")
}
