// Package stagetest runs staged queries in one DuckDB, as executors would run them together: sources cut into shares, outputs into partitions. It is
// what the staged form of a query is compared with the query itself by.
package stagetest
