package log

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// fileKey tells logical files apart ("Action Reconciliation").
type fileKey struct{ path, dv string }

func (k fileKey) compare(other fileKey) int {
	if c := strings.Compare(k.path, other.path); c != 0 {
		return c
	}
	return strings.Compare(k.dv, other.dv)
}

func (a *Add) key() fileKey    { return fileKey{pathKey(a.Path), a.DeletionVector.ID()} }
func (m *Remove) key() fileKey { return fileKey{pathKey(m.Path), m.DeletionVector.ID()} }

type logical interface {
	comparable
	key() fileKey
}

// fileSet is an immutable set in the order of its keys. What a commit changes lies in a small map over a large sorted slice, so that a commit onto a table of a million
// files copies neither a million entries nor a million hash buckets; the map is merged when it has grown.
type fileSet[T logical] struct {
	base []T
	over map[fileKey]T // the zero value: not in the set, though in base
	n    int
}

// newFileSet takes the values of a map.
func newFileSet[T logical](from map[fileKey]T) fileSet[T] {
	base := slices.AppendSeq(make([]T, 0, len(from)), maps.Values(from))
	slices.SortFunc(base, func(a, b T) int { return a.key().compare(b.key()) })
	return fileSet[T]{base: base, n: len(base)}
}

func (s fileSet[T]) find(k fileKey) (int, bool) {
	return slices.BinarySearchFunc(s.base, k, func(v T, k fileKey) int { return v.key().compare(k) })
}

func (s fileSet[T]) get(k fileKey) (v T, ok bool) {
	var none T
	if v, ok := s.over[k]; ok {
		return v, v != none
	}
	if i, ok := s.find(k); ok {
		return s.base[i], true
	}
	return none, false
}

func (s fileSet[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		from := 0
		for _, k := range slices.SortedFunc(maps.Keys(s.over), fileKey.compare) {
			to, found := s.find(k)
			for _, v := range s.base[from:to] {
				if !yield(v) {
					return
				}
			}
			if from = to; found {
				from++
			}
			if v := s.over[k]; v != none && !yield(v) {
				return
			}
		}
		for _, v := range s.base[from:] {
			if !yield(v) {
				return
			}
		}
	}
}

// with is the set after changes; a zero value takes out.
func (s fileSet[T]) with(changes map[fileKey]T) fileSet[T] {
	if len(changes) == 0 {
		return s
	}
	var none T
	out := fileSet[T]{base: s.base, over: make(map[fileKey]T, len(s.over)+len(changes)), n: s.n}
	maps.Copy(out.over, s.over)
	for k, v := range changes {
		_, had := s.get(k)
		_, inBase := s.find(k)
		switch {
		case v != none && !had:
			out.n++
		case v == none && had:
			out.n--
		}
		if v == none && !inBase {
			delete(out.over, k)
		} else {
			out.over[k] = v
		}
	}
	if len(out.over) > 512+len(out.base)/64 {
		out = fileSet[T]{base: slices.AppendSeq(make([]T, 0, out.n), out.all()), n: out.n}
	}
	return out
}
