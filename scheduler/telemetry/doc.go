// Package telemetry measures the scheduler: Prometheus metrics, and the spans and counts of the calls between host and plugins.
//
// Invariants:
//   - The number of time series is bounded by the configuration: no label holds a job, a table, a principal, an executor or a text of users.
//   - Measuring changes nothing: an observer that fails or is slow cannot fail or block what it observes.
//   - Counters only grow, and start at zero with the process; gauges are read when somebody asks.
package telemetry
