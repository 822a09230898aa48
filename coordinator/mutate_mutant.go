//go:build mutant

package coordinator

import "github.com/signet-io/signet/internal/mutant"

// Mutant is how the simulation breaks this package; scheduler/sim has the list. Other tests are run with SIGNET_MUTANT=coordinator/name.
var Mutant string

func mutated(name string) bool { return Mutant == name || mutant.On("coordinator/"+name) }

// broken are cells of the table that are wrong, by the name of the mutant.
var broken = map[string]map[State]map[eventKind]cell{
	"sealed-twice":        {Sealed: {evSeal: allow(seal, Sealed)}, Resolving: {evSeal: allow(seal, Sealed)}},
	"cancelled-sealed":    {Sealed: {evCancel: allow(cancel, Aborted)}, Resolving: {evCancel: allow(cancel, Aborted)}},
	"failed-sealed":       {Sealed: {evFail: allow(fail, Aborted)}, Resolving: {evFail: allow(fail, Aborted)}},
	"conflict-unsettled":  {Resolving: {evConflict: allow(conflict, Committing, Aborted)}},
	"refused-unsettled":   {Resolving: {evRefused: allow(refused, Aborted)}},
	"unknown-is-conflict": {Sealed: {evUnknown: allow(unknownConflict, Committing, Aborted)}},
	"restart-unseals":     {Sealed: {evRestart: allow(unseal, Ready)}, Resolving: {evRestart: allow(unseal, Ready)}},
	"restart-ends":        {Committing: {evRestart: allow(restartLost, Aborted)}},
}

func unknownConflict(s *step, e Unknown) error { return s.release(e.Seq, OutcomeConflict, e.Reason) }

func unseal(s *step, e Restart) error {
	if err := s.newEpoch(e); err != nil {
		return err
	}
	s.endAttempt(OutcomeConflict, "forgotten")
	s.to(Ready)
	return nil
}

// restartLost forgets that it has to tell anybody.
func restartLost(s *step, e Restart) error {
	s.m.r.Failure = &Failure{Reason: "the scheduler restarted"}
	s.to(Aborted)
	return s.newEpoch(e)
}

func rule(s State, k eventKind) *cell {
	for name, cells := range broken {
		if c, ok := cells[s][k]; ok && mutated(name) {
			return &c
		}
	}
	return &transitions[s][k]
}
