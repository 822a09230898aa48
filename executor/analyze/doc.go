// Package analyze parses a user's query, finds its sources, rewrites it over views of known names, and binds it.
//
// Invariants:
//
//   - Only one SELECT or VALUES statement passes; the rewritten text is DuckDB's own rendering of the parsed statement.
//   - Every table and file that the query names becomes a source; table functions outside the allow-list are refused by name. Nothing that the user
//     wrote is ever opened by DuckDB under the name that the user gave.
//   - now() and its relatives become constants of the job's time, so that all tasks and all retries agree.
//   - The answer is the same for the same query, sources and time; view names depend on the query only.
//   - Every error is a planv1.Error in the user's names.
package analyze
