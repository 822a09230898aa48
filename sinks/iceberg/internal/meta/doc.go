// Package meta reads the parts of an Iceberg table's metadata.json that a commit sink needs, and writes the parts of Iceberg's JSON that a new
// table needs. Types and fields are those of plan.v1, so that nothing is converted twice.
//
// Invariants:
//   - What the package does not understand it refuses by name when it is asked for it, and never before: a column of a type that only an old
//     schema has is no obstacle.
//   - Field ids, schema ids and spec ids are those of the table, never renumbered.
//   - Schemas and partition specs keep their JSON text, which Iceberg manifests repeat in their header.
//   - No input makes the package panic.
package meta
