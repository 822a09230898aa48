package rest

import "sync"

// locks are one for each name, for as long as somebody holds or wants it.
type locks struct {
	mu     sync.Mutex
	byName map[string]*held
}

type held struct {
	sync.Mutex
	wanted int
}

func (l *locks) lock(name string) (unlock func()) {
	l.mu.Lock()
	if l.byName == nil {
		l.byName = map[string]*held{}
	}
	h := l.byName[name]
	if h == nil {
		h = &held{}
		l.byName[name] = h
	}
	h.wanted++
	l.mu.Unlock()
	h.Lock()
	return func() {
		h.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.wanted--; h.wanted == 0 {
			delete(l.byName, name)
		}
	}
}
