// Package icefile writes and reads Iceberg manifests and manifest lists.
//
// Invariants:
//   - Iceberg manifests are written with null snapshot ids and sequence numbers, to be inherited from the list; only format version 1, which cannot
//     inherit, has the id in its entries.
//   - Their header carries the table's schema and partition spec as they were when the files were written, with their ids.
//   - The names of partition fields are made valid Avro names as the reference implementation does; ids identify them.
//   - A list keeps every manifest of its parent, with all that its record said. A lower bound of no bytes is a bound, not the absence of one.
//   - The version of a list comes from its fields, never from its header, which some writers leave out.
package icefile
