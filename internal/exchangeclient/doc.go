// Package exchangeclient fetches what the tasks of earlier stages have left on their executors, for tasks of later stages and for scheduler
// roots.
//
// Invariants:
//
//   - Bytes always come by gRPC from the address in the part, also where the executor is this process or on this machine (S11).
//   - Fetch succeeds only if the bytes have the size and the checksum that their writer reported; what it has written before an error is
//     to be thrown away.
//   - A stream that breaks is resumed at the offset that was reached, a bounded number of times. Whoever cannot have the part then learns which
//     attempt's output is lost (LostError).
//   - Parts are ordered by task and partition, each at most once: two attempts of one task are never mixed (S10, S73, T1).
//   - Plain text goes to loopback addresses only; any other address is spoken to in TLS.
package exchangeclient
