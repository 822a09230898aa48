package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	driver "github.com/duckdb/duckdb-go/v2"
)

// Access names all that an instance may touch.
type Access struct {
	ReadFiles   []string // absolute paths of the input files
	WriteDirs   []string // absolute paths of directories that COPY may write below
	TempDir     string   // where DuckDB spills; empty: it may not spill
	MemoryBytes int64    // memory_limit; 0: DuckDB's default, 80 % of the machine
	Threads     int      // 0: 1
	// KeepOrder keeps the order of the input in the output of queries without ORDER BY. It costs memory on large writes.
	KeepOrder bool
}

// Setup prepares an instance before it is locked.
type Setup func(ctx context.Context, conn *sql.Conn) error

// Instance is one DuckDB, in memory, with one connection. It is not safe for concurrent use, except for Interrupt and Close.
type Instance struct {
	db     *sql.DB
	conn   *sql.Conn
	access Access

	mu      sync.Mutex
	raw     rawConn // for Interrupt; zero after Close
	sources []*boundSource
}

// startOptions apply while the instance opens, when DuckDB would otherwise start one thread per core.
const startOptions = "?threads=1&autoinstall_known_extensions=false&autoload_known_extensions=false&allow_community_extensions=false" +
	"&allow_persistent_secrets=false&errors_as_json=false&TimeZone=UTC"

func open(ctx context.Context, setup Setup) (*Instance, error) {
	connector, err := driver.NewConnector(startOptions, nil)
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	inst := &Instance{db: db}
	if err := inst.start(ctx, setup); err != nil {
		return nil, errors.Join(fmt.Errorf("start DuckDB: %w", err), inst.Close())
	}
	return inst, nil
}

func (i *Instance) start(ctx context.Context, setup Setup) error {
	conn, err := i.db.Conn(ctx)
	if err != nil {
		return err
	}
	i.conn = conn
	if i.raw, err = rawConnOf(conn); err != nil {
		return err
	}
	if setup != nil {
		return setup(ctx, conn)
	}
	return nil
}

// lock closes the doors in the one order that works: an allow-list cannot be set after external access is off, and nothing at all after the
// configuration is locked.
func (i *Instance) lock(ctx context.Context, a Access) error {
	stmts, err := lockStatements(a)
	if err != nil {
		return err
	}
	if _, err := i.conn.ExecContext(ctx, strings.Join(stmts, ";\n")); err != nil {
		return err
	}
	i.access = a
	return nil
}

func lockStatements(a Access) ([]string, error) {
	for _, p := range append(append(append([]string{}, a.ReadFiles...), a.WriteDirs...), a.TempDir) {
		if p != "" && !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%q: want an absolute path", p)
		}
	}
	stmts := []string{
		"SET threads=" + fmt.Sprint(max(1, a.Threads)),
		"SET preserve_insertion_order=" + fmt.Sprint(a.KeepOrder),
		"SET temp_directory=" + Literal(a.TempDir),
	}
	if a.MemoryBytes > 0 {
		stmts = append(stmts, fmt.Sprintf("SET memory_limit='%d B'", a.MemoryBytes))
	}
	return append(stmts,
		"SET allowed_paths="+ListLiteral(a.ReadFiles),
		"SET allowed_directories="+ListLiteral(a.WriteDirs),
		"SET enable_external_access=false",
		"SET lock_configuration=true",
	), nil
}

// Conn is the instance's only connection. The caller does not close it.
func (i *Instance) Conn() *sql.Conn { return i.conn }

// Access is what the instance was locked to.
func (i *Instance) Access() Access { return i.access }

// Interrupt stops the running query, from any goroutine; its caller sees an interrupt error. A context that ends does the same.
func (i *Instance) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.raw.interrupt()
}

// Close frees the instance and all its memory. It may be called twice.
func (i *Instance) Close() error {
	i.mu.Lock()
	i.raw = rawConn{}
	i.mu.Unlock()
	var errs []error
	if i.conn != nil {
		if err := i.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, i.db.Close())...)
}
