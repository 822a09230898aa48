package coordinator

import "fmt"

// State is where a job's commit stands.
type State int

// The states, in the order of a commit's life.
const (
	Planned    State = iota // known, no task launched
	Writing                 // tasks run; manifests are accepted
	Ready                   // every task has an accepted manifest
	Committing              // a sink builds a commit; nothing of it has been sent, or what was sent definitely did not land
	Sealed                  // one attempt may be on its way to its commit point
	Resolving               // the sealed attempt was sent and its outcome is not known
	Committed               // the data is visible; final
	Aborted                 // cancelled or failed, and nothing landed; final

	stateCount
)

var stateNames = [stateCount]string{"Planned", "Writing", "Ready", "Committing", "Sealed", "Resolving", "Committed", "Aborted"}

func (s State) String() string {
	if s < 0 || s >= stateCount {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// Final reports whether no event leads out of s.
func (s State) Final() bool { return s == Committed || s == Aborted }

// MarshalText makes records readable.
func (s State) MarshalText() ([]byte, error) {
	if s < 0 || s >= stateCount {
		return nil, fmt.Errorf("%w: state %d", ErrCorrupt, int(s))
	}
	return []byte(stateNames[s]), nil
}

// UnmarshalText is the inverse of MarshalText.
func (s *State) UnmarshalText(b []byte) error {
	for i, n := range stateNames {
		if n == string(b) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("%w: state %q", ErrCorrupt, b)
}
