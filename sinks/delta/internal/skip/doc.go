// Package skip decides what a predicate says about the rows of a data file of a Delta table, from the file's partition values and statistics.
//
// A predicate has three values per row: true, false and NULL. For a file the package computes which of them some row may have, always at least those that do occur. A file
// without a row for which the predicate may be true need not be read (Inclusive); where it is surely true for every row, the whole file matches (Strict).
//
// What is not known (no statistics, or none that can be trusted; a partition value that cannot be read) widens the outcomes and never narrows them. NaN is equal
// to itself and above every other number, and the two zeros are equal.
package skip
