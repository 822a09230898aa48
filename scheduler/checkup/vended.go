package checkup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
	"github.com/signet-io/signet/internal/uri"
)

// vendor is a catalog that gives credentials for its tables.
type vendor interface {
	Vend(ctx context.Context, id catalog.Ident, location string) (prefix string, props objects.Props, err error)
}

const vending = "set up vending on the catalog's server, and let the scheduler's account load tables with it (X-Iceberg-Access-Delegation: vended-credentials); or write keys of the store under secret and another credentials.mode"

// vended tries what the catalog gives for one of its tables: what it has to be good for, and what it must not be.
func (r *run) vended(c catalog.Catalog) {
	v, ok := c.(vendor)
	if !ok {
		r.skip("vended credentials", "only a catalog of type rest gives any")
		return
	}
	var tables []*catalog.Table
	if !r.step("find a table", "the scheduler's account has to be allowed to list and load tables", func() (_ string, err error) {
		if tables, err = someTables(r.ctx, c); len(tables) == 0 {
			return "", err
		}
		return tables[0].Ident.String(), nil
	}) {
		return
	}
	if len(tables) == 0 {
		r.skip("vended credentials", "the catalog has no table in a store to ask for: create one, and check again")
		return
	}
	t := tables[0]
	var prefix string
	var props objects.Props
	if !r.step("get credentials of a table", vending, func() (_ string, err error) {
		prefix, props, err = v.Vend(r.ctx, t.Ident, t.Location)
		return prefix, err
	}) {
		return
	}
	r.target.Endpoint, r.target.Region = props[objects.Endpoint], props[objects.Region] // of the server's, or those that are configured
	r.storage(func(ctx context.Context, location string) (storage.Store, error) {
		return c.Store(ctx, t.Ident, location)
	}, t.Location)
	if r.ok {
		r.beyond(t, tables[1:], props)
	}
}

// maxAsked is how many tables are loaded in the search for one with files in a store, and for a second one.
const maxAsked = 20

// someTables finds up to two tables that lie in an object store.
func someTables(ctx context.Context, c catalog.Catalog) (found []*catalog.Table, failed error) {
	namespaces, err := c.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	asked := 0
	for _, ns := range namespaces {
		ids, err := c.Tables(ctx, ns)
		failed = errors.Join(failed, err)
		for _, id := range ids {
			if asked++; asked > maxAsked || len(found) == 2 {
				return found, failed
			}
			t, err := c.Load(ctx, id)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			if at, err := uri.Parse(t.Location); err == nil && at.Remote() {
				found = append(found, t)
			}
		}
	}
	return found, failed
}

// beyond tries to reach with a table's credentials what is not the table's. It changes nothing, also where it can: an upload in parts is begun and given up, and what is removed is
// not there.
func (r *run) beyond(t *catalog.Table, others []*catalog.Table, props objects.Props) {
	const name = "credentials of a table reach no other"
	at, err := uri.Parse(t.Location)
	if err != nil { // it was opened
		return
	}
	client, err := objects.NewS3(props, at.Authority, objects.Static(props))
	if err != nil {
		r.step(name, "check "+r.setting("properties"), func() (string, error) { return "", err })
		return
	}
	parent := path.Dir(at.Path())
	none := path.Join(parent, Directory+"none", "a")
	var foreign string // a file that is there, and another table's
	for _, o := range others {
		if other, err := uri.Parse(o.MetadataLocation); err == nil && other.Authority == at.Authority {
			if _, err := storage.Below(t.Location, o.MetadataLocation); err != nil {
				foreign = other.Path()
			}
		}
	}
	reached, err := attempts(r.ctx, client, parent, none, foreign)
	switch {
	case err != nil:
		r.step(name, "the store has to refuse it as forbidden; what else it says may hide that it would be done", func() (string, error) { return "", err })
	case len(reached) > 0:
		r.warn(name, "what the catalog's server gives for "+t.Ident.String()+" can also "+strings.Join(reached, ", ")+" beside the table: it is not bounded to it, or the store heeds no session policies",
			"executors get signed requests for single objects, never these credentials; still, have the server narrow what it gives to the table, or mend the store's policies")
	default:
		r.step(name, "", func() (string, error) {
			return "writing, reading, listing and removing beside the table are refused", nil
		})
	}
}

// attempts lists what can be done beside a table. An error is another than a refusal.
func attempts(ctx context.Context, c objects.Client, dir, none, foreign string) (reached []string, failed error) {
	try := func(what string, f func() (bool, error)) {
		did, err := f()
		switch {
		case err == nil && did:
			reached = append(reached, what)
		case err != nil && !errors.Is(err, objects.ErrDenied):
			failed = errors.Join(failed, fmt.Errorf("%s beside the table was not refused, but failed: %w", what, err))
		}
	}
	try("write", func() (bool, error) {
		u, err := c.Begin(ctx, none)
		if err != nil {
			return false, err
		}
		return true, u.Abort(ctx)
	})
	if foreign != "" {
		try("read", func() (bool, error) {
			body, _, err := c.Get(ctx, foreign, 0, 1, "")
			if err == nil {
				err = body.Close()
			}
			return true, err
		})
	}
	try("list", func() (bool, error) {
		n := 0
		err := c.List(ctx, dir+"/", "/", func(objects.Info) error { n++; return nil })
		return n > 0, err // some stores list nothing instead of refusing
	})
	try("remove", func() (bool, error) { return true, c.Remove(ctx, none) })
	return reached, failed
}
