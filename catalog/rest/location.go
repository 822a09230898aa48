package rest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
	"github.com/signet-io/signet/internal/uri"
)

// probes are the schemas of tables that are staged only to learn where they would lie. A server may build the table on what was staged, so that an empty one leaves least behind; one
// that does not take it gets another.
var probes = []string{`{"type":"struct","schema-id":0,"fields":[]}`, `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]}`}

// DefaultLocation implements catalog.Catalog. Where the server says where it would put the table, that decides; otherwise the namespace's location, or
// a warehouse that is a location. A directory that holds something gets a suffix: files of a dropped table stay, and may still be read.
func (c *Catalog) DefaultLocation(ctx context.Context, id catalog.Ident) (string, error) {
	if err := id.Validate(); err != nil {
		return "", err
	}
	plain, err := c.plainLocation(ctx, id)
	if err != nil {
		return "", fmt.Errorf("choose a location for table %s: %w", id, err)
	}
	for loc := plain; ; loc = plain + "-" + randomHex(4) {
		empty, err := c.isEmpty(ctx, id, loc)
		if errors.Is(err, ErrNotVended) {
			if _, taken := c.load(ctx, id); taken == nil { // nobody gives credentials for a second place of a table; who wants to make one there is told of the first
				return loc, nil
			}
		}
		if err != nil || empty {
			return loc, err
		}
	}
}

func (c *Catalog) plainLocation(ctx context.Context, id catalog.Ident) (string, error) {
	s, err := c.config(ctx)
	if err != nil {
		return "", err
	}
	if err := s.usable(id); err != nil {
		return "", err
	}
	if s.offers(pathTables) {
		location, err := c.staged(ctx, s, id)
		if err != nil || location != "" {
			return location, err
		}
	}
	root, err := c.namespaceLocation(ctx, s, id.Namespace())
	switch {
	case err != nil:
		return "", err
	case root != "":
		_, table, _ := strings.Cut(storage.TableDir(id), "/")
		return storage.Join(root, table) + "-" + randomHex(4), nil
	case isLocation(c.warehouse):
		return storage.Join(c.warehouse, storage.TableDir(id)) + "-" + randomHex(4), nil
	}
	return "", fmt.Errorf("the catalog's server stages no tables, its namespace has no property location, and catalogs.%s.warehouse is no location (scheme://…): "+
		"no place for a table is known: %w", c.name, catalog.ErrPermanent)
}

// stage sends what would make a table, but for making it. An empty location leaves that to the server.
func (c *Catalog) stage(ctx context.Context, s *settings, id catalog.Ident, location string) (a *answer, err error) {
	for _, probe := range probes {
		a, err = c.stageAs(ctx, s, id, location, probe)
		if err != nil || a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
			break
		}
	}
	return a, err
}

func (c *Catalog) stageAs(ctx context.Context, s *settings, id catalog.Ident, location, schema string) (*answer, error) {
	body, err := json.Marshal(creation{Name: id.Table(), Location: location, Schema: json.RawMessage(schema), Stage: true, Properties: map[string]string{"format-version": "2"}})
	if err != nil {
		return nil, err
	}
	r := call{method: http.MethodPost, url: c.namespaceURL(s, id.Namespace(), nil, "tables"), body: body}
	if c.vending != nil {
		r.header = delegation()
	}
	return c.client.send(ctx, r)
}

// staged asks where the server would put a table; "" if it does not say. Nothing is made. With vending, the answer's credentials are kept for that place.
func (c *Catalog) staged(ctx context.Context, s *settings, id catalog.Ident) (string, error) {
	a, err := c.stage(ctx, s, id, "")
	if err != nil {
		return "", err
	}
	if a.status != http.StatusOK {
		switch e := c.refusal(a); e.Status {
		case http.StatusBadRequest, http.StatusNotAcceptable, http.StatusConflict, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusNotImplemented:
			return "", nil // it stages none, or the name is taken
		default:
			return "", definite(e)
		}
	}
	var doc grantDoc
	if err := json.Unmarshal(a.body, &doc); err != nil {
		return "", fmt.Errorf("the answer of the catalog's server is no table: %w", err)
	}
	theirs := strings.TrimRight(doc.Metadata.Location, "/")
	location := c.sound(theirs, id)
	c.offered.add(location)
	if c.vending != nil && location == theirs && isRemote(location) {
		if v, err := parseGrant(a.body, location, dateOf(a)); err == nil {
			if _, err := c.grant(id, location, v); err != nil {
				return "", err
			}
		} // else it is asked for when the place is opened, and said then
	}
	return location, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// sound keeps the server's root and lays out odd names, and those of nested namespaces, as catalogs of type sql do. A server that joins names with
// slashes would put the table b of a.x into the table x of a, and a/../b anywhere.
func (c *Catalog) sound(location string, id catalog.Ident) string {
	root, ok := strings.CutSuffix(location, "/"+strings.Join(id, "/"))
	if !ok {
		root, ok = strings.CutSuffix(location, "/"+strings.Join(id.Namespace(), ".")+"/"+id.Table())
	}
	if !ok || len(id) == 2 && plainName.MatchString(id[0]) && plainName.MatchString(id[1]) {
		return location
	}
	return storage.Join(root, storage.TableDir(id))
}

func (c *Catalog) namespaceLocation(ctx context.Context, s *settings, ns []string) (string, error) {
	a, err := c.client.send(ctx, call{method: http.MethodGet, url: c.namespaceURL(s, ns, nil)})
	if err != nil {
		return "", err
	}
	if a.status != http.StatusOK {
		return "", definite(c.refusal(a))
	}
	var doc struct {
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(a.body, &doc); err != nil {
		return "", fmt.Errorf("the answer of the catalog's server is no namespace: %w", err)
	}
	return strings.TrimRight(doc.Properties["location"], "/"), nil
}

// isEmpty says whether nothing lies below a location.
func (c *Catalog) isEmpty(ctx context.Context, id catalog.Ident, location string) (bool, error) {
	st, err := c.Store(ctx, id, location)
	if err != nil {
		return false, err
	}
	return storage.IsEmpty(ctx, st, location)
}

// checkLocation refuses places outside of a warehouse that is a location. Where the warehouse is a name, the server's word counts.
func (c *Catalog) checkLocation(location string) error {
	if !isLocation(c.warehouse) {
		return nil
	}
	rest, err := uri.Below(c.warehouse, location)
	if err != nil || len(rest) == 0 {
		return fmt.Errorf("location %q: must be below the catalog's warehouse %s: %w", location, c.warehouse, catalog.ErrPermanent)
	}
	return nil
}

// isRemote says whether a place is in a store that is reached with credentials.
func isRemote(location string) bool {
	at, err := uri.Parse(location)
	return err == nil && at.Remote()
}

func isLocation(warehouse string) bool {
	return strings.Contains(warehouse, "://") || strings.HasPrefix(warehouse, "/")
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
