// Command bench measures what a user of Signet waits for, as ratios against a baseline in the same run.
//
//	bench latency   one-row INSERTs on a running cluster, with the time of each step
//	bench insert    a large INSERT against a bare DuckDB COPY and fsync of the same rows, in turn
//
// It starts a scheduler and one executor as processes of their own, in a temporary directory, and stops them. Machines are noisy: the
// figures are medians of runs in turn, and no test depends on them.
package main
