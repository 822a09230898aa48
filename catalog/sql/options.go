package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/internal/pointer"
	"github.com/signet-io/signet/catalog/storage"
)

// Options say where a catalog is.
type Options struct {
	// Name is what users type. Required.
	Name string
	// CatalogName is the catalog's name inside the database, which other engines must use too; Name if empty.
	CatalogName string
	// URI is sqlite:///abs/file.db or postgresql://user@host:port/database?options.
	URI string
	// Password for PostgreSQL. It is kept in the connection's settings and shown nowhere.
	Password string
	// Warehouse is where new tables go: file:///dir, /dir, or a place that Stores serves, as s3://bucket/prefix.
	Warehouse string
	// Stores opens the warehouse, and whatever else tables name; storage.Local if nil.
	Stores storage.Opener
	// CacheBytes bounds the metadata kept parsed, measured as JSON; 64 MiB if 0.
	CacheBytes int64
	// Logger hears of what could not be cleaned up; slog.Default if nil.
	Logger *slog.Logger
}

// Catalog implements catalog.Catalog.
type Catalog struct {
	*pointer.Engine
	name        string
	catalogName string
	db          *database
}

var _ catalog.Catalog = (*Catalog)(nil)

// Open connects, and makes the two tables if the database has none.
func Open(ctx context.Context, o Options) (*Catalog, error) {
	if o.CatalogName == "" {
		o.CatalogName = o.Name
	}
	c := &Catalog{name: o.Name, catalogName: o.CatalogName}
	var err error
	c.Engine, err = pointer.New(ctx, pointer.Options{
		Name: o.Name, Warehouse: o.Warehouse, Stores: o.Stores, MaxLocation: maxLocation, CacheBytes: o.CacheBytes, Logger: o.Logger,
	}, rows{c})
	if err != nil {
		return nil, err
	}
	if c.db, err = openDatabase(ctx, o); err != nil {
		return nil, fmt.Errorf("catalog %s: %w", o.Name, err)
	}
	return c, nil
}

func openDatabase(ctx context.Context, o Options) (*database, error) {
	scheme, rest, _ := strings.Cut(o.URI, "://")
	var db *database
	var err error
	switch strings.ToLower(scheme) {
	case "sqlite":
		db, err = openSQLite(ctx, rest)
	case "postgresql", "postgres":
		db, err = openPostgres(o.URI, o.Password)
	default:
		// The URI itself may hold a password that somebody put there: only its scheme is told.
		return nil, fmt.Errorf("uri with scheme %q: want sqlite:///file.db or postgresql://user@host:port/database", scheme)
	}
	if err != nil {
		return nil, err
	}
	if err := db.init(ctx); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error { return c.db.close() }

var errNoRows = stdsql.ErrNoRows
