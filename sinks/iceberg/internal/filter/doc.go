// Package filter decides what a predicate says about the rows of a data file, from the file's partition tuple and column bounds, and about the files of
// an Iceberg manifest, from the manifest list.
//
// A predicate has three values per row: true, false and NULL. For a file the package computes which of them some row may have (Outcomes), always at least
// those that do occur. A file without a row that may be true need not be read (Inclusive); of a file all of whose rows are surely true every row
// matches (Strict).
//
// Invariants:
//   - What is not known (missing bounds and counts, transforms and types that the package does not know) widens the outcomes and never narrows them.
//   - NaN compares as in SQL engines: equal to itself and above every other number. -0.0 equals 0.0.
//   - Bounds of UUID columns are not used: writers do not agree on their order.
//   - Partition values of years, months, days and hours up to 0 stand for one unit more than they name: early writers rounded towards zero.
package filter
