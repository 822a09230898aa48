//go:build !mutant

package coordinator

// mutated and rule are where the simulation's tests break this package on purpose, under the build tag mutant. Here it is never broken.
func mutated(string) bool { return false }

func rule(s State, k eventKind) *cell { return &transitions[s][k] }
