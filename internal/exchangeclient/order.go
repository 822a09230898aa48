package exchangeclient

import (
	"cmp"
	"fmt"
	"slices"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Order sorts the parts of one source as they are to be read: by task, then by partition. It refuses a partition that is named twice and two
// attempts of one task: rows would be read twice, or mixed (S10, S73, T1).
func Order(parts []*planv1.ExchangePart) ([]*planv1.ExchangePart, error) {
	out := slices.Clone(parts)
	slices.SortStableFunc(out, func(a, b *planv1.ExchangePart) int {
		return cmp.Or(cmp.Compare(a.GetTask(), b.GetTask()), cmp.Compare(a.GetPartition(), b.GetPartition()))
	})
	for i := 1; i < len(out); i++ {
		a, b := out[i-1], out[i]
		if a.GetTask() != b.GetTask() {
			continue
		}
		if a.GetAttemptId() != b.GetAttemptId() {
			return nil, fmt.Errorf("task %d: parts of two attempts, %s and %s, in one input", a.GetTask(), a.GetAttemptId(), b.GetAttemptId())
		}
		if a.GetPartition() == b.GetPartition() {
			return nil, fmt.Errorf("task %d: partition %d of attempt %s is in one input twice", a.GetTask(), a.GetPartition(), a.GetAttemptId())
		}
	}
	return out, nil
}
