// Package sinktest is the conformance suite for sinks, and an in-memory host to run them against. `signet sink test` runs the same checks.
//
// A sink's own test is a line:
//
//	func TestConformance(t *testing.T) { sinktest.Run(t, sinktest.InProcess(mySink{})) }
//
// and the built plugin, in any language, is tested with
//
//	sinktest.Run(t, sinktest.Command("bin/signet-sink-mine"))
//
// Invariants:
//   - The suite knows no format: it judges a sink by its answers, by what PlanScan finds, and by what it asked of the host.
//   - The host is as strict as the scheduler's: it serves leases of one table, creates only, and counts what a sink asked for beyond its lease.
//   - Where the scheduler's host would save a sink from itself (a second commit, a lost reply), this one lets it happen, so that it is seen.
//   - Every call is made twice where a host may repeat it. What a sink does not offer is reported as that, never as a failure.
package sinktest
