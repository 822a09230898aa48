// Package storage reads and writes the files of one table, and nothing else.
//
// A Store is bound to one location. Names are URIs, which are parsed and compared segment by segment: never by string
// prefix, so that table10 is not inside table1. Locally the location is an os.Root, so that neither `..` nor a symbolic link
// leads out of it.
//
// Invariants:
//   - A file that PutIfAbsent makes is visible only when it is whole and durable, and of many writers exactly one wins.
//   - Whatever fails or dies leaves nothing; where files cannot be made without a name, it leaves at most a temporary file, whose name
//     starts with TempPrefix: List does not show it and SweepTemp removes it.
//   - URIs are raw: a space or a % in a path stands for itself, as other engines write it.
package storage
