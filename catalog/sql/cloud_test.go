package sql_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects/azure"
	"github.com/signet-io/signet/internal/objects/gcs"
	"github.com/signet-io/signet/internal/objects/objectstest"
	"github.com/signet-io/signet/internal/uri"
)

// openCloud opens a catalog in SQLite whose tables lie in a store that is not S3.
func openCloud(t *testing.T, warehouse string, root storage.Root) *sql.Catalog {
	t.Helper()
	stores, err := storage.NewOpener(root)
	require.NoError(t, err)
	c, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: warehouse, Stores: stores})
	require.NoError(t, err)
	return c
}

func TestGCS_Conformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog {
		who, err := gcs.NewIdentity(objectstest.StartGCS(t).GCSProps(t))
		require.NoError(t, err)
		return openCloud(t, "gs://"+objectstest.Bucket+"/ware house", storage.Root{Scheme: uri.GCS, Client: who.Client})
	})
}

func TestAzure_Conformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog {
		who, err := azure.NewIdentity(objectstest.StartAzure(t).AzureProps())
		require.NoError(t, err)
		return openCloud(t, "abfss://"+objectstest.AzureBucket+"/ware house", storage.Root{Scheme: uri.Azure, Client: who.Client})
	})
}
