// Package scaffold makes the project of a new sink: one that builds, passes the conformance suite and commits a real job.
//
// Invariants:
//   - A project appears whole or not at all: it is made beside its place and renamed to it. What exists is never touched.
//   - Nothing but the tools of the project's language is run, and those only in the new directory.
package scaffold
