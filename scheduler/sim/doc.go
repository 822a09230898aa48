// Package sim runs the real job graph and the real commit coordinator in a world of models: a journal, executors with their exchange, a
// network, a sink plugin, a catalog table that others write to, and clients. A seed gives a schedule of steps in which messages are lost,
// repeated, delayed and overtake each other, every process crashes at any moment and comes back, and jobs are cancelled; afterwards nothing
// goes wrong any more, and every job has to end. Each step is checked. Nothing here is random but the choice of steps, so that a list of
// steps is a test case: a failing one is reduced to the steps that matter and printed as a script.
//
// What is checked (docs/simulation.md has more):
//   - At most one commit per commit key, and its files are those of one accepted attempt per task, all there, made from rows of one run.
//   - What a client is told is what happened: committed if and only if the table holds the rows, once.
//   - No file that was accepted is deleted, as long as its job may commit or has.
//   - Final states stay.
//   - Nobody reads what was freed; a root's input stays while the root runs.
//   - Every job ends within a bounded number of steps once nothing goes wrong any more, and leaves nothing behind.
package sim
