package duckdb

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	driver "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// rawConn is the C handle below a *sql.Conn.
type rawConn struct{ conn mapping.Connection }

// rawConnOf reads the C handle of a connection. The driver has no accessor for it, and neither a streamed result nor an interrupt from
// another goroutine can be had through database/sql; a release that renames the field fails here, by name, and in this package's tests.
func rawConnOf(conn *sql.Conn) (raw rawConn, err error) {
	err = conn.Raw(func(dc any) error {
		c, ok := dc.(*driver.Conn)
		if !ok {
			return fmt.Errorf("want a DuckDB connection, have %T", dc)
		}
		field := reflect.ValueOf(c).Elem().FieldByName("conn")
		if !field.IsValid() || field.Type() != reflect.TypeFor[mapping.Connection]() {
			return errors.New("this release of duckdb-go keeps its C handle elsewhere; executor/duckdb/raw.go must follow")
		}
		raw.conn.Ptr = field.FieldByName("Ptr").UnsafePointer()
		return nil
	})
	return raw, err
}

func (r rawConn) interrupt() {
	if r.conn.Ptr != nil {
		mapping.Interrupt(r.conn)
	}
}

// Raw calls f with the C handle of the instance's connection, for callers that stream results. f does not keep it.
func (i *Instance) Raw(f func(mapping.Connection) error) error {
	raw, err := rawConnOf(i.conn)
	if err != nil {
		return err
	}
	return f(raw.conn)
}
