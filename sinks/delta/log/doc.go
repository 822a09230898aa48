// Package log reads and writes the transaction log of Delta tables (PROTOCOL.md of delta-io/delta): the actions and their codec, snapshots from commit files and
// checkpoints, the gate that refuses tables with features that are not supported, checkpoints of our own, and the checks that let a commit onto a log that has moved on.
//
// It needs a Store, and neither holds a credential nor knows where a table lies: any program may use it.
package log
