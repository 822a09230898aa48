// Package glue is AWS Glue's Data Catalog as a catalog of Iceberg tables, as PyIceberg's GlueCatalog, Java's GlueCatalog and Athena use it: a table's parameters hold table_type = ICEBERG
// and metadata_location.
//
// It is a thin layer over the service's client rather than iceberg-go's catalog/glue, which does lock by VersionId, but cannot keep what catalog.Catalog promises: its commits are made of
// decoded requirements and updates; writes are repeated by the client (after a lost answer the repetition is refused, and a commit that landed is reported as a conflict); it leaves the
// metadata of commits that failed; nothing is looked at after an error; and it reads and writes files through a client of object stores of its own. What a commit consists of, and how it is
// settled, is catalog/internal/pointer's; this package moves the pointer.
//
// Invariants:
//   - A pointer is only ever moved by UpdateTable with the VersionId that was read with it. Glue changes that with each update, also with those of other engines and crawlers.
//   - What changes something is sent once. Only what reads is repeated.
//   - An answer without a request id is no answer of the service, and is not believed.
//   - What others have put into the table of Glue stays: parameters, owner, comments of columns.
//   - Names are those that Glue keeps as they are: in lower case, with one level of namespaces. Others are refused, not changed.
package glue
