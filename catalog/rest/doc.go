// Package rest is a catalog behind Iceberg's REST protocol.
//
// It is a client of our own, and takes only the types of metadata from elsewhere, because an outcome must be certain:
//
// Invariants:
//   - What is committed goes out byte for byte as it was given, once per call. Nothing below this package sends a commit again: no transport, no
//     redirect. A token that was refused is the only reason to send twice, and then the first was not taken.
//   - An answer that forbids, conflicts or refuses is believed only after a look at the table; everything that may have been applied is unknown.
//   - Metadata comes from the server's answer, never from the file that it names: a server may name files that a race has overwritten.
//   - Credentials go to the origins that the operator wrote, and to no other that a server names.
//   - A missing table is one that the catalog says is missing: a 404 of something in between is an error.
package rest
