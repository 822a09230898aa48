// Command bench measures what a user of Signet waits for, as ratios against a baseline in the same run.
//
//	bench latency   one-row INSERTs on a running cluster, with the time of each step
//	bench dispatch  tasks that do nothing, on a scheduler in this process with 100 simulated executors over real sessions: rate, growth, memory
//	bench restart   the time until a scheduler serves again that has a thousand jobs in its journal
//	bench contention  many clients append to one table; with --venv PyIceberg does, too, in turn
//	bench growth      one-file commits to one table, of which the last is compared with the first
//	bench files       large commits: up to 100,000 files, from the last task's success to the answer
//	bench insert    a large INSERT against a bare DuckDB COPY and fsync of the same rows, in turn
//
// All but dispatch and restart start a scheduler and one executor as processes of their own, in a temporary directory, and stop them. Machines are noisy: the
// figures are medians of runs in turn, and no test depends on them.
package main
