// Package launcher runs executors as child processes of the scheduler: the local form of a cluster.
//
// Invariants:
//   - An executor ends with the process that launched it, also when that one is killed with SIGKILL (Linux: parent-death signal).
//   - It leads a process group of its own, so the terminal's Ctrl-C does not reach it (X17); stopping kills the whole group.
//   - It gets nothing of the launcher's environment but a short list of names, no standard input, and no argument that is secret: its join
//     token lies in a file that only this user can read.
//   - One that crashes is started again, with growing pauses; one that keeps dying right after its start is given up and reported.
package launcher
