// Package graph is the state of one job as a pure state machine: events in, actions out. It decides what is launched, retried, given
// up and cleaned, and when the scheduler root runs. It has no I/O, clock, goroutine or network; one goroutine at a time may use a Graph.
//
// The caller writes what it must remember (Record, or its own journal) before it carries out the actions, in their order.
//
// Invariants, each with its test:
//   - A job is Queued, Planning, Running (in phase stages, root or resolving), Successful, Failed or Cancelled. The last three never change.
//     Finish is emitted once.
//   - RunRoot is emitted once, after every task of every stage has a winner, instead of Finish (S12, S13, S15). TakeRoot succeeds once, and only
//     while the job is Running: check and take are one step (S18, S19). After a restart there is one more RunRoot, marked Resume, if the
//     root is a commit (its coordinator knows how far it got); any other root that had begun fails the job (S24, S62).
//   - The first attempt of a task that succeeds wins, for good where output is durable; every later report of another is answered with
//     the reason (T1: output is keyed by task, never appended). A report of the winner is answered with yes however often it comes.
//   - Every attempt that was launched ends as a winner of a successful job, or is swept exactly once (S61). A winner is swept only when
//     the job ends Failed or Cancelled: never while a root runs or an outcome is unknown (S43, T6, S67).
//   - Cancel before the root is taken ends the job at once, also during planning (T3, T2). While the root of a commit runs, the
//     coordinator decides (S21): CancelRoot asks, and the job ends as its answer says.
//   - Lost executors do not matter to tasks that have a winner, if output is durable, as task manifests are (S60). Otherwise the task
//     runs again, or, when the root already reads, the job fails (S40).
//
// Retries: IO and RESOURCE are retried and counted per task; KILLED, failed launches and attempts that nobody adopts after a restart
// are retried and not counted; INTERNAL and lost executors count as losses; USER fails the job at once.
package graph
