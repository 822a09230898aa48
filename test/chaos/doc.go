// Package chaos runs many statements of every kind while the processes of a cluster are killed one after the other, and compares what clients were
// told with what the tables hold. It is random: a seed gives the statements and the kills, though not the moments in which they meet.
//
// Invariants that it checks:
//   - Every job ends within a bound, and in the state that its client was told; a state that was told never changes.
//   - A table holds the rows of the jobs that ended Successful, each once, in one snapshot that names the job; of others it holds nothing.
//   - Each marker is in its table once. The snapshot and the number of rows that a client was told are the table's.
//   - A query's rows, where they came, are right. Rows that a restart took away are an error, never fewer rows.
//   - In the end no file lies in the warehouse that no table refers to, nothing in scratch, and no process is left.
//
// Tables are read from the catalog's database, the metadata and the Parquet files, with other code than Signet's.
package chaos
