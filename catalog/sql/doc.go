// Package sql is the Iceberg SQL catalog over SQLite and PostgreSQL: two tables that PyIceberg's SqlCatalog, Java's JdbcCatalog
// (schema V1, and V0 as it is found) and iceberg-go read and write as well.
//
// A commit is one conditional UPDATE of one row; what is around it is catalog/internal/pointer's.
//
// Invariants:
//   - A row is only ever changed by a statement that names the metadata location it expects (commit), or that there is none (create).
//   - SQLite writers of one process queue; SQLITE_BUSY from other processes is waited out until the caller's context ends.
//   - Tables made here lie exactly two levels below the warehouse, so that no table lies within another.
package sql
