// Package lineage makes OpenLineage run events (specification 2-0-2) of jobs: what they read, what they write, and how they ended. It is pure.
//
//   - A run's id is its job's, before and after a restart of the scheduler.
//   - Tables are named by their location, as the specification says and other engines do, so that one lineage graph joins them; their names in the
//     catalog are in the facet symlinks.
//   - No event holds a secret; the statement's text, which may hold values, is in it only if the configuration says so.
package lineage
