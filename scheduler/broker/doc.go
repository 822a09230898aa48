// Package broker serves signet.host.v1 to sink plugins: it speaks to catalogs and storage for processes that hold no credential,
// and it alone lets a commit through.
//
// A lease is the only key: 128 random bits that name one job, one table, one write mode. What a plugin may do is what its lease allows.
//
// Invariants:
//   - Every call is refused without a live lease. Every refusal carries a hostv1.Refusal, and errors become gRPC statuses in one
//     place (refusal.go).
//   - Storage is confined to the lease's location by parsed URI, create-only, and to the name patterns that the sink declared. Nothing is
//     ever deleted for a plugin.
//   - Nothing is sent to a commit point before Gate.Seal has answered, and Gate.Seal gets everything that sending the identical request
//     again needs.
//   - What is sent is what was vetted: the request is checked for members that two readers could read in two ways.
//   - A catalog request of an append changes nothing but the main branch and the marker property, keeps every manifest of its parent, and
//     adds only manifests that this lease created. It carries exactly the lease's markers.
//   - An error of a commit point is classified by looking at the table, never by its text. Without a definite answer the outcome is
//     unknown, and the identical request is sent again until it has landed, is found, or is dead. That goes on without the plugin.
//   - Dead means: the table is gone or has another UUID, or its last sequence number has reached the request's while its snapshot and its
//     markers are absent; for an object: it exists and is not ours.
//   - Sweep removes only what the lease created, never while an outcome is open, and never what the landed commit refers to.
package broker
