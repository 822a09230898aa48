// Package dispatch keeps the executors: their sessions, slots and heartbeats, and the queue of attempts that wait for a slot.
//
// Invariants:
//   - An attempt is on at most one executor, and holds one slot there from its launch until Ended, or until its executor is lost.
//   - A job's policy says who acts: under push an attempt goes to an executor with a free slot; under pull it goes only to an executor that
//     has asked for one in this session, and answers one request. Nothing that pulls is ever sent unasked.
//   - The next free slot belongs to the job with the fewest attempts on executors; among equals, to the one whose turn is longest ago. A job
//     with one task is not stuck behind a job with a thousand, also where all slots are held by long tasks.
//   - An attempt goes to an executor that it avoids only where no other could take it, or where none of them has had room for a while.
//   - An executor that is drained or leaves is given nothing more, also when it comes back.
//   - A session that breaks is not yet a lost executor: the executor has a grace time to come back with its attempts.
//   - ExecutorLost is reported once per executor process, with the attempts that it still held.
//   - What waits for an executor that does not read is bounded: past the limit its session is closed.
//   - What one event costs does not grow with the number of attempts, and with that of executors and jobs only by its logarithm.
//   - Nothing here decides about jobs; Handler does.
package dispatch
