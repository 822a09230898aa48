//go:build mutant

package graph

import "github.com/signet-io/signet/internal/mutant"

// Mutant is how the simulation breaks this package; scheduler/sim has the list. Other tests are run with SIGNET_MUTANT=graph/name.
var Mutant string

func mutated(name string) bool { return Mutant == name || mutant.On("graph/"+name) }
