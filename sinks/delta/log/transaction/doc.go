// Package transaction makes commits of Delta tables: the actions of one commit file from what a statement adds and removes, and the checks that let it onto a
// log that others have written to since the statement read it.
//
// Everything here is pure: snapshots and commits come in, actions or a Conflict go out. Who calls it puts the file into the log, and knows whether it is there.
// The loop is: Build on the newest snapshot, put version N if it is absent; if it is there, Advance, Check against what came in between, and Build again.
package transaction
