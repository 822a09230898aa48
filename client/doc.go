// Package client is the Go client of a Signet scheduler: it submits statements, follows their jobs to the end, and reads their rows.
//
// Invariants:
//   - A statement is submitted under an idempotency key, the caller's or a random one, so that a submission whose answer was lost is
//     repeated safely and never runs twice.
//   - Exec returns success only for a job that the scheduler reports Successful. A job whose end it cannot learn is a *PendingError, never a
//     failure: the statement may still commit.
//   - The rows of a scheduler root arrive inside the job's status (S27, S28); reading them opens no other connection (S29).
//   - A token never leaves over plain text to an address that is not loopback.
package client
