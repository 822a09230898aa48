package rest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/credentials"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/objects"
)

// maxGrants are kept; the one that was used longest ago goes first.
const maxGrants = 1024

// grants are the credentials that the server has given, by table. They stay in this process: what executors get is signed with them.
type grants struct {
	mu   sync.Mutex
	byID map[string][]*grant
	n    int
}

// grant opens the places below a prefix, with credentials that it renews while they are used.
type grant struct {
	id, prefix string
	opener     storage.Opener
	used       time.Time
}

// find is the grant with the longest prefix that covers a place; nil: there is none.
func (g *grants) find(id, location string) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	var best *grant
	depth := -1
	for _, one := range g.byID[id] {
		if n, ok := covers(one.prefix, location); ok && n > depth {
			best, depth = one, n
		}
	}
	if best != nil {
		best.used = time.Now()
	}
	return best
}

func (g *grants) put(one *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byID == nil {
		g.byID = map[string][]*grant{}
	}
	one.used = time.Now()
	for i, old := range g.byID[one.id] {
		if old.prefix == one.prefix {
			g.byID[one.id][i] = one
			return
		}
	}
	g.byID[one.id] = append(g.byID[one.id], one)
	if g.n++; g.n > maxGrants {
		g.drop()
	}
}

func (g *grants) drop() {
	var oldest *grant
	for _, all := range g.byID {
		for _, one := range all {
			if oldest == nil || one.used.Before(oldest.used) {
				oldest = one
			}
		}
	}
	kept := g.byID[oldest.id][:0:0]
	for _, one := range g.byID[oldest.id] {
		if one != oldest {
			kept = append(kept, one)
		}
	}
	if g.byID[oldest.id] = kept; len(kept) == 0 {
		delete(g.byID, oldest.id)
	}
	g.n--
}

// Store implements catalog.Catalog. With vending, a table's places are opened with what the server gives for that table.
func (c *Catalog) Store(ctx context.Context, id catalog.Ident, location string) (storage.Store, error) {
	if c.vending == nil || len(id) == 0 || !isRemote(location) {
		return c.stores.Open(ctx, location)
	}
	g := c.grants.find(id.String(), location)
	if g == nil {
		v, err := c.fetchGrant(ctx, id, location)
		if err == nil {
			g, err = c.grant(id, location, v)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: get credentials for %s from the catalog: %w", id, location, explainGrant(err))
		}
	}
	return g.opener.Open(ctx, location)
}

// Vend asks the server for the credentials of a table, for whoever checks what can be done with them: they are secrets, and are handed to nobody. It answers the prefix that they are
// said to be for, and the properties that lead to the store with them. Where the server gives none, the error is ErrNotVended.
func (c *Catalog) Vend(ctx context.Context, id catalog.Ident, location string) (prefix string, props objects.Props, err error) {
	v, err := c.fetchGrant(ctx, id, location)
	if err == nil {
		props, err = c.place(v)
	}
	if err != nil {
		return "", nil, fmt.Errorf("table %s: get credentials for %s from the catalog: %w", id, location, explainGrant(err))
	}
	props[objects.AccessKeyID], props[objects.SecretKey], props[objects.SessionToken] = v.keys.AccessKeyID, v.keys.SecretAccessKey, v.keys.SessionToken
	return v.prefix, props, nil
}

// grant makes one of what the server gave for a place, and keeps it.
func (c *Catalog) grant(id catalog.Ident, location string, first *vended) (*grant, error) {
	props, err := c.place(first)
	if err != nil {
		return nil, err
	}
	again := false
	source := credentials.Renewing(func(ctx context.Context) (objects.Credentials, time.Duration, error) {
		if !again { // calls come one at a time
			again = true
			if left := time.Until(first.keys.Expires); left > 0 {
				return first.keys, left, nil
			}
		}
		next, err := c.fetchGrant(ctx, id, location)
		if err != nil {
			return objects.Credentials{}, 0, fmt.Errorf("table %s: get new credentials for %s from the catalog: %w", id, location, explainGrant(err))
		}
		return next.keys, next.left, nil
	})
	opener, err := storage.NewOpener(storage.Root{Prefix: first.prefix, Props: props, Source: source})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", catalog.ErrPermanent, err)
	}
	g := &grant{id: id.String(), prefix: first.prefix, opener: opener}
	c.grants.put(g)
	return g, nil
}

func explainGrant(err error) error {
	if errors.Is(err, ErrNotVended) {
		return fmt.Errorf("%w, though it was asked for them (%s: %s): vending has to be set up there, or write s3.access-key-id under secret and another credentials.mode",
			err, delegationHeader, delegationVended)
	}
	return err
}
