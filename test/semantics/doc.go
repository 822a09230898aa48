// Command semantics holds docs/semantics.md to its word.
//
//	go run ./test/semantics check     fails where the document names something that does not exist, or leaves something out
//	go run ./test/semantics run       runs every pair of a test and what makes it fail
//
// Invariants:
//   - Every number has a statement, and at least one test with a mutant or a fault that makes it fail.
//   - Every test that is named exists and carries the number, in its name or in its comments.
//   - Every mutant and every fault point that is named exists, and every mutant of the sources is named.
//   - A pair counts only if the test has run and passed without the mutant, and fails with it.
package main
