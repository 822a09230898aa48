// Package tracing carries OpenTelemetry traces through Signet's processes: client, scheduler, executors, and the plugin calls between.
//
// Invariants:
//   - Traces are off unless a program sets up a provider (package export does, where the standard OTEL_* variables ask for it). Without one, ids that a
//     caller sent still travel on.
//   - What travels between processes is W3C traceparent and tracestate, never baggage: a header that others fill must not reach executors.
//   - No span carries the text of a statement, a row, a setting or a secret.
package tracing
