// Package transform writes the partition transforms of the table formats as DuckDB expressions, and reads their results back as typed
// values.
//
// Invariants:
//
//   - A transform equals the Iceberg specification's for every value, also before 1970 and for negative numbers (V1).
//   - A key tells NULL, the empty string, 'null' and every other value apart; what DuckDB returns as the text of a key parses back to the
//     exact value.
//   - Where a result does not fit its type (truncate at the low end of an integer), the expression fails: a wrapped value would hide the
//     row from filters.
//   - Nothing here depends on the session's time zone or locale.
//
// Only bucket needs Go: DuckDB has no murmur3. Register adds the hash functions to a connection.
package transform
