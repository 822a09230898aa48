package flightsql

import (
	"context"
	"io"
	"os"

	planv1 "github.com/signet-io/signet/api/plan/v1"
	schedulerv1 "github.com/signet-io/signet/api/scheduler/v1"
)

// Statement is what a client wants to be run.
type Statement struct {
	SQL     string
	Key     string // idempotency key
	Catalog string // default catalog and schema of names that give neither
	Schema  string
	// Settings of the statement by name.
	Settings map[string]string

	// Input is a Parquet file that the statement reads as InputName. It is the backend's from Submit on.
	Input string
	// InputIdentity tells statements with the same key and different rows apart; the text of SQL does not count then.
	InputIdentity []string
}

// Location is where an executor has the rows of a job. They can be had from the scheduler all the same.
type Location struct {
	URI     string // "": clients cannot go there
	Attempt string
	Secret  string // for the ticket
	Columns []*planv1.Column
	Rows    int64
	Bytes   int64
}

// InputName is the name by which a statement's text refers to Statement.Input.
const InputName = "arrow-stream.parquet"

// Backend is what the server needs of the scheduler. Its errors are gRPC statuses. A principal sees its own jobs only.
type Backend interface {
	// Submit makes a job of the statement, or finds the one that its key names.
	Submit(principal string, st Statement) (jobID string, existing bool, err error)
	// Job is the job as it is now, and a channel that is closed at its next change.
	Job(principal, jobID string) (*schedulerv1.Job, <-chan struct{}, error)
	// Rows opens the rows of a job that has any: an Arrow IPC stream of so many bytes, readable until it is closed.
	Rows(principal, jobID string) (io.ReadCloser, int64, error)
	// Location is the executor that has these rows; nil where they are here.
	Location(principal, jobID string) (*Location, error)
	// Cancel asks for the job's end; if it will not be cancelled, message says what happened instead.
	Cancel(principal, jobID string) (cancelled bool, message string, err error)
	// Columns tells the columns of the statement's result without running it.
	Columns(ctx context.Context, principal string, st Statement) ([]*planv1.Column, error)
	// Parameters tells the engine's types of $1, $2, … in a query; "" where it does not say.
	Parameters(ctx context.Context, principal string, query Statement) ([]string, error)
	// NewInput makes a file for Statement.Input.
	NewInput() (*os.File, error)

	// Catalogs, Schemas and Tables list what the principal may see.
	Catalogs(principal string) []string
	// Schemas lists the schemas of a catalog, each as its parts.
	Schemas(ctx context.Context, principal, catalog string) ([][]string, error)
	Tables(ctx context.Context, principal, catalog string, schema []string) ([]string, error)
	// Table describes the table that a name of one or more parts means.
	Table(ctx context.Context, principal string, name []string, defaults Statement) (*planv1.Schema, error)
}
