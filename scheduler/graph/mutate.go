//go:build !mutant

package graph

// mutated is where the simulation's tests break this package on purpose, under the build tag mutant. Here it is never broken.
func mutated(string) bool { return false }
