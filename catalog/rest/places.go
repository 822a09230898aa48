package rest

import "sync"

// maxPlaces are remembered of those that the server has offered for new tables; then it begins anew.
const maxPlaces = 10_000

// places are those that the server itself has offered for new tables.
type places struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (p *places) add(location string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= maxPlaces {
		p.seen = map[string]bool{}
	}
	p.seen[location] = true
}

func (p *places) has(location string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[location]
}
