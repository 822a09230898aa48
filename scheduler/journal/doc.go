// Package journal is the scheduler's durable record: jobs, attempts, accepted task manifests, commit states and clean-up duties,
// in one bbolt file.
//
// Invariants:
//   - Update is one synced transaction: when it returns nil the change survives SIGKILL and power loss, otherwise nothing of it does.
//   - The file carries a format version; an older one is rewritten in today's, a newer one is refused. Every record carries a checksum over its
//     bucket, key and content.
//   - The whole file is read and checked before bbolt, which maps it and trusts it, gets to see it. Damage found then or later is ErrDamaged with the way
//     out in its text, never a panic or a crash; once found, nothing is written any more.
//   - A file that is rewritten (compaction, another format) is complete, synced and locked before it takes the old one's name: whatever dies, one of
//     the two is there, whole.
//   - One process at a time has it open; the epoch grows by one with every Open.
//   - No catalog secret is ever written: records hold statements, plans and ids, and the configuration stays outside.
package journal
