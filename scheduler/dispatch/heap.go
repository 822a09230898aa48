package dispatch

// heap is a priority queue whose members know their places, so that any of them can be moved or taken out. at is where a member keeps its
// place, counted from one; zero is not in it.
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
	at    func(T) *int
}

func (h *heap[T]) len() int { return len(h.items) }

// set puts a member in, moves it to where it belongs now, or takes it out.
func (h *heap[T]) set(x T, in bool) {
	switch at := h.at(x); {
	case in && *at == 0:
		h.items = append(h.items, x)
		*at = len(h.items)
		h.up(*at)
	case in:
		h.down(h.up(*at))
	case *at != 0:
		i, last := *at, len(h.items)
		h.swap(i, last)
		h.items = h.items[:last-1]
		*at = 0
		if i < last {
			h.down(h.up(i))
		}
	}
}

func (h *heap[T]) swap(i, j int) {
	h.items[i-1], h.items[j-1] = h.items[j-1], h.items[i-1]
	*h.at(h.items[i-1]), *h.at(h.items[j-1]) = i, j
}

func (h *heap[T]) up(i int) int {
	for i > 1 && h.less(h.items[i-1], h.items[i/2-1]) {
		h.swap(i, i/2)
		i /= 2
	}
	return i
}

func (h *heap[T]) down(i int) {
	for {
		child := 2 * i
		if child > len(h.items) {
			return
		}
		if child < len(h.items) && h.less(h.items[child], h.items[child-1]) {
			child++
		}
		if !h.less(h.items[child-1], h.items[i-1]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

// first is the best member that pass lets through. What it looks at grows with the number of those that it does not.
func (h *heap[T]) first(pass func(T) bool) (out T, ok bool) {
	var aside []T
	for len(h.items) > 0 && !ok {
		x := h.items[0]
		if ok = pass(x); ok {
			out = x
			break
		}
		h.set(x, false)
		aside = append(aside, x)
	}
	for _, x := range aside {
		h.set(x, true)
	}
	return out, ok
}
