// Package avro reads and writes the Avro object container files that Iceberg's metadata is made of, as far as Iceberg uses them.
//
// The reader resolves nothing: it decodes what the writer's schema says and hands out records whose fields are found by Iceberg field id or by
// name. So it reads what other engines wrote, names that Avro forbids included. The writer takes encoded rows.
//
// Invariants:
//   - No input makes the reader panic, recurse without bound, or allocate more than a multiple of the input and of maxBlock.
//   - Fields that were not asked for are skipped without being decoded.
package avro
