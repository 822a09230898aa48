// Package signed sends requests to object stores that the scheduler has signed: executors have no credentials, and no client of a store.
//
// A signed request is a credential. Invariants:
//
//   - No error, and no log line, holds a query string.
//   - A redirect is not followed: the signature is for one host.
//   - What a store has said is told apart from what it may have done: an error that is Unknown may have taken effect.
package signed
