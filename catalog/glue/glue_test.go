package glue_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/glue"
	"github.com/signet-io/signet/catalog/glue/gluetest"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// glueQuirks are those of Glue's databases.
var glueQuirks = catalogtest.Quirks{OneLevel: true, LowerCase: true}

var keys = map[string]string{"glue.access-key-id": "canary-key", "glue.secret-access-key": "canary-secret"}

func open(t testing.TB, url, warehouse string, stores storage.Opener) *glue.Catalog {
	t.Helper()
	c, err := glue.Open(t.Context(), glue.Options{
		Name: "lake", Warehouse: warehouse, Properties: map[string]string{"glue.endpoint": url}, Secrets: keys, Stores: stores, MaxBackoff: time.Millisecond,
	})
	require.NoError(t, err)
	return c
}

func TestConformance(t *testing.T) {
	catalogtest.RunWith(t, glueQuirks, func(t *testing.T) catalog.Catalog {
		return open(t, gluetest.Start(t).URL, t.TempDir()+"/ware house", nil)
	})
}

func TestConformance_S3(t *testing.T) {
	catalogtest.RunWith(t, glueQuirks, func(t *testing.T) catalog.Catalog {
		s := objectstest.Start(t)
		stores, err := storage.NewOpener(storage.Root{Props: s.Props(), Source: objects.Static(s.Props())})
		require.NoError(t, err)
		return open(t, gluetest.Start(t).URL, "s3://"+objectstest.Bucket+"/ware house", stores)
	})
}

// glueFaults are what the service itself answers, whether it has done what it was asked for or not.
func glueFaults() []catalogtest.HTTPFault {
	var out []catalogtest.HTTPFault
	for _, applied := range []bool{false, true} {
		for _, f := range []catalogtest.HTTPFault{
			{Code: "ThrottlingException"},
			{Code: "ConcurrentModificationException"},
			{Code: "OperationTimeoutException"},
			{Code: "AlreadyExistsException"},
			{Code: "InternalServiceException", Status: http.StatusInternalServerError},
			{Code: "ServiceUnavailableException", Status: http.StatusServiceUnavailable},
			{Code: "ResourceNotReadyException"},
			{Status: http.StatusTemporaryRedirect, Plain: true},
		} {
			f.Applied = applied
			out = append(out, f)
		}
	}
	return append(out, catalogtest.HTTPFault{Code: "AccessDeniedException"}, catalogtest.HTTPFault{Code: "InvalidInputException"}, catalogtest.HTTPFault{Code: "ExpiredTokenException"})
}

// However any request of any operation fails, what is said about the table is true.
func TestFaultAtEveryCall(t *testing.T) {
	srv := gluetest.Start(t)
	p := catalogtest.NewProxy(t, srv.URL)
	warehouse := t.TempDir()
	truth := open(t, srv.URL, warehouse, nil)
	require.NoError(t, truth.CreateNamespace(t.Context(), []string{"demo"}, false))
	catalogtest.FaultAtEveryCall(t, p, []string{"demo"}, truth, func(t *testing.T) catalog.Catalog { return open(t, p.URL, warehouse, nil) }, glueFaults()...)
}
