// Package sdk is what the author of a sink imports. A sink is a type with five methods, and its main is one line:
//
//	func main() { sdk.Serve(mySink{}) }
//
// The methods are called by the scheduler over gRPC. Inside them, sdk.HostFrom(ctx) speaks to the host: it reads and creates objects of the
// one table that the call is about, and it commits. A plugin holds no credential and has no network of its own.
//
// Invariants:
//   - A panic in a sink ends that call with an error, never the process and never a hang.
//   - Commit always answers with an outcome. A sink that returns an error or panics after it asked for a commit point, and before it was
//     told the end, is reported as OUTCOME_UNKNOWN: the host resolves it. Once the host has said that a commit landed, the outcome is
//     OUTCOME_COMMITTED whatever the sink does afterwards.
//   - Stage hands out files of a task manifest before its digest is known, but a call in which any digest, count or order is wrong fails.
//   - Nothing that the sink prints to standard output reaches the handshake.
//   - The process ends when its host is gone, and after SIGTERM as soon as the running calls have ended; SIGINT does nothing.
//   - Every message is capped on both sides by internal/rpc; what may be larger is streamed in chunks of at most 1 MiB.
package sdk
