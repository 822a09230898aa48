// Package plan turns an analysed statement into what will run: which query column feeds which table column and by which cast, what
// table a CREATE TABLE AS makes, how a query's input is shared among tasks, and which operator is the scheduler root.
//
// Invariants:
//   - Everything that can be known to fail is refused here, before any task runs, with the column's name (X1, X2, X3): every error is
//     an *Error.
//   - An implicit cast keeps the value exactly or fails on the row (casts.md lists the rules, and a test keeps list and code equal).
//     What would round, cut, reinterpret or depend on a time zone is refused, and the error shows the CAST to write.
//   - Names match exactly first, then without regard to case where that is unambiguous; values never move to a column of another name.
//   - Fields of structs match by name at every depth, never by position.
//   - The shares of a query's tasks cover its input exactly once, in order, and none is empty (unless the whole input is).
//   - The scheduler root appears in no stage; a commit is never anything but the root.
//
// The package imports no I/O, clock or network.
package plan
