// Package rest is the scheduler's HTTP API: what jobs, executors and the scheduler itself look like from outside, and a job's cancel.
//
// Invariants:
//   - Nothing but health, readiness and the API's own description is answered without a principal; a principal sees its own jobs only, and learns of no
//     other one, not even that it exists.
//   - A stage list is in the order of the stages, and ends with the stage "scheduler" if the job has a scheduler root: without tasks and without
//     measures (S46). Jobs without a root have no such stage (S48).
//   - Errors are application/problem+json with a stable code; a defect is told as such, without its inside.
//   - Bodies, headers and times are bounded. A page of another site cannot make a browser act here: what changes something needs a content type that
//     browsers ask about first, and a listener without tokens answers to local names only.
//   - openapi.json describes every answer field by field; a test holds the answers against it.
package rest
