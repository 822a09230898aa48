// Package deletes writes delete files: position delete files (Iceberg format version 2) and deletion vectors in Puffin files (version 3).
//
// Invariants:
//
//   - A delete file is about one data file, and holds each position once, in order.
//   - The bytes of a deletion vector depend on its positions alone.
//   - Nothing is taken for written before it was closed without an error.
package deletes
