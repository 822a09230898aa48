// Package schema is the schema of a Delta table as its metaData action holds it: JSON in a string ("Schema Serialization Format" in PROTOCOL.md of delta-io/delta).
//
// What a schema says beyond names and types, the metadata of its fields, is kept byte for byte: comments, and whatever other writers have put there. A type that is
// not supported is an error that names its column, so that nobody writes a table of which they understand a part.
package schema
