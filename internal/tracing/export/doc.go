// Package export sends the spans of a process to a collector. It is apart from package tracing so that programs that use the client do not link
// the exporters.
//
// Invariants:
//   - Nothing is sent unless the standard OTEL_* variables ask for it.
//   - A collector that is slow or gone costs spans, never a job; the end of the process waits for it a few seconds at most.
package export
