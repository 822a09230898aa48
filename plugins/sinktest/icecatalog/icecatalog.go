// Package icecatalog gives the conformance suite an Iceberg catalog: a SQLite database and a local directory, for sinks that commit through a catalog. It is a
// package of its own so that the tests of other sinks need no database driver.
package icecatalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/sql"
	"github.com/signet-io/signet/plugins/sdk"
	"github.com/signet-io/signet/plugins/sinktest"
)

// In is Options.Catalog over a database and a warehouse in a directory, which the caller removes.
func In(dir string) func(ctx context.Context, namespace, name string) (sinktest.Catalog, error) {
	return func(ctx context.Context, namespace, name string) (sinktest.Catalog, error) {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		c, err := sql.Open(ctx, sql.Options{
			Name: "conformance", URI: "sqlite://" + filepath.Join(dir, "catalog.db"), Warehouse: "file://" + filepath.Join(dir, "warehouse"),
		})
		if err != nil {
			return nil, err
		}
		t := &table{catalog: c, ident: catalog.Ident{namespace, name}}
		if err = c.CreateNamespace(ctx, t.ident.Namespace(), true); err == nil {
			t.location, err = c.DefaultLocation(ctx, t.ident)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return t, nil
	}
}

type table struct {
	catalog  *sql.Catalog
	ident    catalog.Ident
	location string
}

func (t *table) Location() string { return t.location }

func (t *table) Close() error { return t.catalog.Close() }

func (t *table) Load(ctx context.Context) (string, []byte, error) {
	now, err := t.catalog.Load(ctx, t.ident)
	if errors.Is(err, catalog.ErrNotFound) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, refusal(err)
	}
	raw, err := t.catalog.RawMetadata(ctx, now)
	return now.MetadataLocation, raw, refusal(err)
}

func (t *table) Commit(ctx context.Context, requirements, updates []byte) (string, error) {
	now, err := t.catalog.Commit(ctx, t.ident, requirements, updates)
	if err != nil || now == nil {
		return "", refusal(err)
	}
	return now.MetadataLocation, nil
}

func (t *table) Create(ctx context.Context, r *hostv1.CreateTableRequest) (string, []byte, error) {
	if _, there, err := t.Load(ctx); err != nil || there != nil {
		return "", nil, errors.Join(err, sdk.Refuse(sdk.Exists, "the table exists"))
	}
	now, err := t.catalog.Create(ctx, t.ident, catalog.CreateSpec{
		Schema: r.GetSchema(), PartitionSpec: r.GetPartitionSpec(), SortOrder: r.GetSortOrder(), Properties: r.GetProperties(), Location: t.location,
	})
	if err != nil {
		return "", nil, refusal(err)
	}
	raw, err := t.catalog.RawMetadata(ctx, now)
	return now.MetadataLocation, raw, refusal(err)
}

func (t *table) Drop(ctx context.Context) error { return refusal(t.catalog.Drop(ctx, t.ident)) }

func (t *table) Object(uri string) ([]byte, error) {
	rel, ok := strings.CutPrefix(uri, t.location+"/")
	if !ok || !filepath.IsLocal(rel) {
		return nil, nil
	}
	body, err := os.ReadFile(filepath.Join(strings.TrimPrefix(t.location, "file://"), rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return body, err
}

// refusal gives definite errors their kind; the others leave the outcome unknown.
func refusal(err error) error {
	for _, k := range []struct {
		err  error
		kind hostv1.RefusalKind
	}{
		{catalog.ErrNotSent, sdk.Retryable},
		{catalog.ErrConflict, sdk.Conflict},
		{catalog.ErrExists, sdk.Exists},
		{catalog.ErrNotFound, sdk.NotFound},
		{catalog.ErrPermanent, sdk.Permanent},
	} {
		if errors.Is(err, k.err) {
			return sdk.Refuse(k.kind, "%v", err)
		}
	}
	return err
}
