// Package graph is the state of one job as a pure state machine: events in, actions out. It decides what is launched, retried, run again,
// given up, freed and cleaned, and when the scheduler root runs. It has no I/O, clock, goroutine or network; one goroutine at a time may use a
// Graph. What one event costs does not grow with the number of attempts.
//
// The caller writes what it must remember (Record, or its own journal) before it carries out the actions, in their order. Its own journal
// needs, before the launches of an event leave: the stages as they become known, the launched attempts with their generation, the winners of
// stored stages with their executors and outputs, the attempts that were given up, and the generation of each stage (StageRecord).
//
// Invariants, each with its test:
//   - A job is Queued, Planning, Running (in phase stages, root or resolving), Successful, Failed or Cancelled. The last three never change.
//     Finish is emitted once.
//   - RunRoot is emitted once, after every task of every stage has a winner, instead of Finish (S12, S13, S15). TakeRoot succeeds once, and only
//     while the job is Running: check and take are one step (S18, S19). After a restart there is one more RunRoot, marked Resume, if the
//     root is a commit (its coordinator knows how far it got); any other root that had begun fails the job (S24, S62).
//   - Stages may be planned one by one: PlanMore asks for the next when all that are known are complete, once until it is answered.
//   - The first attempt of a task that succeeds wins; every later report of another is answered with the reason (T1: output is keyed by task,
//     never appended). A report of the winner is answered with yes however often it comes. What was accepted as durable before the graph was
//     asked wins even if the attempt had been given up.
//   - A win is for good where the stage is not Stored: task manifests lie in the journal, and the loss of their executors does not matter (S60).
//     A win of a stored stage is lost with its output, if a task that is not done, the root or the client needs it; what nobody needs is not
//     made again. Attempts that read what is gone are cancelled, and their tasks wait until it is there again; nothing is counted for them.
//   - Rows of two runs are never mixed (S73): what was made from a lost output stays only if its stage is Repeatable; otherwise all of it, and
//     all that was made from that, is made again, and if a task of a stage that is not stored is among it, the job fails.
//   - A task is launched only when every output that it reads is there. An output is freed when no task can need it any more, however many
//     are lost, and at the job's end; the last stage's not while a root reads it (S43, T6) or a client may fetch it (S42). Each is named with its
//     executor, and named again when an executor turns out to keep it still (T9).
//   - Every attempt that was launched ends as a winner of a successful job, or is swept exactly once (S61). A winner of a stage that is not
//     stored is swept only when the job ends Failed or Cancelled: never while a root runs or an outcome is unknown (T6, S67).
//   - Cancel before the root is taken ends the job at once, also during planning (T3, T2). While the root of a commit runs, the
//     coordinator decides (S21): CancelRoot asks, and the job ends as its answer says.
//   - Once a root reads the last stage's outputs their loss fails the job (S40).
//   - Every job ends in a world that works: what is retried without limit makes progress each time, and everything else is counted.
//
// Retries: IO and RESOURCE are retried and counted per task; KILLED, failed launches and attempts that nobody adopts after a restart
// are retried and not counted; INTERNAL and lost executors count as losses; FETCH is retried and not counted, but the lost outputs are, per task
// that lost one and per stage that waits for it; USER fails the job at once.
package graph
