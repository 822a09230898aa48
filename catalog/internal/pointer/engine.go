package pointer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
)

// Row is what a catalog holds of one table.
type Row struct {
	Location string // of the table's metadata.json
	Version  string // another one after each change of the row, where the catalog counts them; "" where it does not
	State    any    // what Swap needs besides; the engine does not look at it
}

// Next is what a row is to point to.
type Next struct {
	Location string
	Metadata table.Metadata
}

// ErrStale is in an error of Swap that says: refused, for the row is not the one that was read. Alone it is no certainty, for something in between may have sent the request twice.
var ErrStale = errors.New("the row is another by now")

// Rows are the pointers of a catalog. Each call asks the catalog to change something once at most. An error of Swap and Insert means that nobody knows, but for ErrPermanent and
// ErrNotSent: nothing was changed and nothing will be.
type Rows interface {
	// Get reads a row. A missing table or namespace is ErrNotFound.
	Get(ctx context.Context, id catalog.Ident) (Row, error)
	// Swap moves the pointer, if the row is still base. false: it is not, and nothing was changed.
	Swap(ctx context.Context, id catalog.Ident, base Row, next Next) (bool, error)
	// Insert makes a row, if there is none. false: there is one.
	Insert(ctx context.Context, id catalog.Ident, next Next) (bool, error)
	// CheckNew saves the writing of metadata where Insert would refuse a new table of that name: ErrConflict if it is taken, ErrNotFound with ErrPermanent without a namespace.
	CheckNew(ctx context.Context, id catalog.Ident) error
	// Place is where a new table of that name goes, if nothing is there yet: below the warehouse.
	Place(ctx context.Context, id catalog.Ident) (string, error)
	// CheckLocation refuses a location below the warehouse, with ErrPermanent, where one table would hold another.
	CheckLocation(ctx context.Context, id catalog.Ident, location string) error
}

// Options are what the tables of a catalog need.
type Options struct {
	Name        string         // of the catalog, as users type it
	Warehouse   string         // URI below which new tables go
	Stores      storage.Opener // storage.Local if nil
	MaxLocation int            // bytes that a row can hold of a location; 0: any number
	CacheBytes  int64          // of metadata kept parsed, measured as JSON; 64 MiB if 0
	Logger      *slog.Logger   // slog.Default if nil
}

// Engine is the part of catalog.Catalog that is about metadata.
type Engine struct {
	rows        Rows
	warehouse   string
	stores      storage.Opener
	maxLocation int
	cache       *cache
	locks       keyLocks
	log         *slog.Logger
}

// New checks the options. Its errors name the catalog.
func New(ctx context.Context, o Options, rows Rows) (*Engine, error) {
	if o.Name == "" {
		return nil, errors.New("catalog: it has no name")
	}
	warehouse, err := uri.Parse(o.Warehouse)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: warehouse: %w", o.Name, err)
	}
	if !warehouse.Remote() && len(warehouse.Segments) == 0 {
		return nil, fmt.Errorf("catalog %s: warehouse: the root of the file system cannot be one", o.Name)
	}
	if o.Stores == nil {
		o.Stores = storage.Local
	}
	if _, err := o.Stores.Open(ctx, warehouse.String()); err != nil {
		return nil, fmt.Errorf("catalog %s: warehouse: %w", o.Name, err)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Engine{
		rows: rows, warehouse: warehouse.String(), stores: o.Stores, maxLocation: o.MaxLocation, cache: newCache(o.CacheBytes), log: o.Logger,
	}, nil
}

// Warehouse is the URI below which new tables go.
func (c *Engine) Warehouse() string { return c.warehouse }

// Store implements catalog.Catalog.
func (c *Engine) Store(ctx context.Context, _ catalog.Ident, location string) (storage.Store, error) {
	return c.stores.Open(ctx, location)
}

// NotSent marks what failed before anything was asked of the catalog, unless it is a definite answer anyway.
func NotSent(err error) error { return notSent(err) }
