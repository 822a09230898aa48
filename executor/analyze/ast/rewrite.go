package ast

// Rewrite copies a tree. For every object f may answer another value, which takes its place as it is; nil: the object is copied, its members rewritten.
// Constants and scalars go through g, if there is one.
func Rewrite(v Value, f func(*Object) (Value, error), g func(Raw) Value) (Value, error) {
	switch n := v.(type) {
	case *Array:
		out := &Array{Items: make([]Value, len(n.Items))}
		for i, item := range n.Items {
			c, err := Rewrite(item, f, g)
			if err != nil {
				return nil, err
			}
			out.Items[i] = c
		}
		return out, nil
	case *Object:
		if r, err := f(n); r != nil || err != nil {
			return r, err
		}
		out := &Object{keys: n.keys[:len(n.keys):len(n.keys)], vals: make([]Value, len(n.vals))}
		for i, m := range n.vals {
			c, err := Rewrite(m, f, g)
			if err != nil {
				return nil, err
			}
			out.vals[i] = c
		}
		return out, nil
	case Raw:
		if g != nil {
			return g(n), nil
		}
	}
	return v, nil
}

// Clone copies a tree.
func Clone(v Value) Value {
	c, _ := Rewrite(v, func(*Object) (Value, error) { return nil, nil }, nil) // neither callback fails
	return c
}

// Visit calls f for every object of a tree; where it answers false, what lies below is left out.
func Visit(v Value, f func(*Object) bool) {
	switch n := v.(type) {
	case *Array:
		for _, item := range n.Items {
			Visit(item, f)
		}
	case *Object:
		if f(n) {
			for _, m := range n.vals {
				Visit(m, f)
			}
		}
	}
}
