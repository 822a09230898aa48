// Package catalog is what the scheduler holds of a table catalog: the one client that knows its credentials.
//
// The interface is small on purpose. A sink sees a catalog only through the broker, and the broker needs just enough to load
// a table, to let one commit through and to say afterwards, without doubt, how it ended.
//
// Invariants:
//   - Commit answers nil, ErrConflict or ErrPermanent only when that is certain. Everything else it returns means unknown:
//     the commit may have landed, and only sending the identical request again settles it.
//   - Outcomes are found by reading the table again, never by reading the text of an error.
//   - metadata.json is durable before a catalog row points at it.
//   - A metadata file of an attempt that did not land is removed only when its outcome is definite.
//   - No error text and no log line holds a secret of the configuration.
package catalog
