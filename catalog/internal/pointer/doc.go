// Package pointer is what catalogs have in common that hold, of each table, where its metadata.json is, and nothing else that counts: a commit writes the next file and moves the
// pointer to it, if it is still where it was. How a pointer is held and moved is the business of each catalog (Rows).
//
// The package does it itself rather than through iceberg-go's catalogs, because it must know afterwards which of three things is true: the pointer moved to our metadata, it never will,
// or nobody can tell.
//
// Invariants:
//   - A pointer is only ever moved away from the row that was read (commit), or made where there is none (create).
//   - metadata.json is whole and synced, its directory too, before anything is asked of the catalog.
//   - After a failed step the row is read again. What is found decides, never the error's text.
//   - Parsed metadata is cached by location, size and time, for the files never change. Callers only read it.
package pointer
