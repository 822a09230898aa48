// Package outbox tells others what has happened: lineage events, and reports of commits.
//
//   - What is to be told is in the journal, written in the transaction of what it tells of, until it has been told: nothing is lost in a crash, and
//     something may be told twice after one.
//   - Telling never delays a job: one goroutine for each receiver reads the journal and sends; if a receiver is away, it tries again, and what waits is
//     bounded. Beyond the bound new messages are dropped and counted.
//   - One receiver gets everything in the order in which it was written.
package outbox
