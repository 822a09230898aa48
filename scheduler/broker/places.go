package broker

import "sync"

// maxPlaces bounds how many chosen locations are remembered; jobs that create tables are short.
const maxPlaces = 10_000

// places remembers where jobs create their tables, so that all leases of a job name one place. It is a convenience of one incarnation: after a
// restart LeaseSpec.Location says it.
type places struct {
	mu    sync.Mutex
	byJob map[string]string
	order []string
}

func (p *places) get(key string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.byJob[key]
	return v, ok
}

// put keeps the first answer and returns it.
func (p *places) put(key, location string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.byJob[key]; ok {
		return v
	}
	if p.byJob == nil {
		p.byJob = map[string]string{}
	}
	if len(p.order) == maxPlaces {
		delete(p.byJob, p.order[0])
		p.order = p.order[1:]
	}
	p.byJob[key] = location
	p.order = append(p.order, key)
	return location
}
