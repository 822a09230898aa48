package stages

import "fmt"

// wholeBeside makes rows readable as a whole in every task that runs f, and adds their inputs to f. What might come out differently in each of several tasks
// is computed once, by a stage of its own; so is what reads a source whole that f reads in shares.
func (p *planner) wholeBeside(f *frag, low *lowered) (*frag, error) {
	w, err := p.wholeOf(low)
	if err != nil {
		return nil, err
	}
	in, ok := merge(f.in, w.in)
	if !ok || f.split() && (w.shaky || len(w.floats) > 0) {
		if w, err = p.emit(low, low.frags[0].cols, broadcast, nil); err != nil {
			return nil, err
		}
		low.whole = w
		if in, ok = merge(f.in, w.in); !ok {
			return nil, fmt.Errorf("inputs of a fragment collide")
		}
	}
	f.in, f.shaky = in, f.shaky || w.shaky
	return w, nil
}

// wholeOf makes rows readable as a whole: as they are, by reading small sources again in every task, or through a stage.
func (p *planner) wholeOf(low *lowered) (*frag, error) {
	switch {
	case low.whole != nil:
		return low.whole, nil
	case low.isWhole():
		low.whole = low.frags[0]
	case len(low.frags) == 1 && low.frags[0].onlySources() && (low.frags[0].plain || low.frags[0].bytes <= p.opts.WholeBytes):
		low.whole = low.frags[0].wholeCopy()
	default:
		f, err := p.emit(low, low.frags[0].cols, gather, nil)
		if err != nil {
			return nil, err
		}
		low.whole = f
	}
	return low.whole, nil
}
