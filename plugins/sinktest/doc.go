// Package sinktest is the conformance suite for sinks that commit through host.v1's storage, and an in-memory host to run them against.
//
// A sink's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		sinktest.Run(t, func(t *testing.T, register func(grpc.ServiceRegistrar)) sinkv1.SinkClient {
//			return sdktest.NewTestConn(t, mySink{}, register)
//		})
//	}
//
// Invariants:
//   - The suite knows no format: it judges a sink by its answers, by what PlanScan finds, and by what it asked of the host.
//   - The host is as strict as the scheduler's: it serves one lease and one location, creates only, and lets one commit point through.
//   - Every call is made twice where a host may repeat it.
package sinktest
