// Package credentials turns what an executor asks for into what it may do to an object store, and nothing more.
//
// Executors hold no credential. For each attempt, and each analysis, the scheduler knows which objects it reads and below which prefix it writes; an Issuer makes requests of
// exactly these, signed with the catalog's own credentials, which stay in the scheduler.
//
// Invariants:
//
//   - A read is of a URI that is in the scope, letter for letter.
//   - A write is of one object directly below the scope's prefix: its name is one segment, which the store cannot take for anything else.
//   - A copy is of bytes of an object that the scope lists, in the version that it lists, into a part of an upload of such a file: all of that is signed.
//   - A request that writes a whole object only makes it, and never replaces it; its size and its checksum are signed.
//   - What is issued ends after a bounded time. It is a secret, which no error holds.
package credentials
