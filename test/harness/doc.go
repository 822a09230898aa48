// Package harness starts real Signet processes for tests: a scheduler, executors, clients. Nothing in it is a fake.
//
// Invariants:
//   - Every process of a cluster names the cluster's directory in its command line or executable, so that Leftovers finds it.
//   - A test that ends, in whatever way, leaves no process and no file.
//   - What is asserted about tables is read from the catalog's database and the table's files by third-party code, not by asking Signet.
package harness
