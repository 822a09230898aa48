// Package scheduler is the scheduler process: it takes statements, plans them, has executors run their tasks, and commits through sink
// plugins. It alone holds catalog credentials, and it never runs user SQL.
//
// Invariants:
//   - Whatever a client was told is in the journal: (principal, key) → job before Submit answers, the seal before a commit request leaves, the
//     outcome before the job's end is shown.
//   - A job's terminal state never changes, and says Cancelled or Failed only when the table does not hold its rows and never will.
//   - A commit is decided by the job's coordinator.Machine under one lock: cancel and seal can not both win.
//   - After a crash every open job goes on, is resolved, or is rolled back; nothing is guessed.
//   - What schedules do are jobs; they keep nothing durable besides.
//   - A listener that others can reach speaks TLS and asks for tokens.
package scheduler
