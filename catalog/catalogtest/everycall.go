package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/signet-io/signet/catalog"
)

// victim is one table that things go wrong with.
type victim struct {
	*testing.T
	truth catalog.Catalog // sees the server without faults
	id    catalog.Ident
}

func (v *victim) load() *catalog.Table {
	v.Helper()
	t, err := v.truth.Load(v.Context(), v.id)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	require.NoError(v, err)
	return t
}

func (v *victim) make() *catalog.Table {
	v.Helper()
	t, err := v.truth.Create(v.Context(), v.id, Spec())
	require.NoError(v, err)
	return t
}

// operation is one call of a catalog. It returns what must hold of the table, given what the call said.
type operation func(v *victim) (do func(catalog.Catalog) error, check func(error))

var operations = map[string]operation{
	"append": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		id := SnapshotID()
		reqs, ups := Append(v.make(), id)
		send := func(c catalog.Catalog) error { _, err := c.Commit(v.Context(), v.id, reqs, ups); return err }
		return send, func(err error) {
			landed := v.load().Metadata.SnapshotByID(id) != nil
			v.believe(err, landed)
			// Whatever it was, the identical request settles it.
			if again := send(v.truth); !landed {
				require.NoError(v, again)
			}
			require.NoError(v, send(v.truth))
			assert.Len(v, v.load().Metadata.Snapshots(), 1)
		}
	},
	"create with the commit": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		id := uuid.NewString()
		location, err := v.truth.DefaultLocation(v.Context(), v.id)
		require.NoError(v, err)
		reqs, ups := Staged(id, location, 42)
		send := func(c catalog.Catalog) error { _, err := c.Commit(v.Context(), v.id, reqs, ups); return err }
		return send, func(err error) {
			now := v.load()
			v.believe(err, now != nil)
			require.NoError(v, send(v.truth))
			require.Equal(v, id, v.load().UUID)
		}
	},
	"create": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		made := ""
		return func(c catalog.Catalog) error {
				t, err := c.Create(v.Context(), v.id, Spec())
				if err == nil {
					made = t.UUID
				}
				return err
			}, func(err error) {
				now := v.load()
				if errors.Is(err, catalog.ErrExists) {
					err = nil
				}
				v.believe(err, now != nil)
				if made != "" {
					require.Equal(v, made, now.UUID)
				}
			}
	},
	"drop": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		v.make()
		return func(c catalog.Catalog) error { return c.Drop(v.Context(), v.id) }, func(err error) {
			if errors.Is(err, catalog.ErrNotFound) {
				err = nil
			}
			v.believe(err, v.load() == nil)
		}
	},
	"load": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		want := v.make()
		return func(c catalog.Catalog) error {
			t, err := c.Load(v.Context(), v.id)
			if err == nil {
				require.Equal(v, want.UUID, t.UUID)
			}
			return err
		}, func(err error) { require.NotErrorIs(v, err, catalog.ErrNotFound) }
	},
	"list": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		v.make()
		return func(c catalog.Catalog) error {
			tables, err := c.Tables(v.Context(), v.id.Namespace())
			if err == nil {
				require.Contains(v, tables, v.id)
			}
			return err
		}, func(err error) { require.NotErrorIs(v, err, catalog.ErrNotFound) }
	},
	"list namespaces": func(v *victim) (func(catalog.Catalog) error, func(error)) {
		return func(c catalog.Catalog) error {
			all, err := c.Namespaces(v.Context())
			if err == nil {
				require.Contains(v, all, v.id.Namespace())
			}
			return err
		}, func(error) {}
	},
}

// believe: what a call said is never more certain than what is there.
func (v *victim) believe(err error, happened bool) {
	v.Helper()
	switch {
	case err == nil:
		require.True(v, happened, "it said that it did")
	case errors.Is(err, catalog.ErrConflict), errors.Is(err, catalog.ErrPermanent), errors.Is(err, catalog.ErrNotSent), errors.Is(err, catalog.ErrNotFound), errors.Is(err, catalog.ErrExists):
		require.False(v, happened, "it said that it did not: %v", err)
	}
}

// FaultAtEveryCall lets every request that an operation makes go wrong in every way: those of HTTPFaults, and more that the server's protocol knows. open returns a client that knows nothing yet, of the proxy; truth
// sees the same catalog without it, and has the namespace.
func FaultAtEveryCall(t *testing.T, p *Proxy, ns []string, truth catalog.Catalog, open func(t *testing.T) catalog.Catalog, more ...HTTPFault) {
	n := 0
	run := func(t *testing.T, op operation, faults map[int]HTTPFault) (calls int) {
		n++
		v := &victim{T: t, truth: truth, id: append(append(catalog.Ident{}, ns...), fmt.Sprintf("v%d", n))}
		do, check := op(v)
		c := open(t)
		p.Arm(faults)
		err := do(c)
		seen, _ := p.Seen()
		p.Arm(nil)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		if faults == nil {
			require.NoError(t, err)
		}
		check(err)
		require.NoError(t, c.Close())
		return len(seen)
	}
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			calls := run(t, op, nil)
			require.Positive(t, calls)
			for i := range calls {
				for _, f := range append(HTTPFaults(), more...) {
					t.Run(fmt.Sprintf("%d-%s", i, f), func(t *testing.T) { run(t, op, map[int]HTTPFault{i: f}) })
				}
			}
		})
	}
}
