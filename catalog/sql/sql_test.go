package sql_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
)

func openSQLite(t testing.TB, dir string) *sql.Catalog {
	t.Helper()
	c, err := sql.Open(t.Context(), sql.Options{
		Name: "lake", URI: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "file://" + filepath.Join(dir, "ware house"),
	})
	require.NoError(t, err)
	return c
}

func TestSQLite_Conformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog { return openSQLite(t, t.TempDir()) })
}

func TestPostgres_Conformance(t *testing.T) {
	uri := catalogtest.StartPostgres(t)
	var n atomic.Int64
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog {
		c, err := sql.Open(t.Context(), sql.Options{
			Name: "lake", CatalogName: fmt.Sprint("c", n.Add(1)), URI: uri, Password: catalogtest.PostgresPassword, Warehouse: t.TempDir(),
		})
		require.NoError(t, err)
		return c
	})
}

// A canary password reaches the server and no text.
func TestPostgres_PasswordStaysHidden(t *testing.T) {
	uri := catalogtest.StartPostgres(t)
	const wrong = "canary-wrong-9e1d"
	_, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: uri, Password: wrong, Warehouse: t.TempDir()})
	require.Error(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "canary")

	c, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: uri, Password: catalogtest.PostgresPassword, Warehouse: t.TempDir()})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Load(ctx, catalog.Ident{"demo", "t"})
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "canary")
}
