package sql_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/catalogtest"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/objects/objectstest"
)

// openS3 opens a catalog in SQLite whose tables lie in a bucket.
func openS3(t testing.TB, s *objectstest.Server) *sql.Catalog {
	t.Helper()
	stores, err := storage.NewOpener(storage.Root{Props: s.Props(), Source: objects.Static(s.Props())})
	require.NoError(t, err)
	c, err := sql.Open(t.Context(), sql.Options{
		Name: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "catalog.db"), Warehouse: "s3a://" + objectstest.Bucket + "/ware house/", Stores: stores,
	})
	require.NoError(t, err)
	return c
}

func TestS3_Conformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Catalog { return openS3(t, objectstest.Start(t)) })
}

// Metadata files are written once, conditionally, and read once by whoever wrote or read them before.
func TestS3_Requests(t *testing.T) {
	s := objectstest.Start(t)
	c := openS3(t, s)
	defer c.Close()
	require.Equal(t, "s3://lake/ware house", c.Warehouse())
	ctx := t.Context()
	require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
	tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.NoError(t, err)
	assert.Equal(t, "s3://lake/ware house/demo/t", tbl.Location)
	s.Log()
	reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
	_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
	require.NoError(t, err)
	log := s.Log()
	require.Len(t, log, 2, "%q", log)
	assert.True(t, strings.HasPrefix(log[0], "HEAD ") && strings.HasPrefix(log[1], "PUT "), "%q", log)
}

// However the write of a metadata file fails, the commit lands or does not, and it is said which.
func TestS3_FaultAtEveryWrite(t *testing.T) {
	for name, f := range map[string]objectstest.Fault{
		"cut before": {}, "cut after": {Apply: true}, "500 before": {Status: 500, Code: "InternalError"}, "500 after": {Apply: true, Status: 500}, "slow down": {Status: 503, Code: "SlowDown"},
		"conflict": {Status: 409, Code: "ConditionalRequestConflict"}, "denied": {Status: 403, Code: "AccessDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := objectstest.Start(t)
			c := openS3(t, s)
			defer c.Close()
			ctx := t.Context()
			require.NoError(t, c.CreateNamespace(ctx, []string{"demo"}, false))
			tbl, err := c.Create(ctx, catalog.Ident{"demo", "t"}, catalogtest.Spec())
			require.NoError(t, err)
			reqs, ups := catalogtest.Append(tbl, catalogtest.SnapshotID())
			f.Method = http.MethodPut
			s.Fail(f)
			_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
			require.Zero(t, s.Pending())
			now, lerr := c.Load(ctx, tbl.Ident)
			require.NoError(t, lerr)
			if f.Status == http.StatusForbidden {
				require.ErrorIs(t, err, objects.ErrDenied)
				require.ErrorIs(t, err, catalog.ErrNotSent)
				require.Empty(t, now.Metadata.Snapshots())
				_, err = c.Commit(ctx, tbl.Ident, reqs, ups)
				require.NoError(t, err)
				return
			}
			require.NoError(t, err)
			require.Len(t, now.Metadata.Snapshots(), 1)
		})
	}
}

// A warehouse that is not there, or whose store does not answer, is told by the statement that needs it.
func TestS3_NoBucket(t *testing.T) {
	s := objectstest.Start(t)
	stores, err := storage.NewOpener(storage.Root{Props: s.Props(), Source: objects.Static(s.Props())})
	require.NoError(t, err)
	c, err := sql.Open(t.Context(), sql.Options{Name: "lake", URI: "sqlite://" + filepath.Join(t.TempDir(), "c.db"), Warehouse: "s3://none/wh", Stores: stores})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.CreateNamespace(t.Context(), []string{"demo"}, false))
	_, err = c.Create(t.Context(), catalog.Ident{"demo", "t"}, catalogtest.Spec())
	require.ErrorIs(t, err, objects.ErrNoBucket)
	tables, err := c.Tables(t.Context(), []string{"demo"})
	require.NoError(t, err)
	require.Empty(t, tables)
}
