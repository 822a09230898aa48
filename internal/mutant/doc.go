// Package mutant breaks Signet on purpose, at places that have a name, to show that the tests notice.
//
// Invariants:
//   - Without the build tag mutant, On is a constant false and the compiler leaves nothing of what stands behind it.
//   - With it, at most one mutant lives in a process: the one that SIGNET_MUTANT names.
//   - Each mutant is named in docs/semantics.md, next to the test that it makes fail; `make lint` and `make mutants` see to both.
package mutant
