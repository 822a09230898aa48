package duckdb

import "context"

const (
	bareIdle = 2   // idle instances kept
	bareUses = 256 // after which one is replaced, so that whatever DuckDB keeps per statement stays small
)

// Bare lends an instance without access to any file: locked, unable to spill, for parsing and binding. It is the one kind that is used more than
// once: it can reach nothing, and its borrowers run no statement of a user in it (they parse, prepare and EXPLAIN), so nothing can pass from
// one to the next, while a new one would cost more processor time than the rest of a small INSERT.
//
// giveBack returns it; after any failure healthy is false, and the instance is closed instead.
func (p *Pool) Bare(ctx context.Context) (inst *Instance, giveBack func(healthy bool), err error) {
	if inst = p.takeBare(); inst == nil {
		if inst, err = p.Open(ctx, Access{BindOnly: true}); err != nil {
			return nil, nil, err
		}
	}
	inst.uses++
	return inst, func(healthy bool) {
		if !healthy || !p.putBare(inst) {
			p.Discard(inst)
		}
	}, nil
}

func (p *Pool) takeBare() *Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.bare)
	if n == 0 {
		return nil
	}
	inst := p.bare[n-1]
	p.bare = p.bare[:n-1]
	return inst
}

func (p *Pool) putBare(inst *Instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.bare) >= bareIdle || inst.uses >= bareUses {
		return false
	}
	p.bare = append(p.bare, inst)
	return true
}
