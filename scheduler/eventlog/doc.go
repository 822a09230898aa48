// Package eventlog keeps the history of each job as JSON lines in <data dir>/events/<job>.jsonl, and reads it back.
//
// Invariants:
//   - Writing never blocks a job, however slow the disk is. What does not fit the queue is dropped and counted, and the job's end record says how
//     many. A job's submission, its plans and its end are never dropped (T4); an end that met a full disk is written again until it is there.
//   - The records of one job are in the order in which they happened, and its end is the last.
//   - A scheduler that starts writes the ends that a crash kept from the log, and removes the histories of jobs that it does not know.
//   - No line holds a secret (T7). The plan and the stages are those of EXPLAIN and REST (S49).
//   - Readers take a stage's id as a number or as a name, "scheduler" among them (S47), skip lines that they cannot read, and know fields that they do
//     not know yet.
package eventlog
