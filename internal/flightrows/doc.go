// Package flightrows is what the scheduler and the executors share where they serve rows by Arrow Flight: the tickets of rows that an executor
// has, and how batches are sent.
//
// Invariants:
//   - A ticket that is good at an executor is good at the scheduler too, and the other way round, where both are locations of one endpoint.
//   - The part of a ticket that an executor reads gives nothing but the rows of one attempt: the exchange's own ticket cannot be had from it.
//   - Pieces of a batch have its rows, in their order; a piece is small enough unless it is one row.
package flightrows
