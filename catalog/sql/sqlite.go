package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyMillis is how long the driver itself waits for a lock. A wait there does not hear of a cancelled context, so it is short,
// and database.retry goes on.
const busyMillis = 200

// openSQLite opens /abs/file.db, which is what follows sqlite:// in a URI. The path is taken as it is written.
//
// A new database is put into WAL mode: readers and the writer do not wait for each other, and a commit costs one sync. Other
// engines open that without being told. A database that exists keeps its mode.
func openSQLite(_ context.Context, path string) (*database, error) {
	if strings.HasPrefix(path, "//") { // sqlite:////abs/file.db is how SQLAlchemy, and so PyIceberg, writes an absolute path
		path = "/" + strings.TrimLeft(path, "/")
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("uri sqlite://%s: want an absolute path, sqlite:///dir/file.db", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path}).String() +
		"?_pragma=busy_timeout(" + strconv.Itoa(busyMillis) + ")&_pragma=synchronous(FULL)"
	read, err := stdsql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	write, err := stdsql.Open("sqlite", dsn+"&_txlock=immediate")
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(4)
	write.SetMaxOpenConns(1) // the queue of this process' writers
	return &database{read: read, write: write, sqlite: true, fresh: useWAL, busy: isBusy}, nil
}

func useWAL(ctx context.Context, db *stdsql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode=WAL`).Scan(&mode); err != nil {
		return fmt.Errorf("set the journal mode: %w", err)
	}
	return nil // file systems without shared memory answer another mode, which works too
}

func isBusy(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	primary := e.Code() & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
}
