// Package sql is the Iceberg SQL catalog over SQLite and PostgreSQL: two tables that PyIceberg's SqlCatalog, Java's JdbcCatalog
// (schema V1, and V0 as it is found) and iceberg-go read and write as well.
//
// A commit is one conditional UPDATE of one row. The package does it itself rather than through iceberg-go's catalog, because
// it must know afterwards which of three things is true: the row moved to our metadata, it never will, or nobody can tell.
//
// Invariants:
//   - A row is only ever changed by a statement that names the metadata location it expects (commit), or that there is none (create).
//   - metadata.json is whole and synced, its directory too, before the statement is sent.
//   - After a failed statement the row is read again. What is found decides, never the error's text.
//   - SQLite writers of one process queue; SQLITE_BUSY from other processes is waited out until the caller's context ends.
//   - Parsed metadata is cached by location, size and time, for the files never change. Callers only read it.
//   - Tables made here lie exactly two levels below the warehouse, so that no table lies within another.
package sql
