package dispatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	planv1 "github.com/signet-io/signet/api/plan/v1"
)

// Distribution is how pushed attempts are spread over the executors that have room, and pulled ones over those that have asked.
type Distribution string

// The distributions.
const (
	LeastLoaded Distribution = "least-loaded" // to the executor with the most free slots; the default
	RoundRobin  Distribution = "round-robin"  // to the one whose turn is longest ago
	Locality    Distribution = "locality"     // to the one that keeps most of what the task reads; otherwise as least-loaded
)

// Distributions are their names.
func Distributions() []string {
	return []string{string(LeastLoaded), string(RoundRobin), string(Locality)}
}

// ParseDistribution reads a name; "" is the default.
func ParseDistribution(s string) (Distribution, error) {
	if s == "" {
		return LeastLoaded, nil
	}
	if !slices.Contains(Distributions(), s) {
		return "", fmt.Errorf("distribution %q: want one of %s", s, strings.Join(Distributions(), ", "))
	}
	return Distribution(s), nil
}

// before orders the executors that have room.
func (d Distribution) before(a, b *executor) bool {
	if d != RoundRobin && a.free() != b.free() {
		return a.free() > b.free()
	}
	if a.served != b.served {
		return a.served < b.served
	}
	return a.id < b.id
}

// pick chooses an executor of those in the ranking. nil and wait: all of them are avoided, and others may have room soon.
func (p *Pool) pick(it *item, ranking *heap[*executor]) (e *executor, wait bool) {
	avoided := func(e *executor) bool { return slices.Contains(it.avoid, e.id) }
	if p.cfg.Distribution == Locality {
		for _, id := range nearest(it.task) {
			if e := p.executors[id]; e != nil && *ranking.at(e) > 0 && !avoided(e) {
				return e, false
			}
		}
	}
	if len(it.avoid) == 0 {
		return ranking.items[0], false
	}
	if e, ok := ranking.first(func(e *executor) bool { return !avoided(e) }); ok {
		return e, false
	}
	others := p.usable
	for _, id := range it.avoid {
		if e := p.executors[id]; e != nil && e.usable() {
			others--
		}
	}
	if others > 0 && it.patient(time.Now()) {
		return nil, true
	}
	return ranking.items[0], false
}

// nearest are the executors that keep outputs which the task reads, those with the most bytes first.
func nearest(t *planv1.Task) []string {
	bytes := map[string]int64{}
	for _, src := range t.GetSources() {
		for _, part := range src.GetExchange().GetParts() {
			bytes[part.GetExecutorId()] += part.GetBytes()
		}
	}
	out := make([]string, 0, len(bytes))
	for id, n := range bytes {
		if n > 0 {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(a, b)) })
	return out
}
