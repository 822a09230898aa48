// Package stats writes and reads the statistics of data files in a Delta log ("Per-file Statistics" in PROTOCOL.md of delta-io/delta): JSON in a string, nested like the
// schema, without partition columns.
//
// Readers leave out files by them, so that a bound that is too narrow loses rows without a word. What is written is therefore rounded outwards, or left out; and what is
// read of other writers is taken for less than it says wherever one of them is known to have erred: a bound that is not there only costs time.
package stats
