package catalog

import (
	"context"
	"encoding/json"

	"github.com/apache/iceberg-go/table"

	"github.com/signet-io/signet/catalog/storage"
)

// Table is one table as it was when it was loaded. It is a value to read: implementations cache and share the metadata.
type Table struct {
	Ident            Ident
	UUID             string
	Location         string // as the table's metadata says it
	MetadataLocation string // the metadata.json this was read from
	Metadata         table.Metadata
	// Raw is the metadata as the catalog itself gave it; nil where it only said where the file is. Nobody changes it.
	Raw []byte
}

// CreateSpec is what a new table consists of. The three documents are Iceberg REST JSON; PartitionSpec and SortOrder may be
// empty for none. An empty Location means DefaultLocation. The property format-version chooses the version (default 2).
type CreateSpec struct {
	Schema        json.RawMessage
	PartitionSpec json.RawMessage
	SortOrder     json.RawMessage
	Properties    map[string]string
	Location      string
}

// AssertMetadataLocation is the type of a requirement, {"type": …, "metadata-location": …}: the table's metadata must be at that location, and nowhere else, when
// the request takes effect. Since every commit writes metadata at a location of its own, such a request can never land once the table has moved on.
const AssertMetadataLocation = "assert-metadata-location"

// Catalog is one configured catalog. Implementations are safe for concurrent use, and catalogtest holds each to this contract.
type Catalog interface {
	// Name is the name users type in front of namespaces.
	Name() string

	// Load returns the table's newest state. A missing table or namespace is ErrNotFound.
	Load(ctx context.Context, id Ident) (*Table, error)

	// RawMetadata returns the bytes of the table's metadata.json, decompressed, otherwise verbatim.
	RawMetadata(ctx context.Context, t *Table) ([]byte, error)

	// Commit applies updates to the table if the requirements hold; both are JSON arrays as in Iceberg REST. It is one
	// compare-and-swap. The answers: nil (landed, and the table as it is then), ErrConflict (definitely did not land, the
	// requirements no longer hold: reload and ask again), ErrPermanent (definitely refused, asking again is useless), and
	// any other error: unknown (ErrNotSent among them says that
	// this call sent nothing). A request that carries an add-snapshot whose id the table already holds has landed.
	// With an assert-create among the requirements the table must not exist and is created by this very step. A requirement that REST does not have is
	// AssertMetadataLocation: a catalog that cannot hold a request to it refuses the request.
	Commit(ctx context.Context, id Ident, requirements, updates []byte) (*Table, error)

	// Create makes an empty table. A table of that name is ErrExists, a missing namespace ErrNotFound.
	Create(ctx context.Context, id Ident, spec CreateSpec) (*Table, error)

	// Drop removes the table from the catalog and leaves its files. A missing table is ErrNotFound.
	Drop(ctx context.Context, id Ident) error

	// DefaultLocation is where a new table of that name goes: always inside the warehouse, and never a place that holds
	// files already. Two calls may give two answers.
	DefaultLocation(ctx context.Context, id Ident) (string, error)

	// CreateNamespace makes a namespace; ErrExists unless ifNotExists.
	CreateNamespace(ctx context.Context, ns []string, ifNotExists bool) error

	// Namespaces lists all namespaces, sorted; a namespace is listed once it holds a table, created or not.
	Namespaces(ctx context.Context) ([][]string, error)

	// Tables lists the tables directly in ns, sorted. A missing namespace is ErrNotFound.
	Tables(ctx context.Context, ns []string) ([]Ident, error)

	// Store opens the storage below a location of the table, with the credentials for that table where the catalog gives some; without a table, with the operator's.
	// Nothing outside that location can be reached through it.
	Store(ctx context.Context, id Ident, location string) (storage.Store, error)

	// Close releases connections. Calls that are running may fail.
	Close() error
}
