package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	driver "github.com/duckdb/duckdb-go/v2"

	"github.com/signet-io/signet/internal/mutant"
)

// Access names all that an instance may touch.
type Access struct {
	ReadFiles   []string // absolute paths of the input files
	WriteDirs   []string // absolute paths of directories that COPY may write below
	PartsDir    string   // where the parts of exchange sources lie, by PartName; they are among ReadFiles
	TempDir     string   // where DuckDB spills; empty: it may not spill
	MemoryBytes int64    // memory_limit; 0: as in the pool's Options
	Threads     int      // 0: 1
	// KeepOrder keeps the order of the input in the output of queries without ORDER BY. It costs memory on large writes.
	KeepOrder bool
	// OpenFiles is how many files a partitioned COPY may have open: with fewer than partitions some come in several files. 0: DuckDB's own limit.
	OpenFiles int
	// BindOnly switches off the optimizer, which nothing needs that only binds. It also computes constant expressions, so that preparing a
	// query would run parts of it; DuckDB still computes some in planning.
	BindOnly bool
	// NoDeletes leaves delete files out of the views of tables: for those that bind and plan and read no row. The columns are the same, and the rows are
	// not told apart by joins that would look as if they were the query's.
	NoDeletes bool
}

// Setup prepares an instance before it is locked.
type Setup func(ctx context.Context, conn *sql.Conn) error

// Instance is one DuckDB, in memory, with one connection. It is not safe for concurrent use, except for Interrupt and Close.
type Instance struct {
	db      *sql.DB
	conn    *sql.Conn
	opts    Options
	access  Access
	sources []*boundSource
	rows    *fileRows // of views over tables; nil: there are none
	uses    int

	mu          sync.Mutex
	raw         rawConn // for Interrupt; zero after Close
	interrupted bool
}

// startOptions apply while the instance opens, when DuckDB would otherwise start one thread per core.
const startOptions = "?threads=1&preserve_insertion_order=false&autoinstall_known_extensions=false&autoload_known_extensions=false" +
	"&allow_community_extensions=false&allow_persistent_secrets=false"

func open(ctx context.Context, opts Options) (*Instance, error) {
	connector, err := driver.NewConnector(startOptions, nil)
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	inst := &Instance{db: db, opts: opts.withDefaults()}
	if err := inst.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start DuckDB: %w", err), inst.Close())
	}
	return inst, nil
}

func (i *Instance) start(ctx context.Context) error {
	conn, err := i.db.Conn(ctx)
	if err != nil {
		return err
	}
	i.conn = conn
	if i.raw, err = rawConnOf(conn); err != nil {
		return err
	}
	stmts := []string{"SET TimeZone='UTC'", "SET temp_directory=''"}
	if i.opts.MemoryBytes > 0 {
		stmts = append(stmts, memoryLimit(i.opts.MemoryBytes))
	}
	if err := i.exec(ctx, stmts...); err != nil {
		return err
	}
	if i.opts.Setup != nil {
		return i.opts.Setup(ctx, conn)
	}
	return nil
}

func (i *Instance) exec(ctx context.Context, stmts ...string) error {
	_, err := i.conn.ExecContext(ctx, strings.Join(stmts, ";\n"))
	return err
}

// memoryLimit spells a limit; DuckDB takes no plain number.
func memoryLimit(bytes int64) string { return fmt.Sprintf("SET memory_limit='%dB'", bytes) }

// flushRows is how many rows a thread collects in a partitioned COPY with many files before it writes: DuckDB's own half a million took more than
// a gigabyte over 2,000 partitions.
const flushRows = 65536

// lock closes the doors in the one order that works: an allow-list cannot be set after external access is off, and nothing at all after the
// configuration is locked.
func (i *Instance) lock(ctx context.Context, a Access) error {
	for _, p := range slices.Concat(a.ReadFiles, a.WriteDirs, []string{a.TempDir}) {
		if p != "" && !filepath.IsAbs(p) {
			return fmt.Errorf("%q: want an absolute path", p)
		}
	}
	var stmts []string
	if a.Threads > 1 { // here and not ahead of need: DuckDB's threads inherit the priority of the one that starts them
		stmts = append(stmts, fmt.Sprintf("SET threads=%d", a.Threads))
	}
	if a.KeepOrder {
		stmts = append(stmts, "SET preserve_insertion_order=true")
	}
	if a.TempDir != "" {
		stmts = append(stmts, "SET temp_directory="+Literal(a.TempDir))
	}
	if a.MemoryBytes > 0 && a.MemoryBytes != i.opts.MemoryBytes {
		stmts = append(stmts, memoryLimit(a.MemoryBytes))
	}
	if a.OpenFiles > 0 {
		stmts = append(stmts, fmt.Sprintf("SET partitioned_write_max_open_files=%d", a.OpenFiles), fmt.Sprintf("SET partitioned_write_flush_threshold=%d", flushRows))
	}
	if a.BindOnly {
		stmts = append(stmts, "PRAGMA disable_optimizer")
	}
	if len(a.ReadFiles) > 0 {
		stmts = append(stmts, "SET allowed_paths="+ListLiteral(allowedPaths(a.ReadFiles)))
	}
	if len(a.WriteDirs) > 0 {
		stmts = append(stmts, "SET allowed_directories="+ListLiteral(a.WriteDirs))
	}
	i.access = a
	if mutant.On("duckdb/unlocked") {
		return i.exec(ctx, stmts...)
	}
	return i.exec(ctx, append(stmts, "SET enable_external_access=false", "SET lock_configuration=true")...)
}

// allowedPaths adds the escaped spelling of names that look like patterns: DuckDB checks the pattern and then the file it stands for.
func allowedPaths(files []string) []string {
	out := files
	for _, f := range files {
		if pattern, err := globEscape(f); err == nil && pattern != f {
			out = append(out[:len(out):len(out)], pattern)
		}
	}
	return out
}

// Conn is the instance's only connection. The caller does not close it.
func (i *Instance) Conn() *sql.Conn { return i.conn }

// Access is what the instance was locked to.
func (i *Instance) Access() Access { return i.access }

// Interrupt stops the running query, from any goroutine; its caller sees an interrupt error. A context that ends does the same.
func (i *Instance) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.interrupted = true
	i.raw.interrupt()
}

// Interrupted reports whether Interrupt was called.
func (i *Instance) Interrupted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.interrupted
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
