// Package result turns a query into an Arrow IPC stream.
//
// Invariants:
//
//   - The result is never held whole: one DuckDB chunk (2,048 rows) and one send buffer are in memory at a time.
//   - send is called with at most MaxChunk bytes, however large a row is, and never after an error.
//   - A result of no rows is a valid stream with the query's schema.
//   - Above the cap the stream ends with an error that names the size and the setting; exactly at the cap it passes.
//   - Success means that every row was read and that no source changed meanwhile.
package result
