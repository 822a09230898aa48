// Package root holds the operators that the scheduler runs itself, once, after every stage of a job has succeeded: all but the commit, which has
// a coordinator of its own.
//
// Invariants:
//   - A root reads every partition of the final stage, each exactly once (S10); how they come to the scheduler is the Input's business.
//   - What it writes is an Arrow IPC stream below a cap that is checked while it is written (S25, S36, S37, S59): a result above it fails, and
//     never fills the memory (S39). The schema is there also where there are no rows (S30).
//   - A root may be stopped at any moment by its context, and what it had written is then discarded (S21).
package root
