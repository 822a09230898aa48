// Package schedule decides which tables are to be maintained when. It is a pure state machine: events in, actions out; it does no I/O, has no timers and
// reads no clock.
//
// Invariants:
//   - Of a table at most one run is under way, and of a catalog at most one that its period asked for and atOnce that commits did.
//   - The tables of a catalog are asked for one by one, and nothing is kept of those about which there is nothing to remember.
//   - A run has a key. One that is asked for again, after a failure or a restart, has the same; others never have.
//   - After n failures in a row a table is left alone for base × 2ⁿ⁻¹, at most for longest, whatever its commits and its catalog's period say.
package schedule
