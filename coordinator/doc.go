// Package coordinator decides, for one job, what may be committed and when. It is a pure state machine: events in;
// records to persist, actions to take and the new state out. README.md has the diagram and the transition table.
//
// The package knows no table format, does no I/O and reads no clock. A Machine belongs to one goroutine at a time; a copy of a Machine
// is an independent machine, so a caller may step a copy, persist, and keep the copy only if that went well.
//
// Invariants:
//   - Every change of state goes through one table (table.go); an event that the table refuses changes nothing.
//   - A caller persists Effects.Record before it takes Effects.Actions. A machine restored from the last persisted record decides as
//     the original would have.
//   - The seal is one step: the check for cancel, epoch and state, and the record that holds the whole attempt.
//   - At most one attempt is sealed at a time. Committed is reached once, and never left; so is Aborted.
//   - Aborted is never reached while a sealed request may still land: from Sealed only after a definite conflict or refusal, from
//     Resolving only after the request is dead.
//   - After an unknown outcome only landed, found and dead settle the attempt.
//   - The first accepted task manifest of a task stays; every other one is refused with a typed reason.
package coordinator
