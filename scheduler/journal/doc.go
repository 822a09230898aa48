// Package journal is the scheduler's durable record: jobs, attempts, accepted task manifests, commit states and clean-up duties,
// in one bbolt file.
//
// Invariants:
//   - Update is one synced transaction: when it returns nil the change survives SIGKILL and power loss, otherwise nothing of it does.
//   - The file carries a format version; a newer one is refused, a damaged one is named with the way out.
//   - One process at a time has it open; the epoch grows by one with every Open.
//   - No catalog secret is ever written: records hold statements, plans and ids, and the configuration stays outside.
package journal
