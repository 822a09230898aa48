package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"

	"github.com/signet-io/signet/catalog"
	"github.com/signet-io/signet/catalog/storage"
)

// Options say where a catalog is and how to talk to it.
type Options struct {
	// Name is what users type. Required.
	Name string
	// URI is the address before /v1: http(s)://host[:port][/path]. Required.
	URI string
	// Warehouse is the server's name of a warehouse, or a location (scheme://…). With a location, new tables must lie below it.
	Warehouse string
	// Properties under the names that PyIceberg and Iceberg's Java client have for them; those of storage are left to Stores.
	Properties map[string]string
	// Secrets: credential (id:secret or secret), token, header.NAME, and for signed requests rest.access-key-id, rest.secret-access-key,
	// rest.session-token, or else the s3.* ones.
	Secrets map[string]string
	// CA is a file with the certificates of authorities; the system's if empty. Cert and Key are files with the client's certificate.
	CA, Cert, Key string
	// Vending asks the server for credentials for a table's files; nil: Stores opens them.
	Vending *Vending
	// Stores opens the places that tables name; storage.Local if nil.
	Stores storage.Opener
	// CacheBytes bounds the metadata kept parsed, measured as JSON; 64 MiB if 0.
	CacheBytes int64
	// Logger hears of what a server wants and does not get; slog.Default if nil.
	Logger *slog.Logger
}

// Names of properties and secrets.
const (
	propTokenURI     = "oauth2-server-uri"
	propScope        = "scope"
	propAudience     = "audience"
	propResource     = "resource"
	propPrefix       = "prefix"
	propSigV4        = "rest.sigv4-enabled"
	propSigningName  = "rest.signing-name"
	propSigningArea  = "rest.signing-region"
	headerPrefix     = "header."
	secretCredential = "credential"
	secretToken      = "token"
)

// Catalog implements catalog.Catalog.
type Catalog struct {
	name      string
	base      *url.URL
	warehouse string
	prefix    string // that the operator wrote; the server's otherwise
	stores    storage.Opener
	vending   *Vending // nil: the server is not asked for credentials
	grants    grants
	offered   places
	firsts    locks // of tables that get their first snapshot
	client    *client
	cache     *cache
	log       *slog.Logger

	mu       sync.Mutex
	settings *settings // nil: the server has not been asked, or did not answer
}

var _ catalog.Catalog = (*Catalog)(nil)

// Open checks the options. It does not talk to the server: a catalog that is down does not keep others from being used.
func Open(_ context.Context, o Options) (*Catalog, error) {
	if o.Name == "" {
		return nil, errors.New("catalog: it has no name")
	}
	base, err := parseBase("uri", o.URI)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", o.Name, err)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Stores == nil {
		o.Stores = storage.Local
	}
	cl, err := newClient(o, base)
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", o.Name, err)
	}
	return &Catalog{
		name: o.Name, base: base, warehouse: o.Warehouse, prefix: o.Properties[propPrefix],
		stores: o.Stores, vending: o.Vending, client: cl, cache: newCache(o.CacheBytes), log: o.Logger.With("catalog", o.Name),
	}, nil
}

// parseBase takes an address of a server. What it says never repeats the address: somebody may have put a password in it.
func parseBase(setting, uri string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(uri, "/"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: not a URL; want http://host:port/path or https://…", setting)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s: scheme %q: want http or https", setting, u.Scheme)
	case u.Host == "":
		return nil, fmt.Errorf("%s: it has no host", setting)
	case u.User != nil:
		return nil, fmt.Errorf("%s: it holds a user or a password; write those under secret, as credential or token", setting)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: it has a query or a fragment; parameters of the catalog are written under properties", setting)
	}
	return u, nil
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error {
	c.client.http.CloseIdleConnections()
	return nil
}
