// Package exchange keeps the rows that tasks leave for tasks of later stages, serves them, and fetches those of others.
//
// Invariants:
//
//   - An output is one file per partition that has rows, Parquet for tasks, below this process' scratch. It is there whole before the scheduler hears of
//     it, stays until it is freed, and never outlives the process: what a killed one left goes with its scratch.
//   - The partition of a row depends on the values of its keys alone: equal rows (NULL = NULL, -0.0 = 0.0, NaN = NaN) of every task meet in one
//     partition.
//   - Columns come back with exactly the values and types they had. Types for which that cannot be promised are refused (Carriable).
//   - Only who presents the ticket of the job that wrote an output may fetch it. Unknown attempts, partitions and tickets give one and the same
//     answer.
//   - Everything a task reads of an exchange came by gRPC, with size and checksum verified, also from this very process (S11).
//   - The rows of a large result lie here too, as the Arrow IPC stream that the query gave. Clients fetch them by Flight with the secret of their
//     ticket and a token of the job's principal, the scheduler as every other output; neither gives access to anything else.
//   - The memory of all streams together is bounded, whoever reads slowly.
package exchange
