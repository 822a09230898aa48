// Package delta is the commit sink for Delta tables: it turns task manifests into add actions while a job runs, and commits them by creating the next file of the
// table's log through the host.
//
// It holds no credential. It reads and creates objects through the host, below the table's location, and deletes nothing.
//
// Invariants:
//   - A commit is the creation of _delta_log/N.json, N one more than the newest version: the host seals it and lets one writer through. Nothing else shows data.
//   - Every attempt brings the snapshot up to date, looks for the jobs' txn actions, checks the table's id, protocol and schema, and builds on that very state.
//   - What others have committed since the statement was planned is held against it in Delta's order; a conflict is refused with version and file, and nothing lands.
//   - A job's txn action has the appId signet:MARKER and, as its version, the table version that it came in with.
//   - Data files are found by their columns' names; partition columns are in the log alone. Field ids are this package's own: depth first, from 1.
//   - A feature of the table's protocol that is not known is refused by name. Column metadata and properties stay byte for byte as they are.
//   - A checkpoint that fails fails no commit.
package delta
