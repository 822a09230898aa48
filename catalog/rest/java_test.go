package rest_test

import (
	"testing"

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
