// Package evolve plans changes of an Iceberg table's metadata: schema, partition spec, sort order, properties, references and snapshots. It reads a
// metadata.json, applies the changes by the rules of the Iceberg specification and of its reference implementation, and gives the requirements and
// updates of the REST protocol that make them in one commit. It does no I/O.
package evolve
