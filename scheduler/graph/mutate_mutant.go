//go:build mutant

package graph

// Mutant is how this package is broken; scheduler/sim has the list.
var Mutant string

func mutated(name string) bool { return Mutant == name }
