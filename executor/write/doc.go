// Package write runs a write task: one DuckDB COPY to scratch, checks of what it wrote, and the upload.
//
// Invariants:
//
//   - Every column is cast to its exact type; a value that does not fit, or would lose digits, fails the task with the column's name and
//     the value. Nothing is rounded, wrapped or replaced by NULL.
//   - Struct fields match by name at every level (X2). A field that the table lacks is refused; one that the query lacks is NULL.
//   - What is reported was checked after it was written: no NULL in a required column, no infinite date or timestamp (X4), the rows of
//     every footer.
//   - Data file names do not contain partition values: the values travel in the task manifest, typed, and NULL, the empty string and
//     'null' stay apart (V10, V11).
//   - Files without rows do not exist. A file that claims a sort order is sorted.
//   - Statistics hold or are absent: a bound that cannot be read exactly, or rounded outward, is left out.
//   - Nothing is uploaded before every check has passed, and nothing is returned before every file is durable.
package write
