// Package manifest encodes and reads task manifests: the list of data files of one attempt, as a stream of chunks that
// executors send, the scheduler journals, and sinks stage.
//
// A stream is one header, any number of files chunks (a serialised planv1.DataFiles each), and one trailer.
//
// Invariants:
//   - A Reader accepts nothing out of order, nothing after the trailer, and no chunk above its limits; after its first error it
//     refuses everything.
//   - Header is readable as soon as its chunk has been added, so that ids are compared before any file is decoded.
//   - Add counts files, rows, bytes and nested elements on the raw bytes without allocating for them: what Files decodes is
//     bounded before it is decoded, whatever the sender wrote.
//   - Done is true only when the digest over the files bytes, and the trailer's files, rows and bytes, equal what was received.
//   - No input makes the package panic.
package manifest
