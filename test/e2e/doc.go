// Package e2e tests the whole of Signet with real processes: what it does with a plain statement, with bad input, with Ctrl-C, and when any
// of its processes is killed at any named point.
package e2e
