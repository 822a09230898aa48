package broker

import "github.com/signet-io/signet/scheduler/summary"

// vetSummary keeps a sink from saying of a snapshot what its jobs do not: another user, another statement, properties that nobody has set.
func (l *Lease) vetSummary(have map[string]string) error {
	if err := summary.Vet(have, l.spec.Summary); err != nil {
		return invalid("%v", err)
	}
	return nil
}
