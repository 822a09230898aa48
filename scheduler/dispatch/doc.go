// Package dispatch keeps the executors: their sessions, slots and heartbeats, and the queue of attempts that wait for a slot.
//
// Invariants:
//   - An attempt is on at most one executor, and holds one slot there from its launch until Ended, or until its executor is lost.
//   - Jobs take turns: a job with one task is not stuck behind a job with a thousand.
//   - A session that breaks is not yet a lost executor: the executor has a grace time to come back with its attempts.
//   - ExecutorLost is reported once per executor process, with the attempts that it still held.
//   - Nothing here decides about jobs; Handler does.
package dispatch
