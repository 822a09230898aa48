// Package rowlevel runs random DELETE, UPDATE and MERGE statements through the parser, the planner and the executor, over tables of many files, and compares
// what the table has afterwards with what one DuckDB makes of the same statements.
package rowlevel
