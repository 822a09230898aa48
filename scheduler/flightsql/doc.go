// Package flightsql serves Arrow Flight SQL: statements, prepared statements, ingest of Arrow streams and metadata, over a Backend that the
// scheduler implements. It translates between the protocol and jobs and decides nothing about them.
//
// Invariants:
//   - A statement runs when its FlightInfo is asked for, once; fetching its rows runs nothing, however often it is done.
//   - The schema of a FlightInfo is the schema of the rows that follow, zero rows included.
//   - A ticket or handle is worth something only to the principal that it was given to, in this process, until it expires. Unknown, foreign and
//     expired ones look the same.
//   - The values of parameters reach the engine as literals of their types that this package writes; no text of a client's is put between a
//     statement's tokens.
//   - An ingest is one job with one commit. A stream that breaks commits nothing, and its file is removed.
//   - Of rows, at most a few batches per call are in memory.
//   - A call that ends early cancels the job that it began, unless the job is sealed or another call waits for it. A stopping server cancels nothing.
//   - Nothing that a client sends makes the process panic.
package flightsql
