// Package cli is the signet command: it parses arguments, connects to a scheduler or runs an embedded cluster, and prints.
//
// Invariants:
//   - Results go to standard output; everything else (progress, warnings, errors) to standard error.
//   - The exit code says what happened; see the constants in exit.go and docs/exit-codes.md. 0 means that every statement succeeded.
//   - A statement whose end is not known exits 5, never 1: it may have committed.
//   - The first Ctrl-C cancels the job and waits for its end, the second leaves at once. What is printed is what happened.
//   - When an embedded cluster's command ends, in whatever way, none of its processes is left.
//   - Errors name the fix.
package cli
