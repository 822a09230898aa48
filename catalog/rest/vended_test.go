package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/rest"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// vendor is a catalog whose tables are in a store, of which its clients know nothing.
type vendor struct {
	*server
	store *objectstest.Server
	given atomic.Int64  // answers with credentials; their keys are numbered
	life  time.Duration // of each
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{store: objectstest.Start(t), life: time.Hour}
	opener, err := storage.NewOpener(storage.Root{Props: v.store.Props(), Source: objects.Static(v.store.Props())})
	require.NoError(t, err)
	v.server = newServerOver(t, "s3://"+objectstest.Bucket+"/wh", opener)
	v.vend = v.answer
	require.NoError(t, v.cat.CreateNamespace(t.Context(), []string{"demo"}, false))
	return v
}

func (v *vendor) answer(location string) map[string]any {
	return map[string]any{"storage-credentials": []any{map[string]any{"prefix": location, "config": map[string]string{
		"s3.endpoint": v.store.URL, "s3.region": "us-east-1", "s3.access-key-id": fmt.Sprintf("key-%d", v.given.Add(1)), "s3.secret-access-key": "canary-secret",
		"s3.session-token": "canary-token", "s3.session-token-expires-at-ms": fmt.Sprint(time.Now().Add(v.life).UnixMilli()), "uri": "http://192.0.2.1/", "token": "canary-catalog",
	}}}}
}

func (v *vendor) client(t *testing.T, vending rest.Vending) *rest.Catalog {
	return v.open(t, v.url, func(o *rest.Options) { o.Vending = &vending })
}

func (v *vendor) sign(t *testing.T, c *rest.Catalog, tbl *catalog.Table) (objects.Signed, error) {
	st, err := c.Store(t.Context(), tbl.Ident, tbl.Location+"/data")
	require.NoError(t, err)
	return st.(storage.Signer).Sign(t.Context(), tbl.Location+"/data/f", objects.Signing{Method: http.MethodGet, For: time.Minute})
}

func (v *vendor) asked() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.delegated...)
}

// A table's files are reached with what the catalog gives for it, and nothing is asked for where the configuration does not say so.
func TestVended_OnlyWhereItIsAskedFor(t *testing.T) {
	v := newVendor(t)
	ctx := t.Context()
	tbl, err := v.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)

	plain := v.open(t, v.url)
	_, err = plain.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	_, err = plain.Store(ctx, tbl.Ident, tbl.Location)
	require.ErrorIs(t, err, storage.ErrUnsupported, "no properties of a store are configured")
	require.Empty(t, v.asked())

	c := v.client(t, rest.Vending{})
	_, err = c.Load(ctx, tbl.Ident)
	require.NoError(t, err)
	require.Empty(t, v.asked(), "nor where only the metadata is wanted")
	st, err := c.Store(ctx, tbl.Ident, tbl.Location)
	require.NoError(t, err)
	_, err = st.PutIfAbsent(ctx, tbl.Location+"/data/f", strings.NewReader("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"GET /v1/namespaces/demo/tables/t vended-credentials"}, v.asked())
	signed, err := v.sign(t, c, tbl)
	require.NoError(t, err)
	require.Contains(t, signed.URL, "key-1")
	require.Contains(t, signed.URL, "canary-token", "of the session that the catalog gave")
	require.NotContains(t, signed.URL, "canary-secret")
	require.Len(t, v.asked(), 1, "once for all that lies below the table")

	_, err = c.Store(ctx, nil, tbl.Location)
	require.ErrorIs(t, err, storage.ErrUnsupported, "no table, no credentials")
	_, err = c.Store(ctx, catalog.Ident{"demo", "t"}, "s3://"+objectstest.Bucket+"/wh/demo/u")
	require.ErrorIs(t, err, rest.ErrNotVended, "a place that is not the table's")
}

// Credentials are asked for anew before they run out, while a job goes on writing.
func TestVended_AreRenewed(t *testing.T) {
	v := newVendor(t)
	v.life = 1500 * time.Millisecond
	tbl, err := v.cat.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	c := v.client(t, rest.Vending{})
	var signed objects.Signed
	require.Eventually(t, func() bool {
		s, err := v.sign(t, c, tbl)
		if err == nil {
			signed = s
		}
		return strings.Contains(signed.URL, "key-3")
	}, time.Minute, 10*time.Millisecond)
	require.True(t, signed.Until.Before(time.Now().Add(2*time.Second)), "a signature ends with the credentials that made it")

	v.vend = func(string) map[string]any { return nil }
	require.Eventually(t, func() bool {
		_, err = v.sign(t, c, tbl)
		return err != nil && strings.Contains(err.Error(), "get new credentials")
	}, time.Minute, 10*time.Millisecond, "what cannot be renewed is said")
	require.ErrorIs(t, err, rest.ErrNotVended)
	require.ErrorContains(t, err, "demo.t")
	require.NotContains(t, err.Error(), "canary")
}

// A table that is about to be made has no credentials yet: those of a staged one are taken.
func TestVended_OfATableToBeMade(t *testing.T) {
	v := newVendor(t)
	ctx, id := t.Context(), catalog.Ident{"demo", "new"}
	c := v.client(t, rest.Vending{})
	location, err := c.DefaultLocation(ctx, id)
	require.NoError(t, err)
	require.Equal(t, []string{"POST /v1/namespaces/demo/tables vended-credentials"}, v.asked(), "the answer that says where it would lie has them")
	st, err := c.Store(ctx, id, location+"/data")
	require.NoError(t, err)
	_, err = st.PutIfAbsent(ctx, location+"/data/f", strings.NewReader("x"))
	require.NoError(t, err)
	require.Len(t, v.asked(), 1)

	st, err = v.client(t, rest.Vending{}).Store(ctx, id, location) // of a scheduler that was started anew
	require.NoError(t, err)
	_, err = st.Stat(ctx, location+"/data/f")
	require.NoError(t, err)
	require.Equal(t, []string{"GET /v1/namespaces/demo/tables/new vended-credentials", "POST /v1/namespaces/demo/tables vended-credentials"}, v.asked()[1:])
}

// Of a name that is taken it is said that it is, also where the catalog gives nothing for another place.
func TestVended_CreateOfATableThatIsThere(t *testing.T) {
	v := newVendor(t)
	ctx := t.Context()
	tbl, err := v.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	v.noStage = true
	v.vend = func(string) map[string]any { return v.answer(tbl.Location) }
	_, err = v.client(t, rest.Vending{}).Create(ctx, tbl.Ident, catalogtest.Spec())
	require.ErrorIs(t, err, catalog.ErrExists)
}

// Where the store is, the operator says; a server may name one on its own host, and any other only with trust_endpoint.
func TestVended_Endpoint(t *testing.T) {
	v := newVendor(t)
	ctx := t.Context()
	tbl, err := v.cat.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	v.vend = func(location string) map[string]any {
		return map[string]any{"metadata": map[string]string{"location": location}, "config": map[string]string{
			"s3.endpoint": "http://store.invalid:1", "s3.access-key-id": "K", "s3.secret-access-key": "canary",
		}}
	}
	_, err = v.client(t, rest.Vending{}).Store(ctx, tbl.Ident, tbl.Location)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "store.invalid")
	require.ErrorContains(t, err, "trust_endpoint")
	require.NotContains(t, err.Error(), "canary")

	signed, err := v.sign(t, v.client(t, rest.Vending{TrustEndpoint: true}), tbl)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(signed.URL, "http://store.invalid:1/"), "it is believed")
	signed, err = v.sign(t, v.client(t, rest.Vending{Props: objects.Props{objects.Endpoint: v.store.URL, objects.Region: "eu-7"}}), tbl)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(signed.URL, v.store.URL+"/"), "the operator's word counts")
	require.Contains(t, signed.URL, "eu-7")
}

// A catalog that cannot be asked, or refuses, is told apart from one that gives nothing.
func TestVended_ErrorsNameTheStep(t *testing.T) {
	v := newVendor(t)
	tbl, err := v.cat.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	p := catalogtest.NewProxy(t, v.url)
	c := v.open(t, p.URL, func(o *rest.Options) { o.Vending = &rest.Vending{} })
	p.Arm(map[int]catalogtest.HTTPFault{1: {Status: http.StatusForbidden}}) // the first asks for the configuration
	_, err = c.Store(t.Context(), tbl.Ident, tbl.Location)
	require.ErrorIs(t, err, catalog.ErrPermanent)
	require.ErrorContains(t, err, "get credentials for "+tbl.Location+" from the catalog")
	p.Arm(map[int]catalogtest.HTTPFault{0: {Status: http.StatusBadGateway}})
	_, err = c.Store(t.Context(), tbl.Ident, tbl.Location)
	require.ErrorContains(t, err, "502")
	require.NotErrorIs(t, err, catalog.ErrPermanent)
	p.Arm(nil)
	_, err = c.Store(t.Context(), tbl.Ident, tbl.Location)
	require.NoError(t, err)
}
