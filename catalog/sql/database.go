package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"regexp"
)

// database is what SQLite and PostgreSQL have in common: statements with $1, $2, … in this order, each used once.
type database struct {
	read, write *stdsql.DB // the same for PostgreSQL
	sqlite      bool
	fresh       func(context.Context, *stdsql.DB) error // before the tables are made; may be nil
	busy        func(error) bool                        // refused before it did anything: another process holds the lock
	v0          bool                                    // iceberg_tables has no iceberg_type
}

// The columns and lengths are those of PyIceberg and of Java's JdbcCatalog.
const (
	createTables = `CREATE TABLE IF NOT EXISTS iceberg_tables (
	catalog_name VARCHAR(255) NOT NULL,
	table_namespace VARCHAR(255) NOT NULL,
	table_name VARCHAR(255) NOT NULL,
	metadata_location VARCHAR(1000),
	previous_metadata_location VARCHAR(1000),
	iceberg_type VARCHAR(5),
	PRIMARY KEY (catalog_name, table_namespace, table_name))`
	createProperties = `CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
	catalog_name VARCHAR(255) NOT NULL,
	namespace VARCHAR(255) NOT NULL,
	property_key VARCHAR(255) NOT NULL,
	property_value VARCHAR(1000),
	PRIMARY KEY (catalog_name, namespace, property_key))`
)

const (
	maxName     = 255
	maxLocation = 1000
)

// init finds or makes the tables. Two processes may do it at the same time, which PostgreSQL may answer with an error for
// one of them: then they are there when looked for again.
func (d *database) init(ctx context.Context) error {
	columns, err := d.columns(ctx)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if len(columns) == 0 {
		if d.fresh != nil {
			if err := d.retry(ctx, func() error { return d.fresh(ctx, d.write) }); err != nil {
				return err
			}
		}
	}
	for _, ddl := range []string{createTables, createProperties} {
		if _, err = d.exec(ctx, ddl); err != nil {
			break
		}
	}
	columns, again := d.columns(ctx)
	if again != nil {
		return errors.Join(err, again)
	}
	if len(columns) == 0 {
		return fmt.Errorf("make the catalog's tables: %w", err)
	}
	d.v0 = !columns["iceberg_type"]
	return nil
}

func (d *database) columns(ctx context.Context) (map[string]bool, error) {
	query := `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'iceberg_tables'`
	if d.sqlite {
		query = `SELECT name FROM pragma_table_info('iceberg_tables')`
	}
	names, err := d.strings(ctx, query)
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out, err
}

// exec runs one statement, which is its own transaction, and returns the number of rows that it changed.
func (d *database) exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = d.retry(ctx, func() error {
		res, err := d.write.ExecContext(ctx, d.bind(query), args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

func (d *database) row(ctx context.Context, query string, args []any, dest ...any) error {
	return d.retry(ctx, func() error { return d.read.QueryRowContext(ctx, d.bind(query), args...).Scan(dest...) })
}

func (d *database) strings(ctx context.Context, query string, args ...any) (out []string, err error) {
	err = d.retry(ctx, func() error {
		out = nil
		rows, err := d.read.QueryContext(ctx, d.bind(query), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var s string
			if err := rows.Scan(&s); err != nil {
				return err
			}
			out = append(out, s)
		}
		return rows.Err()
	})
	return out, err
}

// retry waits for a lock of another process. The driver itself waits a moment for each try, so this needs no pause.
func (d *database) retry(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || d.busy == nil || !d.busy(err) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

var placeholder = regexp.MustCompile(`\$\d+`)

func (d *database) bind(query string) string {
	if !d.sqlite {
		return query
	}
	return placeholder.ReplaceAllString(query, "?")
}

func (d *database) close() error {
	err := d.read.Close()
	if d.write != d.read {
		err = errors.Join(err, d.write.Close())
	}
	return err
}
