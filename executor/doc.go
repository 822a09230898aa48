// Package executor runs tasks for a scheduler: it dials it, keeps one session, and works on what it is given.
//
// Invariants:
//
//   - An executor holds nothing to commit with: no catalog, no sink, no credential but its join token.
//   - A report is repeated until the scheduler has acknowledged it, across lost answers, reconnects and new epochs (T5, S71).
//   - Data files are deleted here only while no report of them has ever left this process, or when the scheduler asks for it: afterwards
//     a table may reference them, whatever the answer was (S61).
//   - A scheduler whose epoch is older than one served before is refused, and so is an attempt of another epoch than the session's (S65).
//   - Analyses and cancels never wait for a task slot.
//   - What a task leaves for others is kept before its success is reported, and until it is freed, until a scheduler registers that does not
//     know it, or until this process ends (package exchange).
//   - An executor that drains takes nothing new, serves what it keeps, and leaves when nothing runs and nothing is kept; a stop gives that the
//     drain time and no more.
//   - Scratch of an attempt is gone when the attempt has ended, also after a failure; what a killed process left is removed at the next
//     start.
//   - A panic ends its task, not the process.
package executor
