package rest_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/test/servers/restfixture"
)

// javaQuirks are those of Iceberg's own catalogs behind its own server.
var javaQuirks = catalogtest.Quirks{
	StepNames: true, NoSlashes: true, FlatDots: true, Implied: true, OwnFiles: true, FreePlaces: true, NoFollows: true,
}

func openJava(t *testing.T, srv *restfixture.Server) *rest.Catalog {
	url, warehouse := srv.Catalog()
	c, err := rest.Open(t.Context(), rest.Options{Name: "lake", URI: url, Warehouse: warehouse})
	require.NoError(t, err)
	return c
}

func TestJava_Conformance(t *testing.T) {
	srv := restfixture.Start(t, "file://"+t.TempDir())
	catalogtest.RunWith(t, javaQuirks, func(t *testing.T) catalog.Catalog { return openJava(t, srv) })
}

// What the server itself does wrong with commits (I4, I5): nobody can tell, and the identical request settles it.
func TestJava_FaultsOfCommits(t *testing.T) {
	srv := restfixture.Start(t, "file://"+t.TempDir())
	c, ctx := openJava(t, srv), t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	for i, mode := range []string{"lost", "gateway", "drop", "busy", "conflict"} {
		id := catalogtest.SnapshotID()
		reqs, ups := catalogtest.Append(tbl, id)
		srv.Fault(t, mode, 1)
		_, err := c.Commit(ctx, tbl.Ident, reqs, ups)
		if applied := i < 3; applied || err != nil { // none of them is taken for success or failure
			requireOutcome(t, errUnknown, err)
		}
		tbl, err = c.Commit(ctx, tbl.Ident, reqs, ups)
		require.NoError(t, err, mode)
		require.Len(t, tbl.Metadata.Snapshots(), i+1, mode)

		reqs, ups = catalogtest.Staged(uuid.NewString(), tbl.Location+"-"+mode, 7)
		srv.Fault(t, mode, 1)
		_, err = c.Commit(ctx, catalog.Ident{"demo", mode}, reqs, ups)
		requireOutcome(t, errUnknown, err)
		made, err := c.Commit(ctx, catalog.Ident{"demo", mode}, reqs, ups)
		require.NoError(t, err, mode)
		require.Len(t, made.Metadata.Snapshots(), 1, mode)
	}
}

func TestJava_FaultAtEveryCall(t *testing.T) {
	srv := restfixture.Start(t, "file://"+t.TempDir())
	url, warehouse := srv.Catalog()
	host, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	p := catalogtest.NewProxy(t, "http://"+host)
	open := func(t *testing.T, url string) *rest.Catalog {
		c, err := rest.Open(t.Context(), rest.Options{Name: "lake", URI: url, Warehouse: warehouse})
		require.NoError(t, err)
		return c
	}
	truth := open(t, url)
	require.NoError(t, truth.CreateNamespace(t.Context(), []string{"demo"}, false))
	catalogtest.FaultAtEveryCall(t, p, []string{"demo"}, truth, func(t *testing.T) catalog.Catalog { return open(t, p.URL+"/"+path) })
}

// A create assigns field ids anew (I1); a create that is part of a commit keeps those that the data files have.
func TestJava_FieldIDs(t *testing.T) {
	const nested = `{"type":"struct","schema-id":0,"fields":[
		{"id":1,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":2,"name":"a","required":false,"type":"int"}]}},
		{"id":3,"name":"b","required":false,"type":"string"}]}`
	srv := restfixture.Start(t, "file://"+t.TempDir())
	c, ctx := openJava(t, srv), t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalog.CreateSpec{Schema: []byte(nested)})
	require.NoError(t, err)
	id := func(t *catalog.Table, name string) int {
		f, _ := t.Metadata.CurrentSchema().FindFieldByName(name)
		return f.ID
	}
	assert.Equal(t, []int{1, 3, 2}, []int{id(tbl, "s"), id(tbl, "s.a"), id(tbl, "b")}, "the table that is returned says which")
	reqs, ups := catalogtest.Staged("", tbl.Location+"-ctas", 7)
	ups = []byte(strings.Replace(string(ups), strings.Join(strings.Fields(catalogtest.SchemaJSON), ""), strings.Join(strings.Fields(nested), ""), 1))
	ups = []byte(strings.Replace(string(ups), `"last-column-id":2`, `"last-column-id":3`, 1))
	require.Contains(t, string(ups), `"name":"s"`)
	tbl, err = c.Commit(ctx, catalog.Ident{"demo", "ctas"}, reqs, ups)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3}, []int{id(tbl, "s"), id(tbl, "s.a"), id(tbl, "b")})
}

func TestJava_OAuth2(t *testing.T) {
	srv := restfixture.Start(t, "file://"+t.TempDir(), "oauth=me:s3cret")
	url, warehouse := srv.Catalog()
	open := func(credential string) *rest.Catalog {
		c, err := rest.Open(t.Context(), rest.Options{Name: "lake", URI: url, Warehouse: warehouse, Secrets: map[string]string{"credential": credential}})
		require.NoError(t, err)
		return c
	}
	require.NoError(t, open("me:s3cret").CreateNamespace(t.Context(), []string{"demo"}, false))
	_, err := open("me:canary-wrong").Namespaces(t.Context())
	require.ErrorContains(t, err, "invalid_client")
	require.NotContains(t, err.Error(), "canary")
}

// The server loses changes of transactions that race (I9), and answers that they are done.
func TestJava_Transactions(t *testing.T) {
	catalogtest.RunTransactions(t, javaQuirks, true, func(t *testing.T) catalog.Catalog {
		return openJava(t, restfixture.Start(t, "file://"+t.TempDir()))
	})
}
