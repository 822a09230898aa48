package dispatch

import (
	"cmp"
	"slices"
	"time"
)

// Slow says which attempts of a stage are so slow that a second one beside them is worth its slot.
type Slow struct {
	Percent int           // of the median of the stage's finished tasks
	Age     time.Duration // below which none is
}

// Sample is what is known of a stage.
type Sample struct {
	Tasks    int
	Finished []time.Duration // of tasks that are done, sorted
	Bytes    int64           // that these have made
	Running  []Running
}

// Running is an attempt that runs.
type Running struct {
	Attempt string
	Since   time.Time
	Bytes   int64 // that it has made so far
}

// Of names the slow attempts, the slowest first. Nothing is slow before half of the stage is done: until then nobody knows what is usual. One that
// will soon be done, as far as its bytes tell, is spared, but not for longer than twice the time.
func (s Slow) Of(now time.Time, stage Sample) []string {
	n := len(stage.Finished)
	if n == 0 || 2*n < stage.Tasks {
		return nil
	}
	median := stage.Finished[n/2]
	limit := max(s.Age, median*time.Duration(s.Percent)/100)
	var slow []Running
	for _, r := range stage.Running {
		age := now.Sub(r.Since)
		if age > limit && (age > 2*limit || !nearlyDone(r, age, median, stage.Bytes/int64(n))) {
			slow = append(slow, r)
		}
	}
	slices.SortFunc(slow, func(a, b Running) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Attempt, b.Attempt)) })
	out := make([]string, len(slow))
	for i, r := range slow {
		out[i] = r.Attempt
	}
	return out
}

// nearlyDone tells whether an attempt will be done before another could be, if it makes as many bytes as others and goes on as it has.
func nearlyDone(r Running, age, median time.Duration, usual int64) bool {
	if r.Bytes <= 0 || usual <= 0 {
		return false
	}
	left := float64(age) * float64(max(usual-r.Bytes, 0)) / float64(r.Bytes)
	return left < float64(median)
}
