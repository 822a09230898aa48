// Package iceberg is the commit sink for Apache Iceberg tables: it turns task manifests into Iceberg manifests while a job runs, and commits
// them by writing one manifest list and asking the host to change the catalog.
//
// It holds no credential. It reads and creates objects through the host, below the table's location, and deletes nothing.
//
// Invariants:
//   - Field ids, schema id and spec id come from the loaded table. Data files land under the schema and the spec that they were written for, or are
//     refused; they are never re-labelled.
//   - One code path for one file and for 100,000: Stage writes Iceberg manifests of about 8 MB, Commit only writes the list.
//   - Every attempt loads the table again, looks for the markers, checks UUID, schema and spec, and builds on that very state; the request asserts UUID,
//     head and current schema.
//   - A snapshot's manifest list holds every manifest of its parent. Manifests are not merged: the host requires each of them to stay listed.
//   - The markers go into the snapshot summary and into the marker property in the same request.
//   - Computed summary values win over what a user asked for.
//   - A table is read right or refused by name: delete files, encryption, unknown types and transforms are refused.
//   - What a property asks for and the sink or the executors cannot do is named in a warning.
package iceberg
