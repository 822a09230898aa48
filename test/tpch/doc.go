// Package tpch compares queries over a real cluster with the same queries on one DuckDB: the 22 of TPC-H, and random ones.
//
// Invariants:
//
//   - The cluster is a scheduler and three executors, each a process of its own, as test/harness starts them. The DuckDB beside it is of the version that
//     executors have, because both are the module in go.mod.
//   - Every query runs under both planners, with settings that divide even small inputs among all executors.
//   - Two results are equal if names, types and rows are: rows in their order where the query gives them one, decimals to the last digit; only
//     floating-point numbers may differ in their last digits.
//   - The same seed gives the same tables and queries. A failure prints the query, its plan and a command that runs it again.
//
// The tests need cgo. `make test` runs a short form over tables that the test makes; `make tpch` all of it, over what tpchgen-cli makes.
package tpch
