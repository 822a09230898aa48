package checkup_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/scheduler/config"
)

// A Delta catalog is nothing but its store, which is tried below the root; it has to create what is not there and nothing else.
func TestCheck_Delta(t *testing.T) {
	t.Parallel()
	store := objectstest.Start(t)
	store.Demand(account())
	c := onStore(t, store.URL)
	change(c, func(lake *config.Catalog) {
		*lake = config.Catalog{
			Type: config.CatalogDelta, Sink: config.CatalogDelta, Root: "s3://" + objectstest.Bucket + "/tables", Properties: lake.Properties, Secret: lake.Secret,
			Credentials: config.Credentials{Mode: config.CredentialsPresigned},
		}
	})
	bad, all := check(t, c)
	require.Empty(t, bad)
	require.Contains(t, all, "ok write only what is not there\n")
	require.Contains(t, all, "ok a signed request replaces nothing\n")
	require.NotContains(t, all, "list namespaces")

	store.Fail(objectstest.Fault{Method: http.MethodPut, Status: http.StatusForbidden, Code: "AccessDenied", Times: 99})
	bad, _ = check(t, c)
	require.Len(t, bad, 1)
	require.Contains(t, bad[0].Fix, "below the root")
}
