// Package querygen makes random tables and random queries over them, to compare one way of running a query with another.
//
// Invariants:
//
//   - The same seed gives the same tables and queries.
//   - A query's result is a multiset that does not depend on the order in which rows are read: rows that LIMIT or a window function would have to choose
//     among are told apart, and sums of floating-point numbers are exact. Queries whose Total is set give their rows in one order only.
//   - A query may fail (numbers overflow); then every way to run it fails.
//   - Diff finds two results the same if they are, up to the order of rows where a query leaves it open, and the last digits of floating-point numbers.
//   - Shrink answers smaller queries, some of which are none any longer.
package querygen
