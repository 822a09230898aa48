// Package upkeep finds the files of Iceberg tables that nothing needs any more, and removes them: those of snapshots that have expired, and those that
// no metadata names. It compares parsed paths, never strings, removes nothing outside a table's locations, and nothing while it cannot read every
// list and manifest that could still name a file.
package upkeep
